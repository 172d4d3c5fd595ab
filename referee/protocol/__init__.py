"""Convert between the values of the project and the messages of `proto/linko/v1`.

`encode` writes the messages of the referee, `decode` reads the messages of bots, and `record` serialises game
records. `values` converts single values for `encode`, `decode` and `record`. `view_bytes` writes views as bytes,
mostly without protobuf objects, because creating protobuf objects is slow.
Processes, streams and clocks belong to `referee.bots`.
"""
