/**
 * The bot's side of the conversation without any I/O: a message of the referee in, the answer out.
 *
 * Several games may be in progress at once, and one message may speak of many; what the bot knows
 * of a game is kept here under its id.
 */

import type { BotMessage, RefereeMessage, Reply, Request } from "./generated/linko/v1/play.js";
import { Ruleset } from "./generated/linko/v1/table.js";
import { decide } from "./policy.js";

export class Session {
  readonly #rulesets = new Map<string, Ruleset>();

  /** Do what a message asks; the answer is empty where it wants none. */
  receive(message: RefereeMessage): BotMessage {
    for (const { gameId, ruleset } of message.gameStarts) {
      this.#rulesets.set(gameId, ruleset ?? Ruleset.create());
    }
    const ready = message.gameStarts.map(({ gameId }) => ({ gameId }));
    const replies = message.requests.map((request) => this.#reply(request));
    for (const { gameId } of message.gameEnds) {
      this.#rulesets.delete(gameId);
    }
    return { ready, replies };
  }

  #reply(request: Request): Reply {
    const { gameId, decisionId } = request;
    const ruleset = this.#rulesets.get(gameId);
    if (ruleset === undefined) {
      throw new Error(`asked about the game ${gameId}, which is not in progress`);
    }
    return { gameId, decisionId, action: decide(request, ruleset) };
  }
}
