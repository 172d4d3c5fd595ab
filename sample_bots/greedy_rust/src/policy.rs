//! Makes the decisions of the bot: it returns one of the legal actions of a request. To write your
//! own bot, change this file.
//!
//! This bot takes the most cards at every decision, without a plan, and remembers only the rules.
//! The schema in `proto` explains the fields of a request.

use std::cmp::Reverse;

use crate::linko::action::Kind;
use crate::linko::{Action, Choice, DecisionKind, GameStart, Layer, Request, Ruleset, View};

const THIRTEEN: u32 = 13;
const JOKER: u32 = 14;

/// A snatched layer of this size is worth having, whatever its value.
const MANY: u32 = 3;

const JOKER_WORTH: u32 = 1000;
/// Below every card that is held already, above every other card.
const PASS_WORTH: u32 = 99;
/// The top card of the deck is unknown.
const DECK_WORTH: u32 = 6;

/// One game, seen from one seat. Everything that the bot remembers of a game belongs here.
pub struct Game {
    rules: Ruleset,
}

impl Game {
    /// Prepares for a game.
    pub fn new(start: GameStart) -> Self {
        Self {
            rules: start.ruleset.unwrap_or_default(),
        }
    }

    /// Returns one of the legal actions. A bot that remembers something updates its fields here.
    pub fn decide(&mut self, request: &Request) -> Action {
        let view = request.view.as_ref().expect("a request has a view");
        match request.kind() {
            DecisionKind::Play => best(request, |action| self.gain(view, action)),
            DecisionKind::TakeOrLeave if is_worth_having(view) => choose(Choice::Take),
            DecisionKind::TakeOrLeave => choose(Choice::Leave),
            DecisionKind::ReclaimOrDiscard if is_worth_having(view) => choose(Choice::Reclaim),
            DecisionKind::ReclaimOrDiscard => choose(Choice::Discard),
            DecisionKind::Draw | DecisionKind::OptionalDraw | DecisionKind::GhostSet => {
                best(request, |action| worth(view, action))
            }
            // A kind that a later version of the protocol may add.
            DecisionKind::Unspecified => request.legal[0].clone(),
        }
    }

    /// Rates a play by the cards that you gain and the others lose, then few jokers, then value.
    fn gain(&self, view: &View, action: &Action) -> Option<(u32, Reverse<u32>, u32)> {
        let Some(Kind::Play(play)) = action.kind else {
            return None;
        };
        let gain = play.size() * (1 + self.victims(view, play));
        Some((gain, Reverse(play.jokers), play.value))
    }

    /// Counts the other seats from which a play would snatch. The duel's ghost is not a seat.
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
    /// Counts the copies of a card in the hand.
    fn held(&self, card: u32) -> u32 {
        self.hand[card as usize]
    }
}

/// Returns true if the snatched layer is large or matches cards of your hand.
fn is_worth_having(view: &View) -> bool {
    view.snatched
        .is_some_and(|layer| layer.size() >= MANY || view.held(layer.value) >= 1)
}

/// Rates a draw or a set of the ghost by its best card.
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

/// Rates a card: jokers first, then by the number of copies in your hand, then by value.
fn card_worth(view: &View, card: u32) -> u32 {
    match card {
        JOKER => JOKER_WORTH,
        _ => 100 * view.held(card) + card,
    }
}

/// Returns the legal action with the highest rank; of equals, the first one.
fn best<R: Ord>(request: &Request, rank: impl Fn(&Action) -> R) -> Action {
    let last_first = request.legal.iter().rev(); // because `max_by_key` returns the last of equals
    last_first
        .max_by_key(|action| rank(action))
        .expect("a request has legal actions")
        .clone()
}

fn choose(choice: Choice) -> Action {
    Action {
        kind: Some(Kind::Choice(choice.into())),
    }
}

#[cfg(test)]
mod tests;
