/* Replay one game on a board.
 *
 * This is a classic script without dependencies, because a page that was opened from a folder may load nothing else. Two more
 * scripts hand over their data when they are loaded: `phrases.js` calls `linkoPhrases`, the data file of the game
 * calls `linkoGame`. `referee/web/board.py` describes both values.
 *
 * Part 1 makes the tables and sentences of a game. It knows no page, so that Node can test it. Part 2 shows them.
 * An event says which cards moved, and `CHANGES` moves them. Only three rules of the game are here: the points of a seat, which
 * seat is active, and what a seat may see.
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
      gain(table.hands[seat], layerCards(layer), -1);
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
      gain(table.ghost, layerCards(layer), -1);
      gain(table.hands[seat], layerCards(layer));
    },
    GhostRefilled(table, { ghost_cards: ghostCards, display_cards: displayCards }) {
      table.deck -= ghostCards.length;
      gain(table.ghost, ghostCards);
      turnUp(table, displayCards);
    },
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

  function gain(counts, cards, sign = 1) {
    for (const card of cards) counts[card] += sign;
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

  /* Return a game with its moves, and `tables`: the table before the first move and after each move. */
  function readGame(phrases, data) {
    const moves = data.moves.map(([seat, decision, elapsedUs, ...events], index) => ({
      seat,
      decision: phrases.decisions[decision],
      elapsedUs,
      standIn: data.stand_ins.includes(index),
      faults: data.faults.filter((fault) => fault[0] === index).map(readFault),
      events: events.map((event) => readEvent(phrases, event)),
    }));
    const seats = data.bots.length;
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
    const tables = [copy(table)];
    for (const move of moves) {
      for (const event of move.events) CHANGES[event.kind](table, event);
      tables.push(copy(table));
    }
    // The event `Played` begins a turn. The table before this event already shows the number and the active seat of the turn.
    moves.forEach((move, index) => {
      if (move.events[0].kind !== "Played") return;
      tables[index].active = move.seat;
      tables[index].turn += 1;
    });
    return { ...data, seats, moves, tables };
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

  /* Return true if `viewer` knows what only the bot on `seat` and the referee know, such as its hand. */
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
      const { forfeited, ranks } = game.result;
      if (!forfeited.length) return "";
      return fill(parts.forfeited, { bots: forfeited.map(bot).join(", "), ranks: ranks.join(" ") });
    }
    return { bot, layerName, groupName, countsName, cardName: (card) => names[card], lines, lastLine };
  }

  /* Return microseconds as text, like `duration` in `referee/reports/formats.py`. Exact halves are rounded up here, to even there. */
  function duration(us) {
    if (us < 1e3) return `${us} µs`;
    if (us < 1e6) return `${(us / 1e3).toFixed(1)} ms`;
    if (us < 60e6) return `${(us / 1e6).toFixed(1)} s`;
    const seconds = Math.floor(us / 1e6);
    const two = (number) => String(number).padStart(2, "0");
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    return hours
      ? `${hours}:${two(minutes)}:${two(seconds % 60)} h`
      : `${minutes}:${two(seconds % 60)} min`;
  }

  if (typeof module !== "undefined") {
    module.exports = { readGame, narrator, pointsOf, duration };
    return;
  }

  // Part 2: the page

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

  function drawBoard(game, names, position, viewer) {
    const table = game.tables[position];
    const fresh = changesOf(game.moves[position - 1], viewer);
    const next = game.moves[position];
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
      if (next && table.active === seat) marks.append(make("span", { class: "turn" }, "turn"));
      if (next && next.seat === seat) marks.append(make("span", { class: "decides" }, next.decision));
      if (!next) marks.append(make("span", { class: "turn" }, `rank ${game.result.ranks[seat]}`));
      if (!next && game.result.forfeited.includes(seat)) {
        marks.append(make("span", { class: "forfeited" }, "forfeited"));
      }
      const covered = layers.slice(0, -1).map((layer) => drawCovered(names, layer));
      const top = layers
        .slice(-1)
        .map((layer) => drawLayer(names, layer, fresh.layer === seat ? "upper fresh" : "upper"));
      const what = open ? names.countsName(table.hands[seat]) : `${held} hidden`;
      const states = [next && table.active === seat && "active", next && next.seat === seat && "deciding"];
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

    function drawPile(title, classes, label, ...content) {
      return make(
        "div",
        { class: `pile ${classes}` },
        make("span", { class: "caption" }, title),
        make("div", { class: "row", role: "img", "aria-label": label }, ...content),
      );
    }

    function drawMiddle() {
      const { snatched, display, deck, discards, ghost } = table;
      const thrown = total(discards);
      const isFresh = (pile) => (fresh.piles.has(pile) ? "fresh" : "");
      const back = deck ? `playing-card back ${isFresh("deck")}` : "playing-card empty";
      const middle = make("div", { class: "middle" });
      middle.append(
        drawPile("deck", "deck", `deck: ${deck} cards`, make("b", { class: back }, String(deck))),
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
      return make(
        "span",
        { class: ["slot", ...state.filter(Boolean)].join(" ") },
        ...(cards.length
          ? cards.map((card) => make("b", { class: `playing-card v${card}` }, names.cardName(card)))
          : [make("i", { class: "playing-card empty" })]),
      );
    }
  }

  const isSnatch = ({ kind }) => kind === "Snatched" || kind === "GhostSnatched";

  function start(phrases, data) {
    const game = readGame(phrases, data);
    const names = narrator(phrases, game);
    const last = game.moves.length;
    const find = (id) => document.getElementById(`replay-${id}`);
    const [slider, log, speed, view, playButton] = ["slider", "log", "speed", "view", "play"].map(find);
    let position = 0;
    let viewer = null;
    let timer = null;
    let urlTimer = null;

    function hash(number) {
      return `#move=${number}` + (viewer === null ? "" : `&seat=${viewer}`);
    }

    /* A browser limits how often a page may change its URL, so it changes when the replay rests. */
    function writeUrl() {
      clearTimeout(urlTimer);
      urlTimer = setTimeout(() => history.replaceState(null, "", hash(position)), 150);
    }

    function readUrl() {
      const wanted = new URLSearchParams(location.hash.slice(1));
      const number = Number.parseInt(wanted.get("move"), 10);
      const seat = Number.parseInt(wanted.get("seat"), 10);
      viewer = seat >= 0 && seat < game.seats ? seat : null;
      position = Math.min(Math.max(Number.isNaN(number) ? 0 : number, 0), last);
    }

    const hasFault = (move) => move.faults.some(({ seat }) => knows(viewer, seat));
    const hasSnatch = (move) => move.events.some(isSnatch);

    /* Return the position after the next move that `matches`, or null. */
    function nextWith(matches) {
      const index = game.moves.findIndex((move, at) => at >= position && matches(move));
      return index < 0 ? null : index + 1;
    }

    function timeText(move) {
      if (!knows(viewer, move.seat)) return "";
      return move.standIn && !move.elapsedUs ? "" : duration(move.elapsedUs);
    }

    function drawLine({ start: turn, text, kind }) {
      const line = make("span", { class: `line ${kind}` });
      if (turn) line.append(make("span", { class: "turn-number" }, turn), " ");
      line.append(text);
      return line;
    }

    function drawLog() {
      const entries = game.moves.map((move, index) =>
        make(
          "li",
          { class: move.events[0].kind === "Played" ? "first" : null },
          make(
            "a",
            { href: hash(index + 1), tabindex: "-1" },
            ...names.lines(index, viewer).map(drawLine),
            make("span", { class: "time" }, timeText(move)),
          ),
        ),
      );
      if (names.lastLine()) entries.push(make("li", { class: "end" }, names.lastLine()));
      log.replaceChildren(...entries);
    }

    /* Draw a bar for the time of each move, on a logarithmic scale, with marks for faults and snatches. */
    function drawTimeline() {
      const svg = find("times");
      const shape = (name, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        return element;
      };
      const most = Math.log10(10 + Math.max(...game.moves.map((move) => move.elapsedUs)));
      svg.setAttribute("viewBox", `0 0 ${last} 40`);
      svg.replaceChildren(
        ...game.moves.flatMap((move, index) => {
          const known = knows(viewer, move.seat);
          const height = known ? (26 * Math.log10(10 + move.elapsedUs)) / most : 0;
          const at = { x: index + 0.6, width: 0.8 };
          const bars = [shape("rect", { ...at, y: 40 - height, height, class: "time" })];
          if (hasSnatch(move)) bars.push(shape("rect", { ...at, y: 8, height: 4, class: "snatch" }));
          if (hasFault(move)) bars.push(shape("rect", { ...at, y: 0, height: 6, class: "charge" }));
          return bars;
        }),
      );
    }

    function drawPosition() {
      const move = game.moves[position - 1];
      find("board").replaceChildren(...drawBoard(game, names, position, viewer));
      slider.value = position;
      slider.setAttribute("aria-valuetext", `move ${position} of ${last}`);
      const time = move && timeText(move);
      find("count").textContent = `move ${position} of ${last}` + (time ? ` · ${time}` : "");
      const lines = move
        ? names.lines(position - 1, viewer).map(drawLine)
        : [make("span", { class: "line" }, "The cards are dealt.")];
      find("said").replaceChildren(...lines);
      for (const [id, matches] of [["snatch", hasSnatch], ["fault", hasFault]]) {
        find(id).setAttribute("aria-disabled", String(nextWith(matches) === null));
      }
      const old = log.querySelector("[aria-current]");
      if (old) old.removeAttribute("aria-current");
      const entry = position ? log.children[position - 1].firstElementChild : null;
      if (entry) {
        entry.setAttribute("aria-current", "step");
        log.scrollTop = entry.offsetTop - log.clientHeight / 2 + entry.offsetHeight / 2;
      } else {
        log.scrollTop = 0;
      }
    }

    function goTo(number) {
      position = Math.min(Math.max(number, 0), last);
      if (position === last) pause();
      drawPosition();
      writeUrl();
    }

    /* Go to a position that the user chose. */
    function jump(number) {
      pause();
      if (number !== null) goTo(number);
    }

    function showPlaying(playing) {
      playButton.classList.toggle("playing", playing);
      playButton.querySelector("span").textContent = playing ? "Pause" : "Play";
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      showPlaying(false);
    }

    function play() {
      if (position === last) goTo(0);
      clearInterval(timer);
      timer = setInterval(() => goTo(position + 1), 1000 / Number(speed.value));
      showPlaying(true);
    }

    function toggle() {
      if (timer === null) play();
      else pause();
    }

    const steps = {
      first: () => jump(0),
      back: () => jump(position - 1),
      play: toggle,
      forward: () => jump(position + 1),
      last: () => jump(last),
      snatch: () => jump(nextWith(hasSnatch)),
      fault: () => jump(nextWith(hasFault)),
    };
    for (const [id, step] of Object.entries(steps)) find(id).addEventListener("click", step);
    slider.max = last;
    slider.addEventListener("input", () => jump(Number(slider.value)));
    speed.addEventListener("change", () => timer !== null && play());
    for (let seat = 0; seat < game.seats; seat += 1) {
      view.append(make("option", { value: seat }, `as ${names.bot(seat)} saw it`));
    }
    view.addEventListener("change", () => {
      viewer = view.value === "" ? null : Number(view.value);
      drawAll();
      writeUrl();
    });

    const keys = { " ": "play", ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last" };
    document.addEventListener("keydown", (event) => {
      const step = keys[event.key];
      const busy = event.target.closest("input, select, textarea, summary, pre, .scroll");
      const pressed = event.key === " " && event.target.closest("button, a");
      if (!step || busy || pressed || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      steps[step]();
    });
    addEventListener("hashchange", () => {
      pause();
      readUrl();
      drawAll();
      const replay = document.getElementById("replay");
      if (replay.getBoundingClientRect().bottom < 0) replay.scrollIntoView();
    });

    function drawAll() {
      view.value = viewer === null ? "" : String(viewer);
      drawLog();
      drawTimeline();
      drawPosition();
    }

    document.getElementById("replay").hidden = false;
    find("missing").hidden = true;
    const plain = document.getElementById("plain-log");
    if (plain) plain.hidden = true;
    readUrl();
    drawAll();
  }

  let phrases = null;
  window.linkoPhrases = (value) => {
    phrases = value;
  };
  window.linkoGame = (data) => start(phrases, data);
})();
