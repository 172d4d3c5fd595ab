"""Convert between the values of the project and the messages of `proto/linko/v1`.

`messages` writes the messages of the referee and reads those of bots, and `record` serialises game records. `values`
converts single values for these two modules and for the SDK. `view_bytes` writes views as bytes,
mostly without protobuf objects, because creating protobuf objects is slow.
Processes, streams and clocks belong to `referee.bots`.
"""
