/**
 * The thinking of the bot, and the file to change: one request in, one of its legal actions out.
 *
 * It grabs the most at every decision and remembers nothing. Messages are plain objects, typed in
 * `src/generated` (made by the build); what their fields mean is said there and in the schema.
 */

import type { Request } from "./generated/linko/v1/play.js";
import {
  type Action,
  Choice,
  DecisionKind,
  type Layer,
  type Ruleset,
  View,
} from "./generated/linko/v1/table.js";

const JOKER = 14;
/** A snatched layer of so many cards is worth having whatever is in hand. */
const MANY = 3;
const WORTH_OF_JOKER = 1000;
/** Less than that of any card of which the hand has one, more than that of any other. */
const WORTH_OF_PASSING = 99;
const WORTH_OF_DECK = 6;

/** Answer a request of a game that is played by `ruleset`. */
export function decide(request: Request, ruleset: Ruleset): Action {
  const view = request.view ?? View.create();
  switch (request.kind) {
    case DecisionKind.PLAY:
      return largestGain(request.legal, view, ruleset);
    case DecisionKind.TAKE_OR_LEAVE:
      return say(isWorthHaving(view) ? Choice.TAKE : Choice.LEAVE);
    case DecisionKind.RECLAIM_OR_DISCARD:
      return say(isWorthHaving(view) ? Choice.RECLAIM : Choice.DISCARD);
    case DecisionKind.DRAW:
    case DecisionKind.OPTIONAL_DRAW:
    case DecisionKind.GHOST_SET:
      return best(request.legal, (one, other) => worth(one, view) - worth(other, view));
    default: // a kind of the future: the first
      return best(request.legal, () => 0);
  }
}

/** Most cards for your table and off the others'; then fewest jokers; then the highest value. */
function largestGain(legal: readonly Action[], view: View, ruleset: Ruleset): Action {
  const plays = legal.flatMap(({ kind }) => (kind?.$case === "play" ? [kind.value] : []));
  const gain = (play: Layer) => size(play) * (1 + countVictims(play, view, ruleset));
  const value = best(
    plays,
    (one, other) => gain(one) - gain(other) || other.jokers - one.jokers || one.value - other.value,
  );
  return { kind: { $case: "play", value } };
}

/** How many of the other seats have a top layer that the play would snatch. */
function countVictims(play: Layer, view: View, ruleset: Ruleset): number {
  return view.tables.filter(({ layers }, seat) => {
    const top = layers.at(-1);
    return seat !== view.seat && top !== undefined && snatches(play, top, ruleset);
  }).length;
}

function snatches(play: Layer, top: Layer, ruleset: Ruleset): boolean {
  return (
    size(play) === size(top) &&
    (top.value < play.value ||
      (play.value === 1 && top.value === JOKER && ruleset.onesSnatchJokers) ||
      (play.value === 1 && top.value === 13 && ruleset.onesSnatchThirteens))
  );
}

/** Whether the snatched layer would make a good layer in your own hand. */
function isWorthHaving({ snatched, hand }: View): boolean {
  return snatched !== undefined && (size(snatched) >= MANY || count(hand, snatched.value) >= 1);
}

/** What a draw, the pass, or a set of the ghost is worth. */
function worth({ kind }: Action, { hand }: View): number {
  switch (kind?.$case) {
    case "drawDisplay":
      return Math.max(...kind.value.cards.map((card) => worthOfCard(card, hand)));
    case "ghostValue":
      return worthOfCard(kind.value, hand);
    case "choice":
      return kind.value === Choice.PASS ? WORTH_OF_PASSING : WORTH_OF_DECK;
    default: // an action of the future
      return Number.NEGATIVE_INFINITY;
  }
}

/** Jokers before all, then what you hold most of, then the higher card. */
function worthOfCard(card: number, hand: readonly number[]): number {
  return card === JOKER ? WORTH_OF_JOKER : 100 * count(hand, card) + card;
}

function count(hand: readonly number[], card: number): number {
  return hand[card] ?? 0;
}

function size({ naturals, jokers }: Layer): number {
  return naturals + jokers;
}

function say(value: Choice): Action {
  return { kind: { $case: "choice", value } };
}

/** The best option by a comparison like that of `sort`, ascending; of equals, the first. */
function best<T>(options: readonly T[], compare: (one: T, other: T) => number): T {
  return options.reduce((leader, option) => (compare(option, leader) > 0 ? option : leader));
}
