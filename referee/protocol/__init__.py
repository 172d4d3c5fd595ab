"""Convert between the values of the project and the messages of `proto/linko/v1`.

`encode` writes the messages of the referee, `decode` reads those of bots, and `record` stores games.
`values` converts single values for all three. `view_bytes` writes the parts of requests as bytes, because
protobuf is too slow for them.
Processes, streams and clocks belong to `referee.bots`.
"""
