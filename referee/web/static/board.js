/* Read a game, and draw it on a board. The replay and the page of a running game use this script.
 *
 * This is a classic script without dependencies, because a page that was opened from a folder can load no module scripts. What other
 * scripts may use is in the global object `linko`. `phrases.js` calls `linkoPhrases` with the sentence patterns of all games.
 * `referee/web/board.py` describes them, and the data of a game.
 *
 * Part 1 makes the tables and sentences of a game. It knows no page, so that Node can test it. Part 2 draws them.
 * An event says which cards moved, and `CHANGES` moves them. Of the rules, only three are here: the points of a seat, which
 * seat is active, and which cards a seat sees.
 *
 * In a running game, the hand of another seat has unknown cards. The count at the index `HIDDEN` is their number.
 */
"use strict";

(function () {
  const HIDDEN = 0;
  const JOKER = 14;

  // Part 1: tables and sentences

  const CHANGES = {
    Played(table, { seat, layer }) {
      table.turn += 1;
      table.active = seat;
      lose(table.hands[seat], layerCards(layer));
      table.layers[seat].push(layer);
    },
    Snatched(table, { attacker, victim, layer }) {
      table.layers[victim].pop();
      table.snatched = { attacker, victim, layer };
    },
    Taken: intoHand,
    Left() {},
    Reclaimed: intoHand,
    Discarded(table, { layer }) {
      gain(table.discards, layerCards(layer));
      table.snatched = null;
    },
    Drawn(table, { seat, slot, cards }) {
      gain(table.hands[seat], cards);
      if (slot === null) table.deck -= 1;
      else table.display[slot] = [];
    },
    DisplayRefilled(table, { cards }) {
      turnUp(table, cards);
    },
    GhostSnatched(table, { seat, layer }) {
      lose(table.ghost, layerCards(layer));
      gain(table.hands[seat], layerCards(layer));
    },
    GhostRefilled(table, { ghost_cards: ghostCards, display_cards: displayCards }) {
      table.deck -= ghostCards.length;
      gain(table.ghost, ghostCards);
      turnUp(table, displayCards);
    },
    GhostDeclined() {},
    Passed() {},
    GameOver() {},
  };

  function intoHand(table, { seat, layer }) {
    gain(table.hands[seat], layerCards(layer));
    table.snatched = null;
  }

  function turnUp(table, slotCards) {
    table.deck -= slotCards.length;
    for (const [slot, card] of slotCards) table.display[slot].push(card);
  }

  function gain(counts, cards) {
    for (const card of cards) counts[card] += 1;
  }

  /* Take cards away. A card that is not among the known cards was one of the unknown cards. */
  function lose(counts, cards) {
    for (const card of cards) counts[counts[card] ? card : HIDDEN] -= 1;
  }

  function layerCards([value, naturals, jokers]) {
    return [...Array(naturals).fill(value), ...Array(jokers).fill(JOKER)];
  }

  function total(counts) {
    return counts.reduce((sum, count) => sum + count, 0);
  }

  function pointsOf(table, seat) {
    const played = table.layers[seat].map(([, naturals, jokers]) => naturals + jokers);
    return total(played) - total(table.hands[seat]);
  }

  /* Return a game with its moves, and `tables`: the table before the first move and after each move.
   *
   * For a running game, `data` has no `moves` and no `result`. `upcoming` is the decision after the last move, or null.
   */
  function readGame(phrases, data) {
    const table = {
      hands: data.start.hands,
      layers: data.bots.map(() => []),
      display: data.start.display,
      deck: data.start.deck,
      discards: Array(JOKER + 1).fill(0),
      ghost: data.start.ghost,
      snatched: null,
      turn: 0,
      active: null,
    };
    const seats = data.bots.length;
    const game = { result: null, ...data, seats, moves: [], tables: [copy(table)], upcoming: null };
    if (data.moves) appendMoves(phrases, game, data);
    return game;
  }

  /* Append moves to a game. `stand_ins` and `faults` name moves by their index in the whole game. */
  function appendMoves(phrases, game, { moves, stand_ins: standIns, faults = [] }) {
    for (const [seat, decision, elapsedUs, ...events] of moves) {
      const index = game.moves.length;
      const before = game.tables[index];
      const table = copy(before);
      const move = {
        seat,
        decision: phrases.decisions[decision],
        elapsedUs,
        standIn: standIns.includes(index),
        faults: faults.filter((fault) => fault[0] === index).map(readFault),
        events: events.map((event) => readEvent(phrases, event)),
      };
      for (const event of move.events) CHANGES[event.kind](table, event);
      // The event `Played` begins a turn. The table before this event already shows the number and the active seat of the turn.
      if (move.events[0].kind === "Played") Object.assign(before, { turn: table.turn, active: seat });
      game.moves.push(move);
      game.tables.push(table);
    }
  }

  function copy(value) {
    return JSON.parse(JSON.stringify(value));
  }

  function readEvent(phrases, [code, ...values]) {
    const { kind, fields, text } = phrases.events[code];
    return { kind, text, ...Object.fromEntries(fields.map((field, at) => [field, values[at]])) };
  }

  function readFault([, seat, cause, forfeit, detail]) {
    return { seat, cause, forfeit: Boolean(forfeit), detail };
  }

  /* Return the event as `viewer` may see it; null sees all cards. */
  function redact(event, viewer) {
    const hidden = event.kind === "Drawn" && event.slot === null;
    return hidden && viewer !== null && event.seat !== viewer
      ? { ...event, cards: [HIDDEN] }
      : event;
  }

  /* Return true if `viewer` may see the private data of `seat`, such as its hand; null may see all. */
  function knows(viewer, seat) {
    return viewer === null || viewer === seat;
  }

  function fill(text, places) {
    return text.replace(/\{(\w+)\}/g, (_, place) => places[place]);
  }

  /* Writes the sentences of a game, those of `Narrator` in `referee/reports/playthrough.py`. */
  function narrator(phrases, game) {
    const { parts, cards: names } = phrases;
    const several = (card, copies) => (copies === 1 ? "" : `${copies}×`) + names[card];
    const list = (texts, between) => texts.join(between) || "-";
    const bot = (seat) => fill(parts.bot, { name: game.bots[seat], seat });
    const layerName = ([value, naturals, jokers]) =>
      [[value, naturals], [JOKER, jokers]]
        .filter(([, copies]) => copies)
        .map(([card, copies]) => several(card, copies))
        .join("+");
    const groupName = (cards) => list(cards.map((card) => names[card]), "+");
    const slots = (slotCards) =>
      slotCards
        .map(([slot, card]) => fill(parts.into_slot, { card: names[card], slot }))
        .join(", ");
    const places = {
      Drawn: ({ seat, slot, cards }) => ({
        seat: bot(seat),
        cards: groupName(cards),
        source: slot === null ? parts.deck : fill(parts.slot, { slot }),
      }),
      DisplayRefilled: ({ cards }) => ({ slots: slots(cards) }),
      GhostRefilled: ({ ghost_cards: ghostCards, display_cards: displayCards }) => ({
        cards: list(ghostCards.map((card) => names[card]), " "),
        display: displayCards.length ? fill(parts.display, { slots: slots(displayCards) }) : "",
      }),
      GameOver: ({ termination, scores, ranks }) => ({
        termination,
        result: ranks
          .map((rank, seat) => ({ rank, seat }))
          .sort((one, other) => one.rank - other.rank || one.seat - other.seat)
          .map(({ rank, seat }) => fill(parts.place, { rank, bot: bot(seat), score: scores[seat] }))
          .join(", "),
      }),
    };
    const otherPlaces = (event) => ({
      seat: bot(event.seat),
      attacker: bot(event.attacker),
      victim: bot(event.victim),
      layer: event.layer && layerName(event.layer),
    });
    const describe = (event) => fill(event.text, (places[event.kind] || otherPlaces)(event));
    const charge = ({ seat, cause, forfeit, detail }) =>
      fill(parts.charge, { bot: bot(seat), cost: forfeit ? parts.forfeit : parts.strike, cause, detail });
    const countsName = (counts) =>
      list(counts.flatMap((copies, card) => (copies ? [several(card, copies)] : [])), " ");

    /* Return the lines of a move as `{start, text, kind}`; `start` is the number of the turn or nothing. */
    function lines(index, viewer) {
      const move = game.moves[index];
      const charges = move.faults
        .filter(({ seat }) => knows(viewer, seat))
        .map((fault) => ({ start: "", text: charge(fault), kind: "charge" }));
      const events = move.events.map((event, place) => ({
        start: event.kind === "Played" ? fill(parts.turn, game.tables[index]) : "",
        text:
          describe(redact(event, viewer)) +
          (move.standIn && !place && knows(viewer, move.seat) ? parts.stand_in : ""),
        kind: event.kind,
      }));
      return [...charges, ...events];
    }

    function lastLine() {
      if (!game.result || !game.result.forfeited.length) return "";
      const { forfeited, ranks } = game.result;
      return fill(parts.forfeited, { bots: forfeited.map(bot).join(", "), ranks: ranks.join(" ") });
    }
    return { bot, layerName, groupName, countsName, cardName: (card) => names[card], lines, lastLine };
  }

  /* Return microseconds as text, like `duration` in `referee/reports/formats.py`. Exact halves are rounded up here, to even there. */
  function duration(us) {
    if (us < 1e3) return `${us} µs`;
    // above these limits, the text would be `1000.0 ms` or `60.0 s`
    if (us < 1e6 - 50) return `${(us / 1e3).toFixed(1)} ms`;
    if (us < 60e6 - 50e3) return `${(us / 1e6).toFixed(1)} s`;
    const seconds = Math.round(us / 1e6);
    const two = (number) => String(number).padStart(2, "0");
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    return hours
      ? `${hours}:${two(minutes)}:${two(seconds % 60)} h`
      : `${minutes}:${two(seconds % 60)} min`;
  }

  if (typeof module !== "undefined") {
    module.exports = { readGame, appendMoves, narrator, pointsOf, duration };
    return;
  }

  // Part 2: the board

  /* Make an element. `children` are elements and texts; a text can never become markup. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== false) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  /* Draw `copies` equal cards: the front card, and an edge for each other copy. */
  function drawCards(names, card, copies, classes = "") {
    const group = make("span", { class: `cards ${classes}` });
    for (let edge = 1; edge < copies; edge += 1) group.append(make("i", { class: `playing-card v${card}` }));
    const front = make("b", { class: `playing-card v${card}` }, names.cardName(card));
    if (copies > 1) front.append(make("small", {}, `×${copies}`));
    group.append(front);
    return group;
  }

  function drawBacks(count) {
    const backs = make("span", { class: "backs" });
    for (let at = 0; at < count; at += 1) backs.append(make("i", { class: "playing-card back" }));
    return backs;
  }

  function drawCounts(names, counts, fresh = new Set()) {
    return counts.flatMap((copies, card) =>
      copies ? [drawCards(names, card, copies, fresh.has(card) ? "fresh" : "")] : [],
    );
  }

  function drawLayer(names, layer, classes) {
    const [value, naturals, jokers] = layer;
    const group = make("span", { class: `layer ${classes}`, title: names.layerName(layer) });
    if (naturals) group.append(drawCards(names, value, naturals));
    if (jokers) group.append(drawCards(names, JOKER, jokers));
    return group;
  }

  /* A layer under others shows only its edge: value, number of cards, and a mark for jokers. */
  function drawCovered(names, layer) {
    const [value, naturals, jokers] = layer;
    const size = naturals + jokers;
    const card = make("b", { class: `playing-card v${value}` }, names.cardName(value));
    if (size > 1) card.append(make("small", {}, `×${size}`));
    const joined = naturals && jokers ? "mixed" : "";
    return make("span", { class: `layer covered ${joined}`, title: names.layerName(layer) }, card);
  }

  /* Make a button with cards on it. A screen reader says `text` instead of the cards. */
  function drawButton(text, classes, choose, ...cards) {
    for (const card of cards) card.setAttribute("aria-hidden", "true");
    const button = make(
      "button",
      { type: "button", class: classes, title: text },
      make("span", { class: "unseen" }, text),
      ...cards,
    );
    button.addEventListener("click", choose);
    return button;
  }

  function pointsText(points) {
    return `${points} ${Math.abs(points) === 1 ? "point" : "points"}`;
  }

  /* Return what the last move changed: cards that went into hands, layers, slots, piles. */
  function changesOf(move, viewer) {
    const fresh = { hands: new Map(), layer: null, emptied: new Set(), slots: new Set(), piles: new Set() };
    const toHand = (seat, cards) =>
      fresh.hands.set(seat, new Set([...(fresh.hands.get(seat) || []), ...cards]));
    for (const event of move ? move.events : []) {
      if (event.kind === "Played") fresh.layer = event.seat;
      if (event.kind === "Discarded") fresh.piles.add("discards");
      if (event.kind === "Snatched") fresh.piles.add("snatched");
      if (event.kind === "GhostSnatched" || event.kind === "GhostRefilled") fresh.piles.add("ghost");
      if (["Taken", "Reclaimed", "GhostSnatched"].includes(event.kind)) {
        toHand(event.seat, layerCards(event.layer));
      }
      if (event.kind === "Drawn") {
        toHand(event.seat, redact(event, viewer).cards);
        if (event.slot === null) fresh.piles.add("deck");
        else fresh.emptied.add(event.slot);
      }
      const turnedUp = event.kind === "DisplayRefilled" ? event.cards : event.display_cards || [];
      for (const [slot] of turnedUp) fresh.slots.add(slot);
    }
    return fresh;
  }

  /* Draw the table after `position` moves.
   *
   * `picks` makes buttons of the slots and of the deck that can be drawn: `slots` maps the number of a slot to an object with
   * `text` and `choose`, `deck` is such an object or nothing, and `disabled` says that no button can be pressed now.
   */
  function drawBoard(game, names, position, viewer, picks = null) {
    const table = game.tables[position];
    const fresh = changesOf(game.moves[position - 1], viewer);
    const upcoming = position === game.moves.length ? game.upcoming : null;
    const next = game.moves[position] || upcoming;
    const active = upcoming && upcoming.begins ? upcoming.seat : table.active;
    const result = position === game.moves.length ? game.result : null;
    const bottom = viewer === null ? 0 : viewer;
    const others = make("div", { class: "others" });
    for (let offset = 1; offset < game.seats; offset += 1) {
      others.append(drawSeat((bottom + offset) % game.seats));
    }
    return [others, drawMiddle(), drawSeat(bottom)];

    function drawSeat(seat) {
      const held = total(table.hands[seat]);
      const open = knows(viewer, seat);
      const gained = fresh.hands.get(seat);
      const layers = table.layers[seat];
      const marks = make("span", { class: "marks" });
      if (next && active === seat) marks.append(make("span", { class: "turn" }, "turn"));
      if (next && next.seat === seat) marks.append(make("span", { class: "decides" }, next.decision));
      if (result) marks.append(make("span", { class: "turn" }, `rank ${result.ranks[seat]}`));
      if (result && result.forfeited.includes(seat)) {
        marks.append(make("span", { class: "forfeited" }, "forfeited"));
      }
      const covered = layers.slice(0, -1).map((layer) => drawCovered(names, layer));
      const top = layers
        .slice(-1)
        .map((layer) => drawLayer(names, layer, fresh.layer === seat ? "upper fresh" : "upper"));
      const what = open ? names.countsName(table.hands[seat]) : `${held} hidden`;
      const states = [next && active === seat && "active", next && next.seat === seat && "deciding"];
      const hand = make(
        "div",
        { class: "zone" },
        make("span", { class: gained ? "caption fresh-text" : "caption" }, `hand ${held}`),
        make(
          "div",
          { class: "row hand", role: "img", "aria-label": `hand: ${what}` },
          ...(open ? drawCounts(names, table.hands[seat], gained) : [drawBacks(held)]),
        ),
      );
      const listed = layers.map(names.layerName).join(" | ") || "-";
      const stack = make(
        "div",
        { class: "zone" },
        make("span", { class: "caption" }, `layers ${layers.length}`),
        make(
          "div",
          { class: "row stack", role: "img", "aria-label": `layers, top last: ${listed}` },
          ...covered,
          ...top,
        ),
      );
      return make(
        "section",
        { class: ["seat", ...states.filter(Boolean)].join(" "), "data-seat": seat, "aria-label": names.bot(seat) },
        make(
          "header",
          {},
          make("span", { class: "number", "aria-hidden": "true" }, String(seat)),
          make("span", { class: "name", title: game.bots[seat] }, game.bots[seat]),
          marks,
          make("span", { class: "points" }, pointsText(pointsOf(table, seat))),
        ),
        make("div", { class: "zones" }, hand, stack),
      );
    }

    /* An image hides its parts from a screen reader, so a pile with buttons is a group. */
    function drawPile(title, classes, label, ...content) {
      const role = content.some(({ tagName }) => tagName === "BUTTON") ? "group" : "img";
      return make(
        "div",
        { class: `pile ${classes}` },
        make("span", { class: "caption" }, title),
        make("div", { class: "row", role, "aria-label": label }, ...content),
      );
    }

    function drawPick({ text, choose }, classes, ...cards) {
      const button = drawButton(text, `${classes} choice pick`, choose, ...cards);
      button.disabled = picks.disabled;
      return button;
    }

    function drawMiddle() {
      const { snatched, display, deck, discards, ghost } = table;
      const thrown = total(discards);
      const isFresh = (pile) => (fresh.piles.has(pile) ? "fresh" : "");
      const back = deck ? `playing-card back ${isFresh("deck")}` : "playing-card empty";
      const top = make("b", { class: back }, String(deck));
      const middle = make("div", { class: "middle" });
      middle.append(
        drawPile(
          "deck",
          "deck",
          `deck: ${deck} ${deck === 1 ? "card" : "cards"}`,
          picks && picks.deck ? drawPick(picks.deck, "slot", top) : top,
        ),
        drawPile(
          "display",
          "display",
          `display: ${display.map((cards, slot) => `${slot}: ${names.groupName(cards)}`).join(", ")}`,
          ...display.map((cards, slot) => drawSlot(cards, slot)),
        ),
        drawPile(
          "snatched layer",
          "snatched",
          snatched
            ? `${names.layerName(snatched.layer)}, snatched by ${names.bot(snatched.attacker)} from ${names.bot(snatched.victim)}`
            : "no snatched layer",
          ...(snatched
            ? [
                drawLayer(names, snatched.layer, `upper ${isFresh("snatched")}`),
                make(
                  "span",
                  { class: "route" },
                  make("span", { class: "number" }, String(snatched.victim)),
                  " → ",
                  make("span", { class: "number" }, String(snatched.attacker)),
                ),
              ]
            : [make("i", { class: "playing-card empty" })]),
        ),
        drawPile(
          `discards ${thrown}`,
          "discards",
          `discard pile: ${names.countsName(discards)}`,
          ...(thrown
            ? discards.flatMap((copies, card) => (copies ? [drawThrown(card, copies)] : []))
            : [make("i", { class: "playing-card empty" })]),
        ),
      );
      if (isFresh("discards")) middle.lastElementChild.classList.add("fresh");
      if (ghost) {
        middle.append(
          drawPile(
            `ghost ${total(ghost)}`,
            `ghost ${isFresh("ghost")}`,
            `ghost: ${names.countsName(ghost)}`,
            ...drawCounts(names, ghost),
          ),
        );
      }
      return middle;
    }

    function drawThrown(card, copies) {
      return drawCovered(names, card === JOKER ? [card, 0, copies] : [card, copies, 0]);
    }

    function drawSlot(cards, slot) {
      const state = [fresh.slots.has(slot) && "fresh", fresh.emptied.has(slot) && "emptied"];
      const classes = ["slot", ...state.filter(Boolean)].join(" ");
      const drawn = cards.length
        ? cards.map((card) => make("b", { class: `playing-card v${card}` }, names.cardName(card)))
        : [make("i", { class: "playing-card empty" })];
      const pick = picks && picks.slots.get(slot);
      return pick ? drawPick(pick, classes, ...drawn) : make("span", { class: classes }, ...drawn);
    }
  }

  window.linko = {
    phrases: null,
    readGame,
    appendMoves,
    narrator,
    duration,
    knows,
    make,
    drawBoard,
    drawButton,
    drawCards,
    drawLayer,
    pointsText,
  };
  window.linkoPhrases = (phrases) => {
    window.linko.phrases = phrases;
  };
})();
