"""Define cards, layers and decks, and the rulesets with their options.

A card is an int: 1 to 13 for the number cards, `JOKER` (14) for a joker, `HIDDEN` (0) for a card that a
seat may not see. A joker is 14, because a layer of jokers snatches a layer of 13s.

A multiset of cards is a tuple of 15 counts, indexed by card. The count of `HIDDEN` is always 0.

The rulebooks differ, and some describe several games. Most options of a ruleset express these differences.
`referee/rules/README.md` lists the rulebooks, and explains the options that a tournament file can change.
`Ruleset.snatches` and the modules `table` and `game` implement the options.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import NamedTuple, SupportsIndex

HIDDEN = 0
JOKER = 14
NUMBERS = range(1, 14)
COPIES = 8
"""The number of copies of each number card."""
JOKERS = 5
"""The number of jokers."""
HAND_SIZE = 13
"""The number of cards that each player gets at the start. The duel's ghost is refilled to this number."""
DISPLAY_SLOTS = 6
DEFAULT_MAX_TURNS = 500
"""The default limit of turns (ruling R12)."""
JOKERS_DEALT = 2
"""The number of jokers that each player of a duel gets before the deck is dealt."""

Counts = tuple[int, ...]
"""A multiset of cards: 15 counts, indexed by card."""
Group = tuple[int, ...]
"""The cards in one slot of the display: none, one, or in a duel several, the bottom card first."""

EMPTY: Counts = (0,) * 15
FULL: Counts = (0, *(COPIES for _ in NUMBERS), JOKERS)
"""All 109 cards."""


class Layer(NamedTuple):
    """Cards of one value that were played together, jokers included.

    A layer of `n` jokers alone is `Layer(JOKER, 0, n)`. A layer only counts its cards, because all copies of
    a card are equal (ruling R1 in `referee/rules/README.md`).
    """

    value: int
    naturals: int
    """The number of number cards."""
    jokers: int = 0
    """The number of jokers."""

    @property
    def size(self) -> int:
        """The number of cards."""
        return self.naturals + self.jokers

    @property
    def cards(self) -> tuple[int, ...]:
        """The cards one by one: first the naturals, then the jokers."""
        return (self.value,) * self.naturals + (JOKER,) * self.jokers


def count_cards(cards: Iterable[int]) -> Counts:
    """Return `cards` as a multiset."""
    counts = [0] * 15
    for card in cards:
        counts[card] += 1
    return tuple(counts)


def list_cards(counts: Counts) -> list[int]:
    """Return the cards of a multiset one by one, the lowest first."""
    return [card for card, copies in enumerate(counts) for _ in range(copies)]


def card_name(card: int) -> str:
    """Return `1` to `13`, `J` for a joker, or `?` for a hidden card."""
    return {HIDDEN: "?", JOKER: "J"}.get(card, str(card))


def layer_name(layer: Layer) -> str:
    """Return a layer as `7`, `3×7`, `3×7+J`, `2×7+2×J`, or `2×J` if the layer has only jokers."""
    return "+".join(
        card_name(card) if copies == 1 else f"{copies}×{card_name(card)}"
        for card, copies in ((layer.value, layer.naturals), (JOKER, layer.jokers))
        if copies
    )


class EndOn(Enum):
    """When the game ends because cards have run out."""

    DECK_AND_DISPLAY = "deck-and-display"
    """The game ends when deck and display are both empty. All rulebooks have this rule."""
    DECK = "deck"
    """The game ends when the deck is empty. No ruleset in `RULESETS` has this value, but a tournament file
    can select it with `end_on = "deck"`."""


class GhostStart(Enum):
    """How the duel's ghost is dealt (ruling R16)."""

    THIRTEEN = "thirteen"
    """Cards are turned up until the ghost holds 13."""
    AS_DEALT = "as-dealt"
    """13 cards are turned up. Those that go onto the display are not replaced."""


class GhostSnatch(Enum):
    """Whether a player must snatch from the duel's ghost (ruling R17)."""

    COMPULSORY = "compulsory"
    """If only one set of the ghost can be snatched, it is snatched without a decision. If several sets can be snatched, the
    player must choose one of them."""
    OPTIONAL = "optional"
    """If at least one set of the ghost can be snatched, the player chooses a set or passes."""


class GhostOverflow(Enum):
    """Where a 13 or joker goes if it is turned up for the duel's ghost (rulings R9 and R18)."""

    SINGLE = "single"
    """It goes onto the lowest card that is alone in its slot. If no card is alone, it goes where `LOWEST` puts it."""
    LOWEST = "lowest"
    """It goes into the slot with the lowest bottom card."""


GHOST_OPTIONS: dict[str, Enum] = {
    "ghost_start": GhostStart.THIRTEEN,
    "ghost_snatch": GhostSnatch.COMPULSORY,
    "ghost_overflow": GhostOverflow.SINGLE,
}
"""The options that only a ruleset with a ghost has, with their default values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruleset:
    """The rules of a game."""

    name: str
    """`classic`, `basic`, `advanced`, `expert`, `expert-jokers` or `duel`."""
    min_players: int
    """The smallest number of seats."""
    max_players: int
    """The largest number of seats."""
    optional_draw: bool = False
    """A player who snatched nothing in its turn may draw once."""
    ones_snatch_jokers: bool = False
    """A layer of 1s snatches a layer of jokers of the same size."""
    ones_snatch_thirteens: bool = False
    """A layer of 1s snatches a layer of 13s of the same size."""
    hand_size_breaks_ties: bool = True
    """If True, of two seats with equal scores the seat with fewer cards in its hand ranks higher. If False,
    two seats with equal scores share a rank."""
    ghost: bool = False
    """The game is a duel: it has a ghost and groups, and each player gets two jokers before the deal."""
    end_on: EndOn = EndOn.DECK_AND_DISPLAY
    max_turns: int = DEFAULT_MAX_TURNS
    """The game ends after this many turns (ruling R12)."""
    ghost_start: GhostStart = GhostStart.THIRTEEN
    """This option and the next two have a meaning only with a ghost. Without a ghost they must have their default values."""
    ghost_snatch: GhostSnatch = GhostSnatch.COMPULSORY
    ghost_overflow: GhostOverflow = GhostOverflow.SINGLE

    def __post_init__(self) -> None:
        for option, example in {"end_on": EndOn.DECK, **GHOST_OPTIONS}.items():
            if not isinstance(value := getattr(self, option), kind := type(example)):
                raise TypeError(f"{option} is {value!r}, but its type must be {kind.__name__}")
        if not isinstance(self.max_turns, SupportsIndex):
            raise TypeError(f"max_turns is {self.max_turns!r}, but it must be a whole number")
        if self.max_turns < 1:
            raise ValueError(f"max_turns is {self.max_turns}, but it must be at least 1")
        for option, default in GHOST_OPTIONS.items():
            if not self.ghost and getattr(self, option) is not default:
                raise ValueError(f"{self.name} has no ghost, so it has no {option}")

    def with_options(
        self,
        *,
        end_on: EndOn | None = None,
        max_turns: int | None = None,
        ghost_start: GhostStart | None = None,
        ghost_snatch: GhostSnatch | None = None,
        ghost_overflow: GhostOverflow | None = None,
    ) -> Ruleset:
        """Return a copy with changed options. If an argument is None, its option does not change.

        Raises ValueError if `max_turns` is less than 1, or if a ruleset without a ghost gets another value than the
        default for one of the `GHOST_OPTIONS`. Raises TypeError if a value has another type, for example if it is a text.
        """
        return replace(
            self,
            end_on=end_on or self.end_on,
            max_turns=self.max_turns if max_turns is None else max_turns,
            ghost_start=ghost_start or self.ghost_start,
            ghost_snatch=ghost_snatch or self.ghost_snatch,
            ghost_overflow=ghost_overflow or self.ghost_overflow,
        )

    def check_players(self, players: int) -> None:
        """Raise ValueError when the ruleset does not allow this number of players."""
        if not self.min_players <= players <= self.max_players:
            low, high = self.min_players, self.max_players
            allowed = f"{low}" if low == high else f"{low} to {high}"
            raise ValueError(f"{self.name} is for {allowed} players, not {players}")

    def snatches(self, attacker: Layer, victim: Layer) -> bool:
        """Return True if `attacker`, the layer just played, snatches `victim`, a top layer.

        Step 3 of "A turn" in section 2 of `proto/README.md` and ruling R2 have the rule.
        """
        value, naturals, jokers = attacker
        other_value, other_naturals, other_jokers = victim
        if naturals + jokers != other_naturals + other_jokers:
            return False
        if value > other_value:
            return True
        return value == 1 and (
            (self.ones_snatch_jokers and other_value == JOKER)
            or (self.ones_snatch_thirteens and other_value == NUMBERS[-1])
        )


RULESETS: dict[str, Ruleset] = {
    ruleset.name: ruleset
    for ruleset in (
        Ruleset(name="classic", min_players=2, max_players=5, hand_size_breaks_ties=False),
        Ruleset(name="basic", min_players=2, max_players=5, optional_draw=True),
        Ruleset(name="advanced", min_players=2, max_players=5),
        Ruleset(
            name="expert",
            min_players=2,
            max_players=5,
            ones_snatch_jokers=True,
            ones_snatch_thirteens=True,
        ),
        Ruleset(name="expert-jokers", min_players=2, max_players=5, ones_snatch_jokers=True),
        Ruleset(name="duel", min_players=2, max_players=2, optional_draw=True, ghost=True),
    )
}
"""The rulesets by name. By the rulebooks of 2022, two players can play only the duel. The referee lets two
players play every ruleset, because bot authors want to try two bots with any ruleset."""


def ruleset_text(ruleset: Ruleset) -> str:
    """Return the name of a ruleset with its changed options, such as `duel (ghost_snatch = "optional")`."""
    own = RULESETS[ruleset.name]
    changed = ", ".join(
        f'{field.name} = "{value.value}"' if isinstance(value, Enum) else f"{field.name} = {value}"
        for field in fields(ruleset)
        if (value := getattr(ruleset, field.name)) != getattr(own, field.name)
    )
    return f"{ruleset.name} ({changed})" if changed else ruleset.name


def full_deck(ruleset: Ruleset) -> Counts:
    """Return the cards that a deck of this ruleset must have: 109, or 105 in the duel."""
    if not ruleset.ghost:
        return FULL
    counts = list(FULL)
    counts[JOKER] -= JOKERS_DEALT * ruleset.max_players
    return tuple(counts)
