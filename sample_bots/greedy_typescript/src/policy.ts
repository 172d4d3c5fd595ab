/**
 * Makes the decisions of the bot: it returns one of the legal actions of a request. To write your
 * own bot, change this file.
 *
 * This bot takes the most cards at every decision and has no memory. Messages are plain objects.
 * Their types are in `src/generated`, which the build makes from the schema, with comments for each
 * field.
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
/** A snatched layer of this size is worth having, whatever its value. */
const MANY = 3;
const WORTH_OF_JOKER = 1000;
/** Below every card that is held already, above every other card. */
const WORTH_OF_PASSING = 99;
const WORTH_OF_DECK = 6;

/** Return the action for a request of a game with this ruleset. */
export function decide(request: Request, ruleset: Ruleset): Action {
  const view = request.view ?? View.create();
  switch (request.kind) {
    case DecisionKind.PLAY:
      return largestGain(request.legal, view, ruleset);
    case DecisionKind.TAKE_OR_LEAVE:
      return choose(isWorthHaving(view) ? Choice.TAKE : Choice.LEAVE);
    case DecisionKind.RECLAIM_OR_DISCARD:
      return choose(isWorthHaving(view) ? Choice.RECLAIM : Choice.DISCARD);
    case DecisionKind.DRAW:
    case DecisionKind.OPTIONAL_DRAW:
    case DecisionKind.GHOST_SET:
      return best(request.legal, (one, other) => worth(one, view) - worth(other, view));
    default: // a kind that a later version of the protocol may add: the first action
      return best(request.legal, () => 0);
  }
}

/** Return the play with the highest gain, then the fewest jokers, then the highest value. */
function largestGain(legal: readonly Action[], view: View, ruleset: Ruleset): Action {
  const plays = legal.flatMap(({ kind }) => (kind?.$case === "play" ? [kind.value] : []));
  const gain = (play: Layer) => size(play) * (1 + countVictims(play, view, ruleset));
  const value = best(
    plays,
    (one, other) => gain(one) - gain(other) || other.jokers - one.jokers || one.value - other.value,
  );
  return { kind: { $case: "play", value } };
}

/** Count the other seats whose top layer the play would snatch. */
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

/** Return true if the snatched layer is large or matches cards of your hand. */
function isWorthHaving({ snatched, hand }: View): boolean {
  return snatched !== undefined && (size(snatched) >= MANY || count(hand, snatched.value) >= 1);
}

/** Rate a draw, a pass, or a set of the ghost. A group is worth its best card. */
function worth({ kind }: Action, { hand }: View): number {
  switch (kind?.$case) {
    case "drawDisplay":
      return Math.max(...kind.value.cards.map((card) => worthOfCard(card, hand)));
    case "ghostValue":
      return worthOfCard(kind.value, hand);
    case "choice":
      return kind.value === Choice.PASS ? WORTH_OF_PASSING : WORTH_OF_DECK;
    default: // an action that a later version of the protocol may add
      return Number.NEGATIVE_INFINITY;
  }
}

/** Rate a card: jokers first, then by the number of copies in your hand, then by value. */
function worthOfCard(card: number, hand: readonly number[]): number {
  return card === JOKER ? WORTH_OF_JOKER : 100 * count(hand, card) + card;
}

function count(hand: readonly number[], card: number): number {
  return hand[card] ?? 0;
}

function size({ naturals, jokers }: Layer): number {
  return naturals + jokers;
}

function choose(value: Choice): Action {
  return { kind: { $case: "choice", value } };
}

/** Return the largest option by a comparison like that of `sort`; of equals, the first one. */
function best<T>(options: readonly T[], compare: (one: T, other: T) => number): T {
  return options.reduce((leader, option) => (compare(option, leader) > 0 ? option : leader));
}
