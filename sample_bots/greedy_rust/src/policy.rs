//! The thinking of the bot, and the file to change for a bot of your own: a request in, one of its
//! legal actions out.
//!
//! It grabs the most at every decision, looks no further, and remembers nothing but the rules. What
//! the fields of a request mean is said in the schema, in `proto`.

use std::cmp::Reverse;

use crate::linko::action::Kind;
use crate::linko::{Action, Choice, DecisionKind, GameStart, Layer, Request, Ruleset, View};

const THIRTEEN: u32 = 13;
const JOKER: u32 = 14;

/// A snatched layer of so many cards is worth having, whatever is in the hand.
const MANY: u32 = 3;

const JOKER_WORTH: u32 = 1000;
/// Less than any card that is held already, more than any other.
const PASS_WORTH: u32 = 99;
/// The top card of the deck is not known.
const DECK_WORTH: u32 = 6;

/// One game, as it is played from one seat. What the bot remembers of a game belongs here.
pub struct Game {
    rules: Ruleset,
}

impl Game {
    /// Gets ready for a game.
    pub fn new(start: GameStart) -> Self {
        Self {
            rules: start.ruleset.unwrap_or_default(),
        }
    }

    /// Chooses one of the legal actions. A bot with a memory adds to it here.
    pub fn decide(&mut self, request: &Request) -> Action {
        let view = request.view.as_ref().expect("a request has a view");
        match request.kind() {
            DecisionKind::Play => best(request, |action| self.gain(view, action)),
            DecisionKind::TakeOrLeave if is_worth_having(view) => say(Choice::Take),
            DecisionKind::TakeOrLeave => say(Choice::Leave),
            DecisionKind::ReclaimOrDiscard if is_worth_having(view) => say(Choice::Reclaim),
            DecisionKind::ReclaimOrDiscard => say(Choice::Discard),
            DecisionKind::Draw | DecisionKind::OptionalDraw | DecisionKind::GhostSet => {
                best(request, |action| worth(view, action))
            }
            // A kind that a later version of the protocol may add.
            DecisionKind::Unspecified => request.legal[0].clone(),
        }
    }

    /// Cards for your table and off the others'; then spare the jokers; then play the higher value.
    fn gain(&self, view: &View, action: &Action) -> Option<(u32, Reverse<u32>, u32)> {
        let Some(Kind::Play(play)) = action.kind else {
            return None;
        };
        let gain = play.size() * (1 + self.victims(view, play));
        Some((gain, Reverse(play.jokers), play.value))
    }

    /// How many other seats a play would snatch from. The duel's ghost is no seat.
    fn victims(&self, view: &View, play: Layer) -> u32 {
        (0..)
            .zip(&view.tables)
            .filter(|(seat, _)| *seat != view.seat)
            .filter_map(|(_, table)| table.layers.last())
            .map(|top| u32::from(self.snatches(play, *top)))
            .sum()
    }

    fn snatches(&self, play: Layer, top: Layer) -> bool {
        play.size() == top.size()
            && match (play.value, top.value) {
                (1, JOKER) => self.rules.ones_snatch_jokers,
                (1, THIRTEEN) => self.rules.ones_snatch_thirteens,
                (value, lower) => lower < value,
            }
    }
}

impl Layer {
    fn size(self) -> u32 {
        self.naturals + self.jokers
    }
}

impl View {
    /// How many of a card are in the hand.
    fn held(&self, card: u32) -> u32 {
        self.hand[card as usize]
    }
}

/// Whether the snatched layer would make a good layer in your own hand.
fn is_worth_having(view: &View) -> bool {
    view.snatched
        .is_some_and(|layer| layer.size() >= MANY || view.held(layer.value) >= 1)
}

/// What a draw or a set of the ghost brings. A group is worth its best card.
fn worth(view: &View, action: &Action) -> Option<u32> {
    match action.kind.as_ref()? {
        Kind::DrawDisplay(draw) => draw.cards.iter().map(|&card| card_worth(view, card)).max(),
        Kind::GhostValue(value) => Some(card_worth(view, *value)),
        Kind::Choice(choice) => match Choice::try_from(*choice).ok()? {
            Choice::DrawDeck => Some(DECK_WORTH),
            Choice::Pass => Some(PASS_WORTH),
            _ => None,
        },
        Kind::Play(_) => None,
    }
}

/// A joker before all, then what you hold most of, then the higher card.
fn card_worth(view: &View, card: u32) -> u32 {
    match card {
        JOKER => JOKER_WORTH,
        _ => 100 * view.held(card) + card,
    }
}

/// The legal action that ranks highest; of equals the first.
fn best<R: Ord>(request: &Request, rank: impl Fn(&Action) -> R) -> Action {
    let last_first = request.legal.iter().rev(); // as `max_by_key` takes the last of equals
    last_first
        .max_by_key(|action| rank(action))
        .expect("a request has legal actions")
        .clone()
}

fn say(choice: Choice) -> Action {
    Action {
        kind: Some(Kind::Choice(choice.into())),
    }
}

#[cfg(test)]
mod tests;
