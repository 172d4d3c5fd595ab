from referee.pb import table_pb2 as _table_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BotMessage(_message.Message):
    __slots__ = ("hello", "ready", "replies")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    ready: _containers.RepeatedCompositeFieldContainer[Ready]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., ready: _Optional[_Iterable[_Union[Ready, _Mapping]]] = ..., replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol_version", "token", "name", "max_games", "batch_wait_us")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_GAMES_FIELD_NUMBER: _ClassVar[int]
    BATCH_WAIT_US_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    token: str
    name: str
    max_games: int
    batch_wait_us: int
    def __init__(self, protocol_version: _Optional[int] = ..., token: _Optional[str] = ..., name: _Optional[str] = ..., max_games: _Optional[int] = ..., batch_wait_us: _Optional[int] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ("game_id",)
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    def __init__(self, game_id: _Optional[str] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("game_id", "decision_id", "action")
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    decision_id: int
    action: _table_pb2.Action
    def __init__(self, game_id: _Optional[str] = ..., decision_id: _Optional[int] = ..., action: _Optional[_Union[_table_pb2.Action, _Mapping]] = ...) -> None: ...

class RefereeMessage(_message.Message):
    __slots__ = ("game_starts", "requests", "game_ends", "goodbye")
    GAME_STARTS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    GAME_ENDS_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    game_starts: _containers.RepeatedCompositeFieldContainer[GameStart]
    requests: _containers.RepeatedCompositeFieldContainer[Request]
    game_ends: _containers.RepeatedCompositeFieldContainer[GameEnd]
    goodbye: Goodbye
    def __init__(self, game_starts: _Optional[_Iterable[_Union[GameStart, _Mapping]]] = ..., requests: _Optional[_Iterable[_Union[Request, _Mapping]]] = ..., game_ends: _Optional[_Iterable[_Union[GameEnd, _Mapping]]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ...) -> None: ...

class GameStart(_message.Message):
    __slots__ = ("game_id", "ruleset", "view", "clocks", "seed", "names", "max_strikes")
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    RULESET_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CLOCKS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    MAX_STRIKES_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    ruleset: _table_pb2.Ruleset
    view: _table_pb2.View
    clocks: Clocks
    seed: int
    names: _containers.RepeatedScalarFieldContainer[str]
    max_strikes: int
    def __init__(self, game_id: _Optional[str] = ..., ruleset: _Optional[_Union[_table_pb2.Ruleset, _Mapping]] = ..., view: _Optional[_Union[_table_pb2.View, _Mapping]] = ..., clocks: _Optional[_Union[Clocks, _Mapping]] = ..., seed: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., max_strikes: _Optional[int] = ...) -> None: ...

class Clocks(_message.Message):
    __slots__ = ("start_up_us", "game_start_us", "decision_us", "bank_us", "increment_us")
    START_UP_US_FIELD_NUMBER: _ClassVar[int]
    GAME_START_US_FIELD_NUMBER: _ClassVar[int]
    DECISION_US_FIELD_NUMBER: _ClassVar[int]
    BANK_US_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_US_FIELD_NUMBER: _ClassVar[int]
    start_up_us: int
    game_start_us: int
    decision_us: int
    bank_us: int
    increment_us: int
    def __init__(self, start_up_us: _Optional[int] = ..., game_start_us: _Optional[int] = ..., decision_us: _Optional[int] = ..., bank_us: _Optional[int] = ..., increment_us: _Optional[int] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("game_id", "decision_id", "kind", "view", "events", "legal", "time_left_us", "bank_left_us", "last_elapsed_us")
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    LEGAL_FIELD_NUMBER: _ClassVar[int]
    TIME_LEFT_US_FIELD_NUMBER: _ClassVar[int]
    BANK_LEFT_US_FIELD_NUMBER: _ClassVar[int]
    LAST_ELAPSED_US_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    decision_id: int
    kind: _table_pb2.DecisionKind
    view: _table_pb2.View
    events: _containers.RepeatedCompositeFieldContainer[_table_pb2.Event]
    legal: _containers.RepeatedCompositeFieldContainer[_table_pb2.Action]
    time_left_us: int
    bank_left_us: int
    last_elapsed_us: int
    def __init__(self, game_id: _Optional[str] = ..., decision_id: _Optional[int] = ..., kind: _Optional[_Union[_table_pb2.DecisionKind, str]] = ..., view: _Optional[_Union[_table_pb2.View, _Mapping]] = ..., events: _Optional[_Iterable[_Union[_table_pb2.Event, _Mapping]]] = ..., legal: _Optional[_Iterable[_Union[_table_pb2.Action, _Mapping]]] = ..., time_left_us: _Optional[int] = ..., bank_left_us: _Optional[int] = ..., last_elapsed_us: _Optional[int] = ...) -> None: ...

class GameEnd(_message.Message):
    __slots__ = ("game_id", "events", "ranks", "forfeited", "reason")
    GAME_ID_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    FORFEITED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    game_id: str
    events: _containers.RepeatedCompositeFieldContainer[_table_pb2.Event]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    forfeited: bool
    reason: str
    def __init__(self, game_id: _Optional[str] = ..., events: _Optional[_Iterable[_Union[_table_pb2.Event, _Mapping]]] = ..., ranks: _Optional[_Iterable[int]] = ..., forfeited: _Optional[bool] = ..., reason: _Optional[str] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
