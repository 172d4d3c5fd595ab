/* Play at one seat of a running game.
 *
 * The page requests the moves that it does not have yet, and the server replies when there is something new. The
 * page shows these moves one after the other. At the newest move, it shows the actions that the person can choose.
 * `templates/sit.html` has the address of the game. The data are those of `referee/web/board.py`, without the cards that the
 * person's seat may not see. Names and texts come from strangers, so they only ever become text.
 */
"use strict";

(function () {
  const { linko } = window;
  const { make } = linko;
  const RETRY_MS = 1000;
  const LONGEST_REQUEST_MS = 30_000; // the server replies after 20 s at the latest
  const PROMPTS = {
    "to play": "play a layer",
    "to take or leave": "take the snatched layer or leave it",
    "to reclaim or discard": "reclaim your layer or discard it",
    "to draw": "draw from the deck or the display",
    "to draw or pass": "draw or pass",
    "to choose a set of the ghost": "choose a set of the ghost to snatch: its cards of one value",
  };
  const ENDS = {
    out: "A player has played the last card.",
    exhausted: "The deck and the display are empty.",
    "deck-empty": "The deck is empty.",
    "turn-limit": "The game has reached its last turn.",
  };
  const PLACES = ["first", "second", "third", "fourth", "fifth"];

  const find = (id) => document.getElementById(id);
  const [panel, state, nowButton, list] = ["sit", "sit-state", "sit-now", "sit-choices"].map(find);
  const { address } = panel.dataset;
  const seat = Number(panel.dataset.seat);

  let game = null;
  let replay = null;
  let received = 0; // the number of moves that the server has sent
  const queue = []; // the moves that are not shown yet
  const standIns = [];
  let timer = null; // shows the next move of the queue
  let decision = null; // the person's decision, until the server has accepted an action
  let decided = 0; // the number of the last decision that is not pending any more
  let listed = 0; // the number of the decision whose actions are in the panel
  let sending = false;
  let over = false; // whether nothing more will happen in the game
  let result = null;
  let storage = null; // what the league has of the finished game: "being stored", "stored" or null

  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // Talk with the server

  /* Return the response, or null if the server cannot be reached or has an error. */
  async function request(path, options) {
    const controller = new AbortController();
    const deadline = setTimeout(() => controller.abort(), LONGEST_REQUEST_MS);
    try {
      const response = await fetch(address + path, { ...options, cache: "no-store", signal: controller.signal });
      if (response.status >= 500) return null;
      return { status: response.status, value: response.status === 200 ? await response.json() : null };
    } catch {
      return null;
    } finally {
      clearTimeout(deadline);
    }
  }

  /* Request news until the game is over and not being stored. A response without news must not lead to a fast loop of requests. */
  async function follow() {
    while (!over || storage === "being stored") {
      const began = performance.now();
      const response = await request(`/moves?after=${game ? received : -1}&decision=${decision ? decision.number : 0}`);
      find("sit-lost").hidden = response !== null;
      if (response !== null && response.value === null) {
        endWithoutGame();
        return;
      }
      const isNew = response !== null && receive(response.value);
      if (!isNew) await wait(RETRY_MS - (performance.now() - began));
    }
  }

  /* Send an action until the server has replied with status 204. If the server has the action already, the second reply is 409. */
  async function send(index) {
    if (sending) return;
    const { number } = decision;
    const body = new URLSearchParams({ number, choice: index });
    if (panel.contains(document.activeElement) || document.activeElement.matches(".pick")) panel.focus({ preventScroll: true });
    sending = true;
    showPanel();
    let response = null;
    while (response === null && decision && decision.number === number) {
      response = await request("", { method: "POST", body });
      find("sit-lost").hidden = response !== null;
      if (response === null) await wait(RETRY_MS);
    }
    sending = false;
    if (response === null || response.status === 204 || response.status === 409) {
      decided = number;
      if (decision && decision.number === number) decision = null;
    } else if (response.status === 404) {
      endWithoutGame();
    } else {
      showProblem("The server has refused this action. Choose another one.");
    }
    update();
    replay.drawTable();
    showPanel();
  }

  /* Show that the game is over, because the server was started again or has forgotten the game. */
  function endWithoutGame() {
    showProblem("The server does not have this game any more.");
    over = true;
    storage = null;
    decision = null;
    if (game) showMoves(false);
    else showPanel();
  }

  /* Take over news of the server. Return false if it has nothing new. */
  function receive(news) {
    showProblem(news.problem);
    const isFirst = !game && news.game;
    if (isFirst) {
      game = linko.readGame(linko.phrases, news.game);
      replay = linko.showGame(game, { seat, picks, pull, changed: showPanel });
    }
    received += news.moves.length;
    queue.push(...news.moves);
    standIns.push(...news.stand_ins);
    const before = decision && decision.number;
    decision = news.decision && news.decision.number !== decided ? news.decision : null;
    const isEnd = over !== news.over || storage !== news.storage;
    ({ over, result, storage } = news);
    const isNew = news.moves.length || isFirst || isEnd || (decision && decision.number) !== before;
    if (!game) showPanel();
    else if (isNew) showMoves(isFirst);
    return isNew;
  }

  // Show the moves

  /* Append the next move to the game, or all moves that the page has. */
  function pull(all) {
    const moves = queue.splice(0, all ? queue.length : 1);
    linko.appendMoves(linko.phrases, game, { moves, stand_ins: standIns });
    update();
  }

  /* Update what follows the last move: the result, or the next decision if the page knows it. */
  function update() {
    const { decisions } = linko.phrases;
    if (over && !queue.length) game.result = result;
    const [who, kind] = queue[0] || (decision ? [seat, decision.kind] : [null, null]);
    game.upcoming =
      who === null ? null : { seat: who, decision: decisions[kind], begins: decisions[kind] === "to play" };
  }

  /* Show the person's own move without a pause. If the page was loaded again after such a move, show all moves together. */
  function showMoves(isFirst) {
    const isOwn = ([who]) => who === seat;
    if (isFirst && queue.some(isOwn)) pull(true);
    while (queue.length && isOwn(queue[0])) pull(false);
    update();
    replay.grow();
    drain();
  }

  /* Show the other moves one after the other. */
  function drain() {
    if (timer !== null || !queue.length) return;
    timer = setTimeout(() => {
      timer = null;
      pull(false);
      replay.grow();
      drain();
    }, replay.interval());
  }

  // The panel with the actions

  const canChoose = () => decision !== null && !queue.length && replay.isNewest();

  function showPanel() {
    const isOver = over && !queue.length;
    const isNewest = !replay || replay.isNewest();
    nowButton.hidden = isNewest;
    for (const id of ["sit-end", "sit-leave"]) find(id).hidden = (id === "sit-end") !== isOver;
    const text = isOver ? endText() : turnText(isNewest);
    if (state.textContent !== text) state.textContent = text;
    find("sit-replay").hidden = result === null;
    const wanted = game && canChoose() ? decision.number : 0;
    if (wanted !== listed) {
      if (list.contains(document.activeElement)) panel.focus({ preventScroll: true });
      list.replaceChildren(...(wanted ? drawChoices() : []));
    }
    listed = wanted;
    for (const button of document.querySelectorAll("#replay .choice")) button.disabled = sending;
  }

  function turnText(isNewest) {
    if (!game) return "The game is being prepared.";
    if (!received && !decision && !decided) return "The bots are being started.";
    if (!decision || (queue.length && isNewest)) return "The bots decide.";
    return isNewest ? `Your decision: ${PROMPTS[linko.phrases.decisions[decision.kind]]}.` : "You must decide.";
  }

  function endText() {
    if (result === null) return "The game has ended without a result.";
    const { termination, scores, ranks, forfeited } = result;
    const equal = ranks.flatMap((rank, other) =>
      rank === ranks[seat] && other !== seat ? [replay.names.bot(other)] : [],
    );
    const place = `You are ${PLACES[ranks[seat] - 1]} of ${ranks.length}`;
    const shared = equal.length ? `, equal with ${equal.join(" and ")}` : "";
    const left = forfeited.includes(seat) ? "You have forfeited the game. " : "";
    return `${left}${ENDS[termination] || termination} ${place}${shared}, with ${linko.pointsText(scores[seat])}.${storage ? ` The game is ${storage}.` : ""}`;
  }

  /* Return the argument `picks` of `drawBoard`; null if the person cannot choose now. */
  function picks() {
    if (!replay || !canChoose()) return null;
    const found = { slots: new Map(), deck: null, disabled: sending };
    decision.choices.forEach((choice, index) => {
      const pick = { text: choice.text, choose: () => send(index) };
      if (choice.deck) found.deck = pick;
      if (choice.slot !== undefined) found.slots.set(choice.slot, pick);
    });
    return found;
  }

  /* Return rows of buttons, one row for each value of a layer. If a layer is snatched, it is shown first. */
  function drawChoices() {
    const rows = new Map();
    const table = game.tables[game.moves.length];
    decision.choices.forEach((choice, index) => {
      const button = drawChoice(choice, table, () => send(index));
      const value = choice.layer ? choice.layer[0] : 0;
      if (!rows.has(value)) rows.set(value, []);
      rows.get(value).push(button);
    });
    const drawn = [...rows].map(([value, buttons]) => {
      const label = value ? `value ${replay.names.cardName(value)}` : "actions";
      const classes = decision.choices.some(({ deck, slot }) => deck || slot !== undefined) ? "choice-row with-cards" : "choice-row";
      return make("div", { class: classes, role: "group", "aria-label": label }, ...buttons);
    });
    if (table.snatched) drawn.unshift(linko.drawLayer(replay.names, table.snatched.layer, "upper"));
    return drawn;
  }

  function drawChoice({ text, layer, slot, deck }, table, choose) {
    const { names } = replay;
    if (layer) return linko.drawButton(text, "choice", choose, linko.drawLayer(names, layer, ""));
    const cards = slot === undefined ? [] : table.display[slot].map((card) => linko.drawCards(names, card, 1));
    if (deck) cards.push(make("i", { class: "playing-card back" }));
    const shown = make("span", { class: "cards-of-choice", "aria-hidden": "true" }, ...cards);
    const button = make("button", { type: "button", class: "choice" }, ...(cards.length ? [shown] : []));
    button.append(make("span", { class: "text-of-choice" }, text));
    button.addEventListener("click", choose);
    return button;
  }

  /* Show a problem, or hide the last one if `text` is null. If the text is the same, it is not written again, so that a screen reader does not read it twice. */
  function showProblem(text) {
    const problem = find("sit-problem");
    problem.hidden = text === null;
    if (text !== null && problem.textContent !== text) problem.textContent = text;
  }

  /* Ignore the second click of a double click: the reply to the first one can put a button of the next decision under the pointer. */
  find("replay").addEventListener(
    "click",
    (event) => {
      if (event.detail > 1 && event.target.closest(".choice")) event.stopPropagation();
    },
    true,
  );

  nowButton.addEventListener("click", () => {
    replay.end();
    panel.focus({ preventScroll: true });
  });
  find("replay").hidden = false;
  find("replay-missing").hidden = true;
  showPanel();
  follow();
})();
