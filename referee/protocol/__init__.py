"""Convert between the values of the project and the messages of `proto/linko/v1`.

`encode` writes the messages of the referee, `decode` reads those of bots, and `record` stores games.
`values` holds the parts that they share, and `view_bytes` writes what is too slow in protobuf.
Processes, streams and clocks belong to `referee.bots`.
"""
