"""Define the rulesets: which options each of them has, and its deck.

The options are the differences between the rulebooks. `turn`, `table` and `game` implement them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from referee.rules.cards import FULL, JOKER, NUMBERS, Counts, Layer

DEFAULT_MAX_TURNS = 500
"""The default limit of turns (ruling R12)."""
JOKERS_DEALT = 2
"""The number of jokers that each player of a duel gets before the deck is dealt."""


class EndOn(Enum):
    """Which cards end a game when they run out."""

    DECK_AND_DISPLAY = "deck-and-display"
    """The game ends when both are empty, as in all the rulebooks."""
    DECK = "deck"
    """The game ends when the deck is empty, as in the Czech/English summary. No preset uses this."""


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
    """An active player who snatched nothing may draw one card (turn, step 4)."""
    ones_snatch_jokers: bool = False
    """Layers of 1s snatch layers of jokers (expert, Polish and Spanish rulebooks)."""
    ones_snatch_thirteens: bool = False
    """Layers of 1s snatch layers of 13 (expert, Polish rulebook only)."""
    hand_size_breaks_ties: bool = True
    """Equal scores rank by the smaller hand (2022 rulebooks); otherwise they share a rank."""
    ghost: bool = False
    """The duel's virtual third player, with its dealt jokers and display groups."""
    end_on: EndOn = EndOn.DECK_AND_DISPLAY
    max_turns: int = DEFAULT_MAX_TURNS
    """The game ends after this many turns (ruling R12)."""

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ValueError(f"max_turns is {self.max_turns}, must be at least 1")

    def with_options(self, *, end_on: EndOn | None = None, max_turns: int | None = None) -> Ruleset:
        """Return the same rules with other options; None keeps an option."""
        return replace(
            self,
            end_on=self.end_on if end_on is None else end_on,
            max_turns=self.max_turns if max_turns is None else max_turns,
        )

    def snatches(self, attacker: Layer, victim: Layer) -> bool:
        """Return True when a layer just played snatches another seat's top layer.

        See turn, step 3, and ruling R2.
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
"""The presets by name. In the rulebooks of 2022, two players can play only the duel. The other presets
also allow two players, because bot authors want to play them."""


def full_deck(ruleset: Ruleset) -> Counts:
    """Return the cards that a deck of this ruleset must have: 109, or 105 in the duel."""
    if not ruleset.ghost:
        return FULL
    counts = list(FULL)
    counts[JOKER] -= JOKERS_DEALT * ruleset.max_players
    return tuple(counts)
