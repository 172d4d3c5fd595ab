"""Run bots as processes and speak with them over their streams.

`manifest`, `snapshot` and `build` deal with a bot's folder. `server`, `session`, `inbox` and `clock` deal with
its stream. `process` combines both for one running bot; `player` keeps these processes and plays games with
them. Everything that is true of any untrusted program is in `referee.sandbox`.
"""
