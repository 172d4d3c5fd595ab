"""The mapping between the project's values and the messages of `proto/linko/v1`.

`encode` writes what the referee says, `decode` reads what bots answer, `record` keeps games. Nothing
here knows a process, a stream or a clock.
"""
