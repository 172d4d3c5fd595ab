/* Show a game move by move: controls, timeline, log and board.
 *
 * The data file of a stored game calls `linkoGame`. The page of a running game, `sit.js`, calls `linko.showGame`, because
 * it uses the same controls. `board.js` reads and draws the game.
 */
"use strict";

(function () {
  const { linko } = window;
  const { make, duration, knows } = linko;

  const isSnatch = ({ kind }) => kind === "Snatched" || kind === "GhostSnatched";

  /* Show a game, and return functions that change what is shown.
   *
   * `live` is null for a stored game. For a running game it is an object of its page:
   * - `seat`: the only seat whose view is shown.
   * - `picks()`: returns what `drawBoard` makes buttons of.
   * - `pull(all)`: appends the next move to the game, or all moves that the page has.
   * - `changed()`: called after the page shows another move, or more moves.
   * While such a game runs, the page follows it: a new move is shown when it is appended. This ends when the person pauses or
   * goes back, and begins again at the newest move.
   */
  function showGame(game, live = null) {
    const names = linko.narrator(linko.phrases, game);
    const find = (id) => document.getElementById(`replay-${id}`);
    const [slider, log, speed, view, playButton] = ["slider", "log", "speed", "view", "play"].map(find);
    let position = 0;
    let viewer = live ? live.seat : null;
    let listed = 0; // the number of moves in the log
    let playing = false;
    let timer = null;
    let urlTimer = null;

    const last = () => game.moves.length;
    const runs = () => live !== null && !game.result;

    function hash(number) {
      return `#move=${number}` + (viewer === null || live ? "" : `&seat=${viewer}`);
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
      if (!live) viewer = seat >= 0 && seat < game.seats ? seat : null;
      return Number.isNaN(number) ? 0 : number;
    }

    const hasFault = (move) => move.faults.some(({ seat }) => knows(viewer, seat));
    const hasSnatch = (move) => move.events.some(isSnatch);
    const searches = Object.entries({ snatch: hasSnatch, fault: hasFault }).filter(([id]) => find(id));

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

    function drawEntry(move, index) {
      return make(
        "li",
        { class: move.events[0].kind === "Played" ? "first" : null },
        make(
          "a",
          { href: hash(index + 1), tabindex: "-1" },
          ...names.lines(index, viewer).map(drawLine),
          make("span", { class: "time" }, timeText(move)),
        ),
      );
    }

    /* Add the moves to log, timeline and slider that these do not have yet. */
    function extend() {
      log.append(...game.moves.slice(listed).map((move, at) => drawEntry(move, listed + at)));
      if (names.lastLine() && log.children.length === last()) {
        log.append(make("li", { class: "end" }, names.lastLine()));
      }
      if (listed < last() || !listed) drawTimeline();
      listed = last();
      slider.max = last();
    }

    /* Draw a bar for the time of each move, on a logarithmic scale, with marks for faults and snatches. */
    function drawTimeline() {
      const svg = find("times");
      const shape = (name, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        return element;
      };
      const most = Math.log10(10 + Math.max(0, ...game.moves.map((move) => move.elapsedUs)));
      const width = Math.min(0.8, last() / 60); // at the start of a running game, bars would be very wide
      svg.setAttribute("viewBox", `0 0 ${last()} 40`);
      svg.replaceChildren(
        ...game.moves.flatMap((move, index) => {
          const known = knows(viewer, move.seat);
          const height = known ? (26 * Math.log10(10 + move.elapsedUs)) / most : 0;
          const at = { x: index + 1 - width / 2, width };
          const bars = [shape("rect", { ...at, y: 40 - height, height, class: "time" })];
          if (hasSnatch(move)) bars.push(shape("rect", { ...at, y: 8, height: 4, class: "snatch" }));
          if (hasFault(move)) bars.push(shape("rect", { ...at, y: 0, height: 6, class: "charge" }));
          return bars;
        }),
      );
    }

    function drawTable() {
      find("board").replaceChildren(
        ...linko.drawBoard(game, names, position, viewer, live && position === last() ? live.picks() : null),
      );
    }

    function drawCount() {
      const move = game.moves[position - 1];
      slider.value = position;
      slider.setAttribute("aria-valuetext", `move ${position} of ${last()}`);
      const time = move && timeText(move);
      find("count").textContent = `move ${position} of ${last()}` + (time ? ` · ${time}` : "");
      for (const [id, matches] of searches) {
        find(id).setAttribute("aria-disabled", String(nextWith(matches) === null));
      }
    }

    function drawPosition() {
      const move = game.moves[position - 1];
      extend();
      drawTable();
      drawCount();
      const lines = move
        ? names.lines(position - 1, viewer).map(drawLine)
        : [make("span", { class: "line" }, "The cards are dealt.")];
      find("said").replaceChildren(...lines);
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
      position = Math.min(Math.max(number, 0), last());
      if (position === last() && !runs()) playing = false;
      drawPosition();
      writeUrl();
      schedule();
      if (live) live.changed();
    }

    /* Go to a position that the user chose. */
    function jump(number) {
      playing = false;
      if (number !== null) goTo(number);
      if (number !== null && position === last() && runs()) playing = true;
      schedule();
    }

    /* Show the next move after its time, if the replay plays. */
    function schedule() {
      clearTimeout(timer);
      timer = null;
      if (playing && position < last()) {
        timer = setTimeout(() => goTo(position + 1), 1000 / Number(speed.value));
      }
      playButton.classList.toggle("playing", playing);
      playButton.querySelector("span").textContent = playing ? "Pause" : "Play";
    }

    function toggle() {
      if (!playing && position === last() && !runs()) goTo(0);
      playing = !playing;
      schedule();
    }

    function forward() {
      if (live && position === last()) live.pull(false);
      jump(position + 1);
    }

    function end() {
      if (live) live.pull(true);
      jump(last());
    }

    const steps = {
      first: () => jump(0),
      back: () => jump(position - 1),
      play: toggle,
      forward,
      last: end,
    };
    for (const [id, matches] of searches) steps[id] = () => jump(nextWith(matches));
    for (const [id, step] of Object.entries(steps)) find(id).addEventListener("click", step);
    slider.addEventListener("input", () => jump(Number(slider.value)));
    speed.addEventListener("change", schedule);
    if (view) {
      for (let seat = 0; seat < game.seats; seat += 1) {
        view.append(make("option", { value: seat }, `as ${names.bot(seat)} saw it`));
      }
      view.addEventListener("change", () => {
        viewer = view.value === "" ? null : Number(view.value);
        drawAll();
        writeUrl();
      });
    }

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
      if (!new URLSearchParams(location.hash.slice(1)).has("move")) return; // a place of the page, such as #main
      jump(readUrl());
      drawAll();
      const replay = document.getElementById("replay");
      if (replay.getBoundingClientRect().bottom < 0) replay.scrollIntoView();
    });

    function drawAll() {
      if (view) view.value = viewer === null ? "" : String(viewer);
      log.replaceChildren();
      listed = 0;
      drawPosition();
    }

    document.getElementById("replay").hidden = false;
    find("missing").hidden = true;
    const plain = document.getElementById("plain-log");
    if (plain) plain.hidden = true;
    for (const link of document.querySelectorAll("[data-move]")) link.href = `#move=${link.dataset.move}`;
    position = live ? last() : Math.min(Math.max(readUrl(), 0), last());
    playing = runs();
    drawAll();
    schedule();

    return {
      names,
      drawTable,
      end,
      isNewest: () => position === last(),
      interval: () => 1000 / Number(speed.value),
      /* Show that the game has more moves, a result, or another decision. */
      grow() {
        const hasNews = listed < last() || game.result;
        if (hasNews && playing && position === listed) {
          goTo(last());
        } else {
          extend();
          drawCount();
          drawTable();
          schedule();
          live.changed();
        }
      },
    };
  }

  linko.showGame = showGame;
  window.linkoGame = (data) => showGame(linko.readGame(linko.phrases, data));
})();
