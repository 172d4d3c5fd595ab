// Computes deals in another language than the referee. It was written from `proto/DEALS.md` alone. A test
// compares its deals with those of the referee.
//
//   node verifier.mjs < DEALS
//   node verifier.mjs ARCHIVE
//
// ARCHIVE is a file of `referee tournament export`. The program checks the commitments and the deck of every game with
// a public seed. DEALS has a line `SEED RULESET SEATS OPTIONS DEAL_ID` for each deal, with the seed in hexadecimal;
// OPTIONS are values of the options of the duel, such as `as-dealt,lowest`; the id is the rest of the line. For each
// line the program prints a line of JSON: the SHA-256 of the seed, the deck in drawing order, and the cards after the
// set-up. It needs Node.js 18 or newer and no packages.

import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";

const JOKER = 14;
const WORDS = 2 ** 32;
const WORDS_PER_BLOCK = 8;

/** Returns the cards of a ruleset in ascending order. */
function pack(ruleset) {
  const cards = [];
  for (let value = 1; value < JOKER; value++) cards.push(...Array(8).fill(value));
  return cards.concat(Array(ruleset === "duel" ? 1 : 5).fill(JOKER));
}

/** Returns 32 bytes that are derived from the seed. */
function block(seed, purpose, id, number) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(number));
  return createHmac("sha256", seed)
    .update(purpose).update("\0").update(id).update("\0").update(counter)
    .digest();
}

/** Yields the endless stream of 32-bit words of a deal. */
function* words(seed, dealId) {
  for (let number = 0; ; number++) {
    const bytes = block(seed, "deal", dealId, number);
    for (let word = 0; word < WORDS_PER_BLOCK; word++) yield bytes.readUInt32BE(4 * word);
  }
}

/** Returns a number below n; every number is equally likely. */
function below(n, stream) {
  const limit = WORDS - (WORDS % n);
  for (;;) {
    const word = stream.next().value;
    if (word < limit) return word % n;
  }
}

/** Returns the cards of a deal in drawing order. */
function deck(seed, dealId, ruleset) {
  const cards = pack(ruleset);
  const stream = words(seed, dealId);
  for (let i = cards.length - 1; i >= 1; i--) {
    const j = below(i + 1, stream);
    [cards[i], cards[j]] = [cards[j], cards[i]];
  }
  return cards;
}

/** Returns the SHA-256 of bytes or of a text in hexadecimal. */
function sha256(data) {
  return createHash("sha256").update(data).digest("hex");
}

/** Returns the canonical JSON (RFC 8785) of a value that JSON.parse returned. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members}}`;
}

/** Returns a line for each game of a match. */
function lines({ games, deals, stage, round, lanes, bots }) {
  return games.map((game, seating) => {
    const seated = [...bots.slice(seating), ...bots.slice(0, seating)];
    return `${[game, deals[seating], stage, round, lanes[seating], ...seated].join(" ")}\n`;
  });
}

/** Returns the SHA-256 of the schedule with these matches. */
function scheduleDigest(matches) {
  return sha256(matches.flatMap(lines).join(""));
}

/** Returns the cards after the set-up, hands and ghost sorted, and the number of cards left in the deck. */
function layOut(cards, ruleset, seats, options) {
  const rest = [...cards];
  const ascending = (a, b) => a - b;
  const duel = ruleset === "duel";
  const hands = Array.from({ length: seats }, () =>
    rest.splice(0, duel ? 11 : 13).concat(duel ? [JOKER, JOKER] : []).sort(ascending));
  const display = rest.splice(0, 6).map((card) => [card]);
  const ghost = [];
  const isDealt = (turned) => (options.includes("as-dealt") ? turned : ghost.length) >= 13;
  for (let turned = 0; duel && !isDealt(turned); turned++) {
    const card = rest.shift();
    if (card < 13) ghost.push(card);
    else slotFor(display, options).push(card);
  }
  return { hands, display, ghost: ghost.sort(ascending), left: rest.length };
}

/** Returns the slot for a 13 or joker that is turned up for the ghost. */
function slotFor(display, options) {
  const singles = options.includes("lowest") ? [] : display.filter((slot) => slot.length === 1);
  const candidates = singles.length ? singles : display;
  return candidates.reduce((lowest, slot) => (slot[0] < lowest[0] ? slot : lowest));
}

/** Returns the parts of an archive by name. The zip file stores them one after another, uncompressed. */
function parts(file) {
  const found = {};
  for (let at = 0; file.readUInt32LE(at) === 0x04034b50; ) {
    const size = file.readUInt32LE(at + 18);
    const name = at + 30;
    const content = name + file.readUInt16LE(at + 26) + file.readUInt16LE(at + 28);
    const nameEnd = name + file.readUInt16LE(at + 26);
    found[file.toString("utf8", name, nameEnd)] = file.subarray(content, content + size);
    at = content + size;
  }
  return found;
}

/** Reads the varint at `at`; returns the number and the position after it. */
function varint(bytes, at) {
  for (let number = 0, factor = 1; ; factor *= 128) {
    number += (bytes[at] & 127) * factor;
    if (bytes[at++] < 128) return [number, at];
  }
}

/** Yields the id and the deck of each record: fields 1 and 4 of a linko.v1.GameRecord. */
function* records(stream) {
  for (let at = 0, end; at < stream.length; at = end) {
    let size, key;
    [size, at] = varint(stream, at);
    end = at + size;
    const record = { id: "", deck: [] };
    while (at < end) {
      [key, at] = varint(stream, at);
      [size, at] = varint(stream, at);
      if (key % 8 !== 2) continue; // a number, which has no length
      if (key >> 3 === 1) record.id = stream.toString("utf8", at, at + size);
      if (key >> 3 === 4) record.deck = [...stream.subarray(at, at + size)];
      at += size;
    }
    yield record;
  }
}

/** Returns the parts of a tournament: the one that it was created with, then its extensions, each with its matches. */
function tournamentParts({ configuration, schedule, extensions, ...tournament }) {
  const { stages } = configuration;
  const atOnce = stages[0].balanced ? stages.length : schedule.filter(({ round }) => round === 1).length;
  const lengths = extensions.map(({ matches }) => matches * atOnce);
  let end = schedule.length - lengths.reduce((sum, length) => sum + length, 0);
  const found = [{ ...tournament, matches: schedule.slice(0, end) }];
  extensions.forEach((extension, number) => {
    found.push({ ...extension, matches: schedule.slice(end, end + lengths[number]) });
    end += lengths[number];
  });
  return found;
}

/**
 * Returns the planned matches of a part. Throws if the schedule has a match that was not planned.
 *
 * The looks of a tournament with `until` give later matches other bots, and drop matches of rulesets that are settled. Only who
 * computes the verdicts can check that; here a match is planned if it has the stage and the round of a planned one.
 */
function plannedMatches({ planned_schedule: planned, stopped_after: rounds, matches }) {
  if (!planned) return matches;
  const left = planned.filter(({ round }) => rounds === null || round <= rounds);
  for (const { stage, round } of matches) {
    const place = left.findIndex((match) => match.stage === stage && match.round === round);
    if (place < 0) throw new Error("the schedule has a match that was not planned");
    left.splice(0, place + 1);
  }
  return planned;
}

/** Checks the commitment of a part. Throws at the first thing that does not fit. */
function checkCommitment(part, configuration, bots) {
  const made = {
    seed: part.seed && sha256(Buffer.from(part.seed, "hex")),
    configuration: sha256(canonical(configuration)),
    bots: sha256(canonical(bots.map(({ bot, content_hash, manifest: { author } }) => ({ author, bot, content_hash })))),
    schedule: scheduleDigest(plannedMatches(part)),
  };
  const names = Object.keys(made);
  const terms = part.terms.split("\n").map((line) => line.split("  "));
  if (String(terms.map(([, name]) => name)) !== `${names},`) throw new Error("the terms are damaged");
  for (const [digest, name] of terms.slice(0, -1)) {
    if (made[name] !== null && made[name] !== digest) throw new Error(`${name}: not as in the terms`);
  }
  if (sha256(part.terms) !== part.commitment) throw new Error("the terms do not fit the commitment");
  const fits = part.seed ? "seed, configuration, bots and schedule fit" : "configuration, bots and schedule fit";
  console.log(`commitment ${part.commitment}: ${fits}`);
}

/** Checks the commitments and the decks of an archive, as far as the seeds are public; returns the number of decks. */
function checkArchive(file) {
  const found = parts(file);
  const tournament = JSON.parse(found["tournament.json"]);
  const bots = JSON.parse(found["bots.json"]);
  const dealt = new Map();
  for (const part of tournamentParts(tournament)) {
    checkCommitment(part, tournament.configuration, bots);
    const seed = part.seed && Buffer.from(part.seed, "hex");
    for (const { games, deals, stage } of part.matches) {
      games.forEach((id, game) => dealt.set(id, { stage, deal: deals[game], seed }));
    }
  }
  let checked = 0;
  for (const record of records(gunzipSync(found["records.binpb.gz"]))) {
    const { stage, deal, seed } = dealt.get(record.id);
    if (!seed) continue;
    const { ruleset } = tournament.configuration.stages[stage];
    const made = deck(seed, deal, ruleset.name);
    if (String(made) !== String(record.deck)) throw new Error(`${record.id}: the deck does not follow from the seed`);
    checked++;
  }
  return checked;
}

/** Returns the deal of one line of DEALS. */
function answer(line) {
  const [, hex, ruleset, seats, options, dealId] = /^([0-9a-f]{64}) (\S+) (\d+) (\S+) (.*)$/.exec(line);
  const seed = Buffer.from(hex, "hex");
  const cards = deck(seed, dealId, ruleset);
  return { seed_digest: sha256(seed), deck: cards, ...layOut(cards, ruleset, Number(seats), options.split(",")) };
}

const [archive] = process.argv.slice(2);
if (archive) {
  console.log(`${checkArchive(readFileSync(archive))} decks follow from the seed`);
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(answer(line))}\n`);
  }
}
