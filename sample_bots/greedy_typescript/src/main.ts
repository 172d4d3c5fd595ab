/**
 * Runs the bot: connects to the referee, plays over one stream, and exits.
 *
 * Exit codes: 0 after the referee's goodbye, 1 when the bot threw an error, 2 when no referee
 * started the program, 3 when the stream broke. SIGTERM ends the program at once.
 */

import { credentials } from "@grpc/grpc-js";
import {
  BotMessage,
  type RefereeMessage,
  RefereeServiceClient,
} from "./generated/linko/v1/play.js";
import { Session } from "./session.js";

const PROTOCOL_VERSION = 1;
const MAX_GAMES = 64;
const NO_REFEREE = 2;
const STREAM_BROKEN = 3;
/** How long the referee may take to close its side of the stream after its goodbye. */
const CLOSING_MS = 1000;

const { REFEREE_ADDRESS: address, REFEREE_TOKEN: token } = process.env;
if (!address || !token) {
  console.error("This program is a bot: start it with `referee play FOLDER ANOTHER_FOLDER`.");
  process.exit(NO_REFEREE);
}
try {
  await play(address, token);
} catch (error) {
  console.error(`The stream to the referee broke: ${error}`);
  process.exit(STREAM_BROKEN);
}
setTimeout(() => process.exit(), CLOSING_MS).unref();

/** Answer messages until the goodbye. Rejects if the stream ends without one. */
function play(address: string, token: string): Promise<void> {
  const session = new Session();
  const stream = new RefereeServiceClient(address, credentials.createInsecure()).play();
  stream.write(
    BotMessage.fromPartial({
      hello: { protocolVersion: PROTOCOL_VERSION, token, name: "linko-bot", maxGames: MAX_GAMES },
    }),
  );
  return new Promise((resolve, reject) => {
    stream.on("data", (message: RefereeMessage) => {
      const answer = session.receive(message);
      if (answer.ready.length > 0 || answer.replies.length > 0) {
        stream.write(answer);
      }
      if (message.goodbye !== undefined) {
        if (message.goodbye.reason !== "") {
          console.error(`The referee said goodbye: ${message.goodbye.reason}`);
        }
        stream.end();
        resolve();
      }
    });
    stream.on("error", reject);
    stream.on("end", () => reject(new Error("the referee closed it without a goodbye")));
  });
}
