"""Play tournaments: from a file to a schedule, from the schedule to stored games, and from these to a proof.

- `config_file` defines the keys of a tournament file. `config_reader` makes a `TournamentConfig` (`config`) of it.
- `create` stores a tournament with its schedule in a league. `conduct` plays its missing games.
- `assignments` decides which games a worker plays next. `workers` is the driver's side of the worker processes,
  `worker` is their own side. `game_player` plays the games there, with bots.
- `verify` checks a stored tournament. `archive_writer` exports one, `archive_reader` checks the file, and
  `archive_format` defines it.

`referee/README.md` lists the calls from the command line to the first decision of a game.
"""
