import assert from "node:assert/strict";
import { test } from "node:test";
import { Request } from "./generated/linko/v1/play.js";
import { Action, Choice, DecisionKind, Layer, Ruleset, View } from "./generated/linko/v1/table.js";
import { decide } from "./policy.js";

const J = 14;

interface Example {
  title: string;
  kind: DecisionKind;
  /** The bot is seat 1. */
  view: View;
  ruleset?: Ruleset;
  legal: Action[];
  answer: Action;
}

const EXPERT = Ruleset.fromPartial({ onesSnatchJokers: true, onesSnatchThirteens: true });
const TAKE_OR_LEAVE = [choice(Choice.TAKE), choice(Choice.LEAVE)];
const RECLAIM_OR_DISCARD = [choice(Choice.RECLAIM), choice(Choice.DISCARD)];

const EXAMPLES: Example[] = [
  {
    title: "of equal gains the higher value is played",
    kind: DecisionKind.PLAY,
    view: view({ hand: [3, 9, 9], tops: [[2], [], [1]] }),
    legal: [play(3), play(9), play(9, 9)],
    answer: play(9),
  },
  {
    title: "without victims the largest layer is played",
    kind: DecisionKind.PLAY,
    view: view({ hand: [7, 7, 12, 12, J], tops: [[], [], []] }),
    legal: [play(7, 7), play(7, 7, J), play(12, 12), play(12, 12, J), play(J)],
    answer: play(12, 12, J),
  },
  {
    title: "a joker makes a layer larger",
    kind: DecisionKind.PLAY,
    view: view({ hand: [5, J], tops: [[], []] }),
    legal: [play(5), play(5, J), play(J)],
    answer: play(5, J),
  },
  {
    title: "of equal gains the fewest jokers are played, whatever the value",
    kind: DecisionKind.PLAY,
    view: view({ hand: [4, 4, 8, J], tops: [[], []] }),
    legal: [play(4), play(4, 4), play(4, J), play(8), play(8, J), play(J)],
    answer: play(4, 4),
  },
  {
    title: "neither own layers nor equal values are victims",
    kind: DecisionKind.PLAY,
    view: view({ hand: [6, 8, 8], tops: [[6], [5], [6]] }),
    legal: [play(6), play(8, 8), play(8)],
    answer: play(8),
  },
  {
    title: "only top layers are victims",
    kind: DecisionKind.PLAY,
    view: View.fromPartial({
      seat: 1,
      hand: counts(8, 9, 9),
      tables: [{ layers: [layer(2), layer(7, 7, 7)] }, {}],
    }),
    legal: [play(8), play(9), play(9, 9)],
    answer: play(9, 9),
  },
  {
    title: "1s snatch nothing in most rulesets",
    kind: DecisionKind.PLAY,
    view: view({ hand: [1, 10], tops: [[13], [], [J]] }),
    legal: [play(1), play(10)],
    answer: play(10),
  },
  {
    title: "1s snatch 13s and jokers by the expert rules",
    kind: DecisionKind.PLAY,
    view: view({ hand: [1, 10, 10], tops: [[13], [], [J]] }),
    ruleset: EXPERT,
    legal: [play(1), play(10), play(10, 10)],
    answer: play(1),
  },
  {
    title: "takes a card whose value it holds already",
    kind: DecisionKind.TAKE_OR_LEAVE,
    view: view({ hand: [4, 4, 10], snatched: [4] }),
    legal: TAKE_OR_LEAVE,
    answer: choice(Choice.TAKE),
  },
  {
    title: "leaves a small layer of a value that it does not hold",
    kind: DecisionKind.TAKE_OR_LEAVE,
    view: view({ hand: [4, 4, 10], snatched: [9, 9] }),
    legal: TAKE_OR_LEAVE,
    answer: choice(Choice.LEAVE),
  },
  {
    title: "reclaims three cards of any value",
    kind: DecisionKind.RECLAIM_OR_DISCARD,
    view: view({ hand: [4, 4, 10], snatched: [9, 9, J] }),
    legal: RECLAIM_OR_DISCARD,
    answer: choice(Choice.RECLAIM),
  },
  {
    title: "discards a single joker",
    kind: DecisionKind.RECLAIM_OR_DISCARD,
    view: view({ hand: [4, 4, 10], snatched: [J] }),
    legal: RECLAIM_OR_DISCARD,
    answer: choice(Choice.DISCARD),
  },
  {
    title: "draws the card of which it holds the most",
    kind: DecisionKind.DRAW,
    view: view({ hand: [4, 4, 10] }),
    legal: [choice(Choice.DRAW_DECK), draw(0, 13), draw(1, 10), draw(2, 4)],
    answer: draw(2, 4),
  },
  {
    title: "draws from the deck rather than a 6 that it does not hold",
    kind: DecisionKind.DRAW,
    view: view({ hand: [4, 4, 10] }),
    legal: [choice(Choice.DRAW_DECK), draw(0, 6), draw(1, 5), draw(2, 3)],
    answer: choice(Choice.DRAW_DECK),
  },
  {
    title: "a group is worth its best card, and of equals the leftmost is drawn",
    kind: DecisionKind.DRAW,
    view: view({ hand: [4, 4, 10] }),
    legal: [choice(Choice.DRAW_DECK), draw(0, 4), draw(3, 2, J, 13), draw(4, J)],
    answer: draw(3, 2, J, 13),
  },
  {
    title: "passes if it holds no card on display",
    kind: DecisionKind.OPTIONAL_DRAW,
    view: view({ hand: [4, 4, 10] }),
    legal: [choice(Choice.PASS), choice(Choice.DRAW_DECK), draw(0, 13), draw(1, 12), draw(2, 5)],
    answer: choice(Choice.PASS),
  },
  {
    title: "draws a card that it holds instead of passing",
    kind: DecisionKind.OPTIONAL_DRAW,
    view: view({ hand: [1, 10] }),
    legal: [choice(Choice.PASS), choice(Choice.DRAW_DECK), draw(0, 13), draw(1, 1)],
    answer: draw(1, 1),
  },
  {
    title: "snatches the ghost's set of which it holds the most",
    kind: DecisionKind.GHOST_SET,
    view: view({ hand: [4, 4, 10] }),
    legal: [ghost(3), ghost(4), ghost(10), ghost(12)],
    answer: ghost(4),
  },
  {
    title: "passes if it holds no card of the ghost's sets",
    kind: DecisionKind.GHOST_SET,
    view: view({ hand: [4, 4, 10] }),
    legal: [ghost(3), ghost(12), choice(Choice.PASS)],
    answer: choice(Choice.PASS),
  },
  {
    title: "snatches a set that it holds instead of passing",
    kind: DecisionKind.GHOST_SET,
    view: view({ hand: [3, 10] }),
    legal: [ghost(3), choice(Choice.PASS)],
    answer: ghost(3),
  },
  {
    title: "an unknown kind of decision gets the first legal action",
    kind: 99 as DecisionKind,
    view: view({ hand: [4, 4, 10] }),
    legal: [draw(1, 2), draw(2, J)],
    answer: draw(1, 2),
  },
];

for (const { title, kind, view, ruleset, legal, answer } of EXAMPLES) {
  test(`${DecisionKind[kind] ?? kind}: ${title}`, () => {
    const request = Request.fromPartial({ kind, view, legal });
    const decided = decide(request, ruleset ?? Ruleset.create());
    assert.deepEqual(Action.fromPartial(decided), Action.fromPartial(answer));
  });
}

/** Make the view of seat 1 from lists of cards; `tops` are the top layers, seat 0 first. */
function view({
  hand,
  tops = [],
  snatched,
}: {
  hand: number[];
  tops?: number[][];
  snatched?: number[];
}): View {
  return View.fromPartial({
    seat: 1,
    hand: counts(...hand),
    tables: tops.map((top) => ({ layers: top.length > 0 ? [layer(...top)] : [] })),
    snatched: snatched && layer(...snatched),
  });
}

function counts(...cards: number[]): number[] {
  return Array.from({ length: 15 }, (_, card) => cards.filter((held) => held === card).length);
}

function layer(...cards: number[]): Layer {
  const naturals = cards.filter((card) => card !== J);
  return Layer.fromPartial({
    value: naturals[0] ?? J,
    naturals: naturals.length,
    jokers: cards.length - naturals.length,
  });
}

function play(...cards: number[]): Action {
  return { kind: { $case: "play", value: layer(...cards) } };
}

function choice(value: Choice): Action {
  return { kind: { $case: "choice", value } };
}

function draw(slot: number, ...cards: number[]): Action {
  return { kind: { $case: "drawDisplay", value: { slot, cards } } };
}

function ghost(value: number): Action {
  return { kind: { $case: "ghostValue", value } };
}
