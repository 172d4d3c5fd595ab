"""Run bots as processes and speak with them over their streams.

`manifest`, `snapshot` and `build` deal with the folder of a bot. `server`, `session`, `inbox` and `clock` deal
with the stream of a bot. `process` starts the program in the folder and opens the stream; `player` keeps the bot
processes and plays games with them. `referee.sandbox` starts, limits and ends any untrusted program, bot or not.
"""
