"""Convert between the values of the project and the messages of `proto/linko/v1`.

`encode` writes the messages of the referee, `decode` reads the messages of bots, and `record` serialises the
records of games.
`values` converts single values for these three modules. `view_bytes` writes views as bytes without protobuf
objects, because creating such objects is too slow.
Processes, streams and clocks belong to `referee.bots`.
"""
