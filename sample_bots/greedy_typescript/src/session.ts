/**
 * Handles the messages of the referee, without any I/O.
 *
 * Several games may be in progress at the same time, and one message may belong to several games.
 * This class keeps what the bot remembers of each game, by game id.
 */

import type { BotMessage, RefereeMessage, Reply, Request } from "./generated/linko/v1/play.js";
import { Ruleset } from "./generated/linko/v1/table.js";
import { decide } from "./policy.js";

export class Session {
  readonly #rulesets = new Map<string, Ruleset>();

  /** Handle a message and return the answer, which is empty if none is needed. */
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
      throw new Error(`the request names the game ${gameId}, which is not in progress`);
    }
    return { gameId, decisionId, action: decide(request, ruleset) };
  }
}
