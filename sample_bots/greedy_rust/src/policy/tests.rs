//! Tests the examples of the written policy, and its special cases.

use super::*;
use crate::linko::{DrawDisplay, Table};

/// A joker, in the lists of cards below.
const J: u32 = JOKER;

/// Decides by rules without any options.
fn decide(kind: DecisionKind, view: View, legal: &[Action]) -> Action {
    decide_by(Ruleset::default(), kind, view, legal)
}

fn decide_by(rules: Ruleset, kind: DecisionKind, view: View, legal: &[Action]) -> Action {
    Game { rules }.decide(&Request {
        kind: kind.into(),
        view: Some(view),
        legal: legal.to_vec(),
        ..Default::default()
    })
}

/// The view of seat 1 with these cards in hand. Seats 0 and 2 have played nothing.
fn hand(cards: &[u32]) -> View {
    let count = |card| cards.iter().filter(|&&held| held == card).count() as u32;
    View {
        seat: 1,
        hand: (0..=JOKER).map(count).collect(),
        tables: vec![Table::default(); 3],
        ..Default::default()
    }
}

impl View {
    fn with_layer(mut self, seat: usize, cards: &[u32]) -> Self {
        self.tables[seat].layers.push(layer(cards));
        self
    }

    fn with_snatched(mut self, cards: &[u32]) -> Self {
        self.snatched = Some(layer(cards));
        self
    }
}

fn layer(cards: &[u32]) -> Layer {
    let jokers = cards.iter().filter(|&&card| card == JOKER).count() as u32;
    Layer {
        value: *cards.iter().min().expect("a layer has cards"),
        naturals: cards.len() as u32 - jokers,
        jokers,
    }
}

fn play(cards: &[u32]) -> Action {
    Action {
        kind: Some(Kind::Play(layer(cards))),
    }
}

fn draw(slot: u32, cards: &[u32]) -> Action {
    let cards = cards.to_vec();
    Action {
        kind: Some(Kind::DrawDisplay(DrawDisplay { slot, cards })),
    }
}

fn ghost(value: u32) -> Action {
    Action {
        kind: Some(Kind::GhostValue(value)),
    }
}

mod a_play {
    use super::*;

    #[track_caller]
    fn check(rules: Ruleset, view: View, legal: &[&[u32]], expected: &[u32]) {
        let legal: Vec<_> = legal.iter().map(|cards| play(cards)).collect();
        let decided = decide_by(rules, DecisionKind::Play, view, &legal);
        assert_eq!(decided, play(expected));
    }

    fn plain() -> Ruleset {
        Ruleset::default()
    }

    #[test]
    fn with_the_highest_value_is_chosen_of_equal_gains() {
        let view = hand(&[3, 9, 9]).with_layer(0, &[2]).with_layer(2, &[1]);
        check(plain(), view, &[&[3], &[9], &[9, 9]], &[9]);
    }

    #[test]
    fn that_comes_first_is_chosen_of_equals() {
        let view = hand(&[6, 6]).with_layer(0, &[5]);
        check(plain(), view, &[&[6], &[6, 6]], &[6]);
    }

    #[test]
    fn is_the_largest_when_nothing_can_be_snatched() {
        let legal: [&[u32]; 5] = [&[7, 7], &[7, 7, J], &[12, 12], &[12, 12, J], &[J]];
        check(plain(), hand(&[7, 7, 12, 12, J]), &legal, &[12, 12, J]);
    }

    #[test]
    fn includes_a_joker_when_that_makes_it_larger() {
        check(plain(), hand(&[5, J]), &[&[5], &[5, J], &[J]], &[5, J]);
    }

    #[test]
    fn with_the_fewest_jokers_is_chosen_of_equal_gains() {
        let legal: [&[u32]; 5] = [&[4], &[4, 4], &[4, J], &[8, J], &[8]];
        check(plain(), hand(&[4, 4, 8, J]), &legal, &[4, 4]);
    }

    #[test]
    fn snatches_neither_equal_values_nor_other_sizes_nor_the_own_layer() {
        let view = hand(&[5, 6, 6])
            .with_layer(0, &[6])
            .with_layer(1, &[4])
            .with_layer(2, &[4, 4, 4]);
        check(plain(), view, &[&[5], &[6], &[6, 6]], &[6, 6]);
    }

    #[test]
    fn snatches_top_layers_only() {
        let view = hand(&[8, 9, 9])
            .with_layer(0, &[2])
            .with_layer(0, &[3, 3, 3])
            .with_layer(2, &[2])
            .with_layer(2, &[3, 3, 3]);
        check(plain(), view, &[&[8], &[9], &[9, 9]], &[9, 9]);
    }

    #[test]
    fn of_ones_snatches_thirteens_and_jokers_if_the_rules_say_so() {
        let view = || hand(&[1, 2]).with_layer(0, &[13]).with_layer(2, &[J]);
        let jokers = Ruleset {
            ones_snatch_jokers: true,
            ..Default::default()
        };
        let thirteens = Ruleset {
            ones_snatch_thirteens: true,
            ..Default::default()
        };
        check(plain(), view(), &[&[1], &[2]], &[2]);
        check(jokers, view(), &[&[1], &[2]], &[1]);
        check(thirteens, view(), &[&[1], &[2]], &[1]);
    }
}

#[test]
fn large_and_matching_layers_are_taken_and_reclaimed() {
    let examples: [(&[u32], bool); 5] = [
        (&[4], true),
        (&[4, J], true),
        (&[9, 9], false),
        (&[9, 9, J], true),
        (&[J], false),
    ];
    for (snatched, wanted) in examples {
        let view = || hand(&[4, 4, 10]).with_snatched(snatched);
        let taken = decide(
            DecisionKind::TakeOrLeave,
            view(),
            &[choose(Choice::Take), choose(Choice::Leave)],
        );
        let reclaimed = decide(
            DecisionKind::ReclaimOrDiscard,
            view(),
            &[choose(Choice::Reclaim), choose(Choice::Discard)],
        );
        assert_eq!(taken == choose(Choice::Take), wanted, "take {snatched:?}");
        assert_eq!(
            taken == choose(Choice::Leave),
            !wanted,
            "leave {snatched:?}"
        );
        assert_eq!(
            reclaimed == choose(Choice::Reclaim),
            wanted,
            "reclaim {snatched:?}"
        );
    }
}

mod a_draw {
    use super::*;

    /// The draw that the bot chooses from a display with these slots.
    fn drawn(cards: &[u32], display: &[&[u32]]) -> Action {
        let slots = (0..).zip(display).map(|(slot, cards)| draw(slot, cards));
        let legal: Vec<_> = [choose(Choice::DrawDeck)]
            .into_iter()
            .chain(slots)
            .collect();
        decide(DecisionKind::Draw, hand(cards), &legal)
    }

    #[test]
    fn chooses_the_card_that_is_held_most_often() {
        assert_eq!(drawn(&[4, 4, 10], &[&[13], &[10], &[4]]), draw(2, &[4]));
    }

    #[test]
    fn chooses_the_first_of_equals() {
        assert_eq!(
            drawn(&[4, 4, 10], &[&[6], &[5], &[3]]),
            choose(Choice::DrawDeck)
        );
        assert_eq!(drawn(&[4], &[&[7, 2], &[9, 1], &[9]]), draw(1, &[9, 1]));
    }

    #[test]
    fn chooses_a_joker_rather_than_any_other_card() {
        let seven = &[13; 7];
        assert_eq!(drawn(seven, &[&[13], &[2, J], &[12]]), draw(1, &[2, J]));
    }
}

#[test]
fn optional_draw_is_declined_unless_the_card_is_held_already() {
    let optional = |cards: &[u32]| {
        let legal = [
            choose(Choice::Pass),
            choose(Choice::DrawDeck),
            draw(0, &[13]),
            draw(1, &[12]),
            draw(2, &[1]),
        ];
        decide(DecisionKind::OptionalDraw, hand(cards), &legal)
    };
    assert_eq!(optional(&[4, 4, 10]), choose(Choice::Pass));
    assert_eq!(optional(&[1, 10]), draw(2, &[1]));
}

#[test]
fn set_of_the_ghost_that_is_held_most_often_is_snatched() {
    let legal = [ghost(3), ghost(4), ghost(10), ghost(12)];
    let decided = decide(DecisionKind::GhostSet, hand(&[4, 4, 10]), &legal);
    assert_eq!(decided, ghost(4));
}

#[test]
fn set_of_the_ghost_is_declined_unless_a_card_of_it_is_held() {
    let optional = |cards: &[u32]| {
        let legal = [ghost(3), ghost(12), choose(Choice::Pass)];
        decide(DecisionKind::GhostSet, hand(cards), &legal)
    };
    assert_eq!(optional(&[4, 4, 10]), choose(Choice::Pass));
    assert_eq!(optional(&[3, 10]), ghost(3));
}

#[test]
fn decision_of_an_unknown_kind_gets_the_first_legal_action() {
    let request = Request {
        kind: 99,
        view: Some(hand(&[4])),
        legal: vec![draw(1, &[2]), draw(2, &[J])],
        ..Default::default()
    };
    let mut game = Game::new(GameStart::default());
    assert_eq!(game.decide(&request), draw(1, &[2]));
}
