"""Play tournaments: from a file to a schedule, from the schedule to stored games, and from these to a proof.

- `config_file` defines the keys of a tournament file. `config_reader` makes a `TournamentConfig` (`config`) of it.
- `create` stores a tournament with its schedule in a league. `conduct` plays its missing games.
- `assignments` decides which games a worker plays next. `workers` is the driver's side of the worker processes,
  `worker` is their own side. `game_player` plays the games there, with bots.
- `verify` checks a stored tournament. `archive_writer` exports one, `archive_reader` checks the file, and
  `archive_format` defines it.

From the entry point of the command line to the first decision of a game there are at most 12 calls
(`tests/tournament/test_call_chain.py`):

        `cli.app.run`                     the entry point
     1  `cli.run.run`                     the command `tournament run`
     2  `cli.run.play_to_end`
     3  `cli.progress.conduct`
     4  `Conductor.play_missing_games`
     5  `Feeder.feed_worker`              a task; each worker has several
     6  `Workers.submit`                  sends an assignment to the process of a worker
     7  `worker.play_games`               in that process
     8  `GamePlayer.play_assignment`
     9  `GamePlayer._play_task`           a task for each game in flight
    10  `match.play.play_game`
    11  `_Run.play`                       the loop over the decisions
    12  `BotPlayer.decide`
"""
