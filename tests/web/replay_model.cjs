// Print what the replay makes of some games: the tables, the lines of each view, and durations as text.
// The input is a JSON object with `script` (the path of replay.js), `phrases`, `games` and `durations`.
"use strict";

const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { readGame, narrator, pointsOf, duration } = require(input.script);

function show(data) {
  const game = readGame(input.phrases, data);
  const names = narrator(input.phrases, game);
  const viewers = [null, ...game.tables[0].hands.keys()];
  return {
    tables: game.tables,
    points: game.tables.map((table) => table.hands.map((_, seat) => pointsOf(table, seat))),
    decisions: game.moves.map((move) => move.decision),
    lines: viewers.map((viewer) => game.moves.map((_, index) => names.lines(index, viewer))),
    lastLine: names.lastLine(),
    hands: game.tables[0].hands.map(names.countsName),
  };
}

const output = { games: input.games.map(show), durations: input.durations.map(duration) };
process.stdout.write(JSON.stringify(output));
