"""Play tournaments: from a file to a schedule, from a schedule to stored games, and the proof that they are right.

- `config_file` has the keys of a tournament file, `config_reader` makes a `TournamentConfig` (`config`) of them.
- `create` stores a tournament with its schedule in a league, `conduct` plays its missing games.
- `assignments` decides which worker plays which games next. `workers` and `worker` are the two ends of the
  executor of a worker process. `game_player` plays games there, with bots.
- `verify` checks a stored tournament. `archive_writer` exports one, `archive_reader` checks the file, and
  `archive_format` defines it.

From the command to the first decision of a game there are at most 12 calls (`tests/tournament/test_call_chain.py`):

     1  `cli.run.run`
     2  `cli.run.play_to_end`
     3  `cli.progress.conduct`
     4  `Conductor.play_missing_games`
     5  `Feeder.feed_worker`              one of several tasks
     6  `Workers.submit`                  into the process of a worker
     7  `worker.play_games`
     8  `GamePlayer.play_assignment`
     9  `GamePlayer._play_task`           one task for each game in flight
    10  `match.play_game`
    11  its loop over the decisions
    12  `BotPlayer.decide`
"""
