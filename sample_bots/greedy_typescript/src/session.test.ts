import assert from "node:assert/strict";
import { test } from "node:test";
import { BotMessage, RefereeMessage } from "./generated/linko/v1/play.js";
import { type Action, Choice, DecisionKind } from "./generated/linko/v1/table.js";
import { Session } from "./session.js";

const ONE = play(1);
const TEN = play(10);

test("requests of several games are answered in order by the rules of each game", () => {
  const session = new Session();
  const started = session.receive(
    RefereeMessage.fromPartial({
      gameStarts: [
        { gameId: "expert", ruleset: { onesSnatchThirteens: true } },
        { gameId: "basic", ruleset: {} },
      ],
    }),
  );
  assertAnswer(started, { ready: [{ gameId: "expert" }, { gameId: "basic" }] });

  const answer = session.receive(
    RefereeMessage.fromPartial({ requests: [request("basic", 4), request("expert", 7)] }),
  );
  assertAnswer(answer, {
    replies: [
      { gameId: "basic", decisionId: 4, action: TEN },
      { gameId: "expert", decisionId: 7, action: ONE },
    ],
  });
});

test("one message can start a game, request decisions of two games, and end a game", () => {
  const session = new Session();
  session.receive(RefereeMessage.fromPartial({ gameStarts: [{ gameId: "old" }] }));
  const answer = session.receive(
    RefereeMessage.fromPartial({
      gameStarts: [{ gameId: "new" }],
      requests: [request("new", 1), request("old", 9)],
      gameEnds: [{ gameId: "old" }],
    }),
  );
  assertAnswer(answer, {
    ready: [{ gameId: "new" }],
    replies: [
      { gameId: "new", decisionId: 1, action: TEN },
      { gameId: "old", decisionId: 9, action: TEN },
    ],
  });
});

test("a finished game is forgotten", () => {
  const session = new Session();
  session.receive(RefereeMessage.fromPartial({ gameStarts: [{ gameId: "over" }] }));
  assertAnswer(session.receive(RefereeMessage.fromPartial({ gameEnds: [{ gameId: "over" }] })), {});
  assert.throws(
    () => session.receive(RefereeMessage.fromPartial({ requests: [request("over", 1)] })),
    /over, which is not in progress/,
  );
});

test("an action with fields of a later schema is sent back unchanged", () => {
  const action = [0x10, Choice.PASS, 0x98, 0x06, 0x2a]; // choice, and 42 in the unknown field 99
  const requestBytes = [0x10, 7, 0x18, 99, 0x32, action.length, ...action]; // decision 7 of kind 99
  const message = [0x0a, 0, 0x12, requestBytes.length, ...requestBytes]; // the game "" starts

  const answer = new Session().receive(RefereeMessage.decode(Uint8Array.from(message)));

  const reply = [0x10, 7, 0x1a, action.length, ...action];
  assert.deepEqual(
    [...BotMessage.encode(answer).finish()],
    [0x12, 0, 0x1a, reply.length, ...reply], // ready for the game ""
  );
});

/** A request to play against a single 13, which a 1 snatches only by the expert rules. */
function request(gameId: string, decisionId: number) {
  return {
    gameId,
    decisionId,
    kind: DecisionKind.PLAY,
    view: { seat: 0, tables: [{}, { layers: [{ value: 13, naturals: 1 }] }] },
    legal: [ONE, TEN],
  };
}

function play(value: number): Action {
  return { kind: { $case: "play", value: { value, naturals: 1, jokers: 0 } } };
}

function assertAnswer(answer: BotMessage, expected: Partial<BotMessage>): void {
  assert.deepEqual(BotMessage.fromPartial(answer), BotMessage.fromPartial(expected));
}
