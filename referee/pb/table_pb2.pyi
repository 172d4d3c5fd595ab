from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecisionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_KIND_UNSPECIFIED: _ClassVar[DecisionKind]
    DECISION_KIND_PLAY: _ClassVar[DecisionKind]
    DECISION_KIND_TAKE_OR_LEAVE: _ClassVar[DecisionKind]
    DECISION_KIND_RECLAIM_OR_DISCARD: _ClassVar[DecisionKind]
    DECISION_KIND_DRAW: _ClassVar[DecisionKind]
    DECISION_KIND_OPTIONAL_DRAW: _ClassVar[DecisionKind]
    DECISION_KIND_GHOST_SET: _ClassVar[DecisionKind]

class Choice(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHOICE_UNSPECIFIED: _ClassVar[Choice]
    CHOICE_TAKE: _ClassVar[Choice]
    CHOICE_LEAVE: _ClassVar[Choice]
    CHOICE_RECLAIM: _ClassVar[Choice]
    CHOICE_DISCARD: _ClassVar[Choice]
    CHOICE_DRAW_DECK: _ClassVar[Choice]
    CHOICE_PASS: _ClassVar[Choice]

class Termination(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TERMINATION_UNSPECIFIED: _ClassVar[Termination]
    TERMINATION_OUT: _ClassVar[Termination]
    TERMINATION_EXHAUSTED: _ClassVar[Termination]
    TERMINATION_DECK_EMPTY: _ClassVar[Termination]
    TERMINATION_TURN_LIMIT: _ClassVar[Termination]

class EndOn(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_ON_UNSPECIFIED: _ClassVar[EndOn]
    END_ON_DECK_AND_DISPLAY: _ClassVar[EndOn]
    END_ON_DECK: _ClassVar[EndOn]

class GhostStart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GHOST_START_UNSPECIFIED: _ClassVar[GhostStart]
    GHOST_START_THIRTEEN: _ClassVar[GhostStart]
    GHOST_START_AS_DEALT: _ClassVar[GhostStart]

class GhostSnatch(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GHOST_SNATCH_UNSPECIFIED: _ClassVar[GhostSnatch]
    GHOST_SNATCH_COMPULSORY: _ClassVar[GhostSnatch]
    GHOST_SNATCH_OPTIONAL: _ClassVar[GhostSnatch]

class GhostOverflow(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GHOST_OVERFLOW_UNSPECIFIED: _ClassVar[GhostOverflow]
    GHOST_OVERFLOW_SINGLE: _ClassVar[GhostOverflow]
    GHOST_OVERFLOW_LOWEST: _ClassVar[GhostOverflow]
DECISION_KIND_UNSPECIFIED: DecisionKind
DECISION_KIND_PLAY: DecisionKind
DECISION_KIND_TAKE_OR_LEAVE: DecisionKind
DECISION_KIND_RECLAIM_OR_DISCARD: DecisionKind
DECISION_KIND_DRAW: DecisionKind
DECISION_KIND_OPTIONAL_DRAW: DecisionKind
DECISION_KIND_GHOST_SET: DecisionKind
CHOICE_UNSPECIFIED: Choice
CHOICE_TAKE: Choice
CHOICE_LEAVE: Choice
CHOICE_RECLAIM: Choice
CHOICE_DISCARD: Choice
CHOICE_DRAW_DECK: Choice
CHOICE_PASS: Choice
TERMINATION_UNSPECIFIED: Termination
TERMINATION_OUT: Termination
TERMINATION_EXHAUSTED: Termination
TERMINATION_DECK_EMPTY: Termination
TERMINATION_TURN_LIMIT: Termination
END_ON_UNSPECIFIED: EndOn
END_ON_DECK_AND_DISPLAY: EndOn
END_ON_DECK: EndOn
GHOST_START_UNSPECIFIED: GhostStart
GHOST_START_THIRTEEN: GhostStart
GHOST_START_AS_DEALT: GhostStart
GHOST_SNATCH_UNSPECIFIED: GhostSnatch
GHOST_SNATCH_COMPULSORY: GhostSnatch
GHOST_SNATCH_OPTIONAL: GhostSnatch
GHOST_OVERFLOW_UNSPECIFIED: GhostOverflow
GHOST_OVERFLOW_SINGLE: GhostOverflow
GHOST_OVERFLOW_LOWEST: GhostOverflow

class Layer(_message.Message):
    __slots__ = ("value", "naturals", "jokers")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NATURALS_FIELD_NUMBER: _ClassVar[int]
    JOKERS_FIELD_NUMBER: _ClassVar[int]
    value: int
    naturals: int
    jokers: int
    def __init__(self, value: _Optional[int] = ..., naturals: _Optional[int] = ..., jokers: _Optional[int] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("layers",)
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    layers: _containers.RepeatedCompositeFieldContainer[Layer]
    def __init__(self, layers: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ("cards",)
    CARDS_FIELD_NUMBER: _ClassVar[int]
    cards: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cards: _Optional[_Iterable[int]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("seat", "hand", "hand_sizes", "tables", "display", "deck_size", "discards", "ghost", "active_seat", "turn", "snatched", "victim", "cards_to_draw")
    SEAT_FIELD_NUMBER: _ClassVar[int]
    HAND_FIELD_NUMBER: _ClassVar[int]
    HAND_SIZES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    DECK_SIZE_FIELD_NUMBER: _ClassVar[int]
    DISCARDS_FIELD_NUMBER: _ClassVar[int]
    GHOST_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SEAT_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    SNATCHED_FIELD_NUMBER: _ClassVar[int]
    VICTIM_FIELD_NUMBER: _ClassVar[int]
    CARDS_TO_DRAW_FIELD_NUMBER: _ClassVar[int]
    seat: int
    hand: _containers.RepeatedScalarFieldContainer[int]
    hand_sizes: _containers.RepeatedScalarFieldContainer[int]
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    display: _containers.RepeatedCompositeFieldContainer[Slot]
    deck_size: int
    discards: _containers.RepeatedScalarFieldContainer[int]
    ghost: _containers.RepeatedScalarFieldContainer[int]
    active_seat: int
    turn: int
    snatched: Layer
    victim: int
    cards_to_draw: int
    def __init__(self, seat: _Optional[int] = ..., hand: _Optional[_Iterable[int]] = ..., hand_sizes: _Optional[_Iterable[int]] = ..., tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ..., display: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ..., deck_size: _Optional[int] = ..., discards: _Optional[_Iterable[int]] = ..., ghost: _Optional[_Iterable[int]] = ..., active_seat: _Optional[int] = ..., turn: _Optional[int] = ..., snatched: _Optional[_Union[Layer, _Mapping]] = ..., victim: _Optional[int] = ..., cards_to_draw: _Optional[int] = ...) -> None: ...

class DrawDisplay(_message.Message):
    __slots__ = ("slot", "cards")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    slot: int
    cards: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, slot: _Optional[int] = ..., cards: _Optional[_Iterable[int]] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("play", "choice", "draw_display", "ghost_value")
    PLAY_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    DRAW_DISPLAY_FIELD_NUMBER: _ClassVar[int]
    GHOST_VALUE_FIELD_NUMBER: _ClassVar[int]
    play: Layer
    choice: Choice
    draw_display: DrawDisplay
    ghost_value: int
    def __init__(self, play: _Optional[_Union[Layer, _Mapping]] = ..., choice: _Optional[_Union[Choice, str]] = ..., draw_display: _Optional[_Union[DrawDisplay, _Mapping]] = ..., ghost_value: _Optional[int] = ...) -> None: ...

class SlotCard(_message.Message):
    __slots__ = ("slot", "card")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    slot: int
    card: int
    def __init__(self, slot: _Optional[int] = ..., card: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("played", "snatched", "taken", "left", "reclaimed", "discarded", "drawn", "display_refilled", "ghost_snatched", "ghost_refilled", "ghost_declined", "passed", "game_over")
    class Played(_message.Message):
        __slots__ = ("seat", "layer")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        seat: int
        layer: Layer
        def __init__(self, seat: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class Snatched(_message.Message):
        __slots__ = ("attacker", "victim", "layer")
        ATTACKER_FIELD_NUMBER: _ClassVar[int]
        VICTIM_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        attacker: int
        victim: int
        layer: Layer
        def __init__(self, attacker: _Optional[int] = ..., victim: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class Taken(_message.Message):
        __slots__ = ("seat", "layer")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        seat: int
        layer: Layer
        def __init__(self, seat: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class Left(_message.Message):
        __slots__ = ("seat",)
        SEAT_FIELD_NUMBER: _ClassVar[int]
        seat: int
        def __init__(self, seat: _Optional[int] = ...) -> None: ...
    class Reclaimed(_message.Message):
        __slots__ = ("seat", "layer")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        seat: int
        layer: Layer
        def __init__(self, seat: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class Discarded(_message.Message):
        __slots__ = ("seat", "layer")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        seat: int
        layer: Layer
        def __init__(self, seat: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class Drawn(_message.Message):
        __slots__ = ("seat", "slot", "cards")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        SLOT_FIELD_NUMBER: _ClassVar[int]
        CARDS_FIELD_NUMBER: _ClassVar[int]
        seat: int
        slot: int
        cards: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, seat: _Optional[int] = ..., slot: _Optional[int] = ..., cards: _Optional[_Iterable[int]] = ...) -> None: ...
    class DisplayRefilled(_message.Message):
        __slots__ = ("cards",)
        CARDS_FIELD_NUMBER: _ClassVar[int]
        cards: _containers.RepeatedCompositeFieldContainer[SlotCard]
        def __init__(self, cards: _Optional[_Iterable[_Union[SlotCard, _Mapping]]] = ...) -> None: ...
    class GhostSnatched(_message.Message):
        __slots__ = ("seat", "layer")
        SEAT_FIELD_NUMBER: _ClassVar[int]
        LAYER_FIELD_NUMBER: _ClassVar[int]
        seat: int
        layer: Layer
        def __init__(self, seat: _Optional[int] = ..., layer: _Optional[_Union[Layer, _Mapping]] = ...) -> None: ...
    class GhostRefilled(_message.Message):
        __slots__ = ("ghost_cards", "display_cards")
        GHOST_CARDS_FIELD_NUMBER: _ClassVar[int]
        DISPLAY_CARDS_FIELD_NUMBER: _ClassVar[int]
        ghost_cards: _containers.RepeatedScalarFieldContainer[int]
        display_cards: _containers.RepeatedCompositeFieldContainer[SlotCard]
        def __init__(self, ghost_cards: _Optional[_Iterable[int]] = ..., display_cards: _Optional[_Iterable[_Union[SlotCard, _Mapping]]] = ...) -> None: ...
    class GhostDeclined(_message.Message):
        __slots__ = ("seat",)
        SEAT_FIELD_NUMBER: _ClassVar[int]
        seat: int
        def __init__(self, seat: _Optional[int] = ...) -> None: ...
    class Passed(_message.Message):
        __slots__ = ("seat",)
        SEAT_FIELD_NUMBER: _ClassVar[int]
        seat: int
        def __init__(self, seat: _Optional[int] = ...) -> None: ...
    class GameOver(_message.Message):
        __slots__ = ("termination", "scores", "ranks")
        TERMINATION_FIELD_NUMBER: _ClassVar[int]
        SCORES_FIELD_NUMBER: _ClassVar[int]
        RANKS_FIELD_NUMBER: _ClassVar[int]
        termination: Termination
        scores: _containers.RepeatedScalarFieldContainer[int]
        ranks: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, termination: _Optional[_Union[Termination, str]] = ..., scores: _Optional[_Iterable[int]] = ..., ranks: _Optional[_Iterable[int]] = ...) -> None: ...
    PLAYED_FIELD_NUMBER: _ClassVar[int]
    SNATCHED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RECLAIMED_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_REFILLED_FIELD_NUMBER: _ClassVar[int]
    GHOST_SNATCHED_FIELD_NUMBER: _ClassVar[int]
    GHOST_REFILLED_FIELD_NUMBER: _ClassVar[int]
    GHOST_DECLINED_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    GAME_OVER_FIELD_NUMBER: _ClassVar[int]
    played: Event.Played
    snatched: Event.Snatched
    taken: Event.Taken
    left: Event.Left
    reclaimed: Event.Reclaimed
    discarded: Event.Discarded
    drawn: Event.Drawn
    display_refilled: Event.DisplayRefilled
    ghost_snatched: Event.GhostSnatched
    ghost_refilled: Event.GhostRefilled
    ghost_declined: Event.GhostDeclined
    passed: Event.Passed
    game_over: Event.GameOver
    def __init__(self, played: _Optional[_Union[Event.Played, _Mapping]] = ..., snatched: _Optional[_Union[Event.Snatched, _Mapping]] = ..., taken: _Optional[_Union[Event.Taken, _Mapping]] = ..., left: _Optional[_Union[Event.Left, _Mapping]] = ..., reclaimed: _Optional[_Union[Event.Reclaimed, _Mapping]] = ..., discarded: _Optional[_Union[Event.Discarded, _Mapping]] = ..., drawn: _Optional[_Union[Event.Drawn, _Mapping]] = ..., display_refilled: _Optional[_Union[Event.DisplayRefilled, _Mapping]] = ..., ghost_snatched: _Optional[_Union[Event.GhostSnatched, _Mapping]] = ..., ghost_refilled: _Optional[_Union[Event.GhostRefilled, _Mapping]] = ..., ghost_declined: _Optional[_Union[Event.GhostDeclined, _Mapping]] = ..., passed: _Optional[_Union[Event.Passed, _Mapping]] = ..., game_over: _Optional[_Union[Event.GameOver, _Mapping]] = ...) -> None: ...

class Ruleset(_message.Message):
    __slots__ = ("name", "optional_draw", "ones_snatch_jokers", "ones_snatch_thirteens", "hand_size_breaks_ties", "ghost", "end_on", "max_turns", "ghost_start", "ghost_snatch", "ghost_overflow")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_DRAW_FIELD_NUMBER: _ClassVar[int]
    ONES_SNATCH_JOKERS_FIELD_NUMBER: _ClassVar[int]
    ONES_SNATCH_THIRTEENS_FIELD_NUMBER: _ClassVar[int]
    HAND_SIZE_BREAKS_TIES_FIELD_NUMBER: _ClassVar[int]
    GHOST_FIELD_NUMBER: _ClassVar[int]
    END_ON_FIELD_NUMBER: _ClassVar[int]
    MAX_TURNS_FIELD_NUMBER: _ClassVar[int]
    GHOST_START_FIELD_NUMBER: _ClassVar[int]
    GHOST_SNATCH_FIELD_NUMBER: _ClassVar[int]
    GHOST_OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    optional_draw: bool
    ones_snatch_jokers: bool
    ones_snatch_thirteens: bool
    hand_size_breaks_ties: bool
    ghost: bool
    end_on: EndOn
    max_turns: int
    ghost_start: GhostStart
    ghost_snatch: GhostSnatch
    ghost_overflow: GhostOverflow
    def __init__(self, name: _Optional[str] = ..., optional_draw: _Optional[bool] = ..., ones_snatch_jokers: _Optional[bool] = ..., ones_snatch_thirteens: _Optional[bool] = ..., hand_size_breaks_ties: _Optional[bool] = ..., ghost: _Optional[bool] = ..., end_on: _Optional[_Union[EndOn, str]] = ..., max_turns: _Optional[int] = ..., ghost_start: _Optional[_Union[GhostStart, str]] = ..., ghost_snatch: _Optional[_Union[GhostSnatch, str]] = ..., ghost_overflow: _Optional[_Union[GhostOverflow, str]] = ...) -> None: ...
