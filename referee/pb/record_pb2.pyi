from referee.pb import play_pb2 as _play_pb2
from referee.pb import table_pb2 as _table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GameRecord(_message.Message):
    __slots__ = ("game_id", "ruleset", "seating", "deck", "moves", "faults", "result", "clocks", "isolation", "started_at_us", "duration_us", "max_strikes", "dropped", "machine")
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    RULESET_FIELD_NUMBER: _ClassVar[int]
    SEATING_FIELD_NUMBER: _ClassVar[int]
    DECK_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CLOCKS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_US_FIELD_NUMBER: _ClassVar[int]
    DURATION_US_FIELD_NUMBER: _ClassVar[int]
    MAX_STRIKES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    ruleset: _table_pb2.Ruleset
    seating: _containers.RepeatedCompositeFieldContainer[Seating]
    deck: _containers.RepeatedScalarFieldContainer[int]
    moves: _containers.RepeatedCompositeFieldContainer[Move]
    faults: _containers.RepeatedCompositeFieldContainer[Fault]
    result: Result
    clocks: _play_pb2.Clocks
    isolation: str
    started_at_us: int
    duration_us: int
    max_strikes: int
    dropped: _containers.RepeatedScalarFieldContainer[int]
    machine: Machine
    def __init__(self, game_id: _Optional[str] = ..., ruleset: _Optional[_Union[_table_pb2.Ruleset, _Mapping]] = ..., seating: _Optional[_Iterable[_Union[Seating, _Mapping]]] = ..., deck: _Optional[_Iterable[int]] = ..., moves: _Optional[_Iterable[_Union[Move, _Mapping]]] = ..., faults: _Optional[_Iterable[_Union[Fault, _Mapping]]] = ..., result: _Optional[_Union[Result, _Mapping]] = ..., clocks: _Optional[_Union[_play_pb2.Clocks, _Mapping]] = ..., isolation: _Optional[str] = ..., started_at_us: _Optional[int] = ..., duration_us: _Optional[int] = ..., max_strikes: _Optional[int] = ..., dropped: _Optional[_Iterable[int]] = ..., machine: _Optional[_Union[Machine, _Mapping]] = ...) -> None: ...

class Machine(_message.Message):
    __slots__ = ("host", "cpu", "speed", "noise")
    HOST_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    host: str
    cpu: str
    speed: int
    noise: float
    def __init__(self, host: _Optional[str] = ..., cpu: _Optional[str] = ..., speed: _Optional[int] = ..., noise: _Optional[float] = ...) -> None: ...

class Seating(_message.Message):
    __slots__ = ("name", "version", "usage")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    usage: Usage
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("cpu_us", "peak_memory_kib")
    CPU_US_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_KIB_FIELD_NUMBER: _ClassVar[int]
    cpu_us: int
    peak_memory_kib: int
    def __init__(self, cpu_us: _Optional[int] = ..., peak_memory_kib: _Optional[int] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("seat", "action", "elapsed_us", "lag_us", "stand_in", "wall_us", "batch_size")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_US_FIELD_NUMBER: _ClassVar[int]
    LAG_US_FIELD_NUMBER: _ClassVar[int]
    STAND_IN_FIELD_NUMBER: _ClassVar[int]
    WALL_US_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    seat: int
    action: _table_pb2.Action
    elapsed_us: int
    lag_us: int
    stand_in: bool
    wall_us: int
    batch_size: int
    def __init__(self, seat: _Optional[int] = ..., action: _Optional[_Union[_table_pb2.Action, _Mapping]] = ..., elapsed_us: _Optional[int] = ..., lag_us: _Optional[int] = ..., stand_in: _Optional[bool] = ..., wall_us: _Optional[int] = ..., batch_size: _Optional[int] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("seat", "cause", "forfeit", "move", "detail", "exit_code", "signal", "elapsed_us", "stderr_tail", "wall_us", "batch_size")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    FORFEIT_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_US_FIELD_NUMBER: _ClassVar[int]
    STDERR_TAIL_FIELD_NUMBER: _ClassVar[int]
    WALL_US_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    seat: int
    cause: str
    forfeit: bool
    move: int
    detail: str
    exit_code: int
    signal: str
    elapsed_us: int
    stderr_tail: str
    wall_us: int
    batch_size: int
    def __init__(self, seat: _Optional[int] = ..., cause: _Optional[str] = ..., forfeit: _Optional[bool] = ..., move: _Optional[int] = ..., detail: _Optional[str] = ..., exit_code: _Optional[int] = ..., signal: _Optional[str] = ..., elapsed_us: _Optional[int] = ..., stderr_tail: _Optional[str] = ..., wall_us: _Optional[int] = ..., batch_size: _Optional[int] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("termination", "scores", "ranks", "forfeited")
    TERMINATION_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    FORFEITED_FIELD_NUMBER: _ClassVar[int]
    termination: _table_pb2.Termination
    scores: _containers.RepeatedScalarFieldContainer[int]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    forfeited: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, termination: _Optional[_Union[_table_pb2.Termination, str]] = ..., scores: _Optional[_Iterable[int]] = ..., ranks: _Optional[_Iterable[int]] = ..., forfeited: _Optional[_Iterable[int]] = ...) -> None: ...
