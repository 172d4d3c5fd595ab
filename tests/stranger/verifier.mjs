// A stranger's view of the deals: written from the README's "Deals that anyone can check" alone, in
// another language than the referee, so that a test can hold both to that page.
//
//   node verifier.mjs < DEALS
//
// DEALS has a line `SEED RULESET SEATS DEAL_ID` for each deal, the seed in hexadecimal; the id is the
// rest of the line. Each is answered with a line of JSON: the commitment to the seed, the deck in drawing
// order, and how it is laid out. Needs Node.js 18 or newer and no packages.

import { createHash, createHmac } from "node:crypto";
import { createInterface } from "node:readline";

const JOKER = 14;
const WORDS = 2 ** 32;
const WORDS_PER_BLOCK = 8;

/** The pack of a ruleset, before it is shuffled. */
function pack(ruleset) {
  const cards = [];
  for (let value = 1; value < JOKER; value++) cards.push(...Array(8).fill(value));
  return cards.concat(Array(ruleset === "duel" ? 1 : 5).fill(JOKER));
}

/** 32 bytes that are derived from the seed. */
function block(seed, purpose, id, number) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(number));
  return createHmac("sha256", seed)
    .update(purpose).update("\0").update(id).update("\0").update(counter)
    .digest();
}

/** The endless stream of 32-bit words of a deal. */
function* words(seed, dealId) {
  for (let number = 0; ; number++) {
    const bytes = block(seed, "deal", dealId, number);
    for (let word = 0; word < WORDS_PER_BLOCK; word++) yield bytes.readUInt32BE(4 * word);
  }
}

/** A number below n, made of the next word that favours none. */
function below(n, stream) {
  const limit = WORDS - (WORDS % n);
  for (;;) {
    const word = stream.next().value;
    if (word < limit) return word % n;
  }
}

/** The cards of a deal in drawing order. */
export function deck(seed, dealId, ruleset) {
  const cards = pack(ruleset);
  const stream = words(seed, dealId);
  for (let i = cards.length - 1; i >= 1; i--) {
    const j = below(i + 1, stream);
    [cards[i], cards[j]] = [cards[j], cards[i]];
  }
  return cards;
}

/** What is published of a seed before the first deal. */
export function commitment(seed) {
  return createHash("sha256").update(seed).digest("hex");
}

/** Where the cards lie before the first turn; hands and ghost are sorted, the rest of the deck is left. */
export function layOut(cards, ruleset, seats) {
  const rest = [...cards];
  const ascending = (a, b) => a - b;
  const duel = ruleset === "duel";
  const hands = Array.from({ length: seats }, () =>
    rest.splice(0, duel ? 11 : 13).concat(duel ? [JOKER, JOKER] : []).sort(ascending));
  const display = rest.splice(0, 6).map((card) => [card]);
  const ghost = [];
  while (duel && ghost.length < 13) {
    const card = rest.shift();
    if (card < 13) ghost.push(card);
    else slotFor(display).push(card);
  }
  return { hands, display, ghost: ghost.sort(ascending), left: rest.length };
}

/** The slot that a 13 or joker goes onto while the ghost is laid out. */
function slotFor(display) {
  const singles = display.filter((slot) => slot.length === 1);
  const candidates = singles.length ? singles : display;
  return candidates.reduce((lowest, slot) => (slot[0] < lowest[0] ? slot : lowest));
}

for await (const line of createInterface({ input: process.stdin })) {
  const [, hex, ruleset, seats, dealId] = /^([0-9a-f]{64}) (\S+) (\d+) (.*)$/.exec(line);
  const seed = Buffer.from(hex, "hex");
  const cards = deck(seed, dealId, ruleset);
  const answer = { commitment: commitment(seed), deck: cards, ...layOut(cards, ruleset, Number(seats)) };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
