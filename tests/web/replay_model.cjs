// Print what the replay makes of some games: the tables, the lines of each view, and durations as text.
// The input is a JSON object with `script` (the path of board.js), `phrases`, `games`, `running` and `durations`. A value in
// `running` is a game as a seat gets it. Its moves are appended one after the other.
"use strict";

const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { readGame, appendMoves, narrator, pointsOf, duration } = require(input.script);

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

function grow({ moves, ...start }) {
  const game = readGame(input.phrases, start);
  const names = narrator(input.phrases, game);
  const lines = moves.map((move, index) => {
    appendMoves(input.phrases, game, { moves: [move], stand_ins: start.stand_ins });
    return names.lines(index, start.seat);
  });
  return { tables: game.tables, lines, lastLine: names.lastLine() };
}

const output = {
  games: input.games.map(show),
  running: input.running.map(grow),
  durations: input.durations.map(duration),
};
process.stdout.write(JSON.stringify(output));
