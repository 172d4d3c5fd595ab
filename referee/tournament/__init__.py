"""Play a tournament: read its file, store its schedule, play its games, and verify them later.

- `config_file` defines the keys of a tournament file. `config_reader` reads such a file and returns a
  `TournamentConfig`, which `config` defines.
- `create` stores a tournament with its schedule in a league. `conduct` plays the games that are missing.
- `assignments` decides which games a worker plays next. `workers` starts and watches the worker processes from the
  driver. `worker` is the code that runs in a worker process, and `game_player` plays the games there.
- `verify` checks a stored tournament. `archive_format` defines the file format of an archive, `archive_writer`
  exports a tournament as an archive, and `archive_reader` checks an archive.

`referee/README.md` lists the calls from the command line to the first decision of a game.
"""
