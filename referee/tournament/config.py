"""Define what describes a tournament: its configuration and its parts.

- A `TournamentConfig` comes from a tournament file. It is stored as JSON in the league.
- A `Part` is a range of games with one seed. The first part has the games that the tournament was created with.
  Each extension is a part with a seed of its own.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785
from pydantic import BaseModel, TypeAdapter, ValidationError

from referee.bots.manifest import Variant
from referee.clocks import Clocks
from referee.errors import UserError
from referee.ratings.stopping import StopCondition, look_rounds
from referee.records import Meetings, ScheduledGame
from referee.rules.ruleset import RULESETS
from referee.sandbox import DEFAULT_LIMITS, Limits, Rung
from referee.schedule import Stage, count_games
from referee.schedule.budget import Budget
from referee.schedule.extension import ALGORITHMS, ROUND_ROBIN, select_algorithm, shorten
from referee.tournament.config_file import MAX_GAMES
from referee.tournament.terms import Terms

MAX_IN_FLIGHT = 64
"""The most games that a lane plays at the same time if the tournament file does not set `games_in_flight`."""
_MAX_SEATS = max(ruleset.max_players for ruleset in RULESETS.values())
_MOST_COMPARED = 1e9
"""`Meetings.compared` must be less than this. No pair of bots in a league reaches it."""
FORMAT = 1
"""The format of stored configurations. A new key must have a default value, because old configurations lack it."""


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """What faults cost a bot."""

    max_strikes: int
    """A bot with this many strikes in a game forfeits the game."""
    suspend_after: int
    """A bot that forfeits this many games of a lane in a row is suspended in the lane; 0: never."""


@dataclass(frozen=True, slots=True)
class BotEntry:
    """A bot as the configuration names it."""

    text: str
    """The text in the tournament file; in a stored configuration `name@version`."""
    folder: Path | None
    """Absolute path of the bot's folder; None if `text` is the name of a bot in the league."""
    variant: Variant | None = None
    """Changes of the bot's manifest. They are not stored, because the version in the league has the changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStart:
    """What a ladder starts with. Raises ValueError if a number is impossible."""

    earlier: tuple[Meetings, ...]
    """For each pair of bots that has met in the league under the ladder's ruleset: what these earlier games tell about the pair. The
    numbers of the bots are positions in `TournamentConfig.bots`."""
    minutes: float
    """A run of the ladder ends at the first look after this many minutes, or when all planned games are played, if that is earlier."""

    def __post_init__(self) -> None:
        for each in self.earlier:
            if not 0 <= each.first < each.second:
                raise ValueError(f"earlier: {each.first} and {each.second} are no pair")
            if not each.compared < _MOST_COMPARED:
                raise ValueError(
                    f"earlier: compared: {each.compared} is not less than {_MOST_COMPARED:.0f}"
                )
            if not 0 <= each.better <= each.compared:
                raise ValueError(f"earlier: better: {each.better} is not from 0 to {each.compared}")
        if not self.minutes > 0:
            raise ValueError("minutes must be more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentConfig:
    """The configuration of a tournament. `config_reader` checks that the values fit each other."""

    file: Path
    """The tournament file, for messages; in a stored configuration only its name, without the folder. A command
    without a file uses its own name here."""
    name: str
    stages: tuple[Stage, ...]
    bots: tuple[BotEntry, ...]
    """The bots in schedule order: first the challengers of a gauntlet, then the entries of `bots`."""
    lanes: int | None
    """Number of lanes; None if the file does not give it. Then `create_tournament` chooses the number of lanes."""
    games_in_flight: int | None = None
    """The most games that a lane plays at the same time; None for as many as the bots can play at once, at
    most `MAX_IN_FLIGHT`."""
    clocks: Clocks
    scale_clocks: bool = False
    """Whether each worker scales the time to think by the speed of its machine; see `Clocks.scale`."""
    faults: FaultPolicy
    limits: Limits = DEFAULT_LIMITS
    """The highest limits that the manifest of a bot may set."""
    show_names: bool
    """Whether bots are told each other's names."""
    workers: int | None
    """Number of worker processes; None: as many as the cores allow."""
    cores_per_game: int
    """Number of CPU cores of each worker, shared by the worker and the bots that it runs."""
    max_processes: int
    """Maximum number of bot processes of a worker. Before one more starts, the process that is idle longest is ended."""
    pondering: bool = False
    """Whether bots may ponder: compute as they like between the requests of a game."""
    isolation: Rung | None = None
    """The isolation of the bots; None: the strongest rung that works on the machine."""
    schedule: str = ROUND_ROBIN
    """The algorithm that makes the schedule, a key of `referee.schedule.ALGORITHMS`."""
    budget: Budget | None = None
    """The budget from which the number of matches in `stages` was computed; None if the file gives `matches`."""
    until: StopCondition | None = None
    """The condition under which the tournament stops early; None: it never does."""
    ladder: LadderStart | None = None
    """What the ladder starts with; None if the tournament is no ladder. A ladder has no `until`, and only one stage, which is balanced."""
    seed: bytes | None = None
    """The seed in the file, 32 bytes. If it is None, the command that creates the tournament draws a seed."""
    bot_keys: tuple[str, ...] | None = None
    """What messages call the entries of `bots`: the names of a command's arguments, such as `BOT`. If it is None, messages
    use the keys of a tournament file, as `entry_key` returns them. It is not stored."""

    @property
    def games(self) -> int:
        """Number of games of all stages, without extensions."""
        return count_games(self.stages, len(self.bots))

    @property
    def has_looks(self) -> bool:
        """Whether results decide what is played: in a ladder, and in a tournament that may stop early."""
        return self.until is not None or self.ladder is not None

    @property
    def challengers(self) -> int:
        """Number of challengers, which come first in `bots`; 0 if the tournament is no gauntlet."""
        return self.stages[0].challengers

    def entry_key(self, number: int) -> str:
        """Return the name of `self.bots[number]` in messages: its entry in `bot_keys`, or a key such as `bots[3]` or `challengers[0]`."""
        if self.bot_keys is not None:
            return self.bot_keys[number]
        if number < self.challengers:
            return f"challengers[{number}]"
        return f"bots[{number - self.challengers}]"


def worker_count(cores: int, *, workers: int | None, cores_per_game: int, lanes: int | None) -> int:
    """Return how many workers a tournament gets on a machine with `cores` CPU cores.

    The result is `workers`. If `workers` is None, it is the number of workers that fit on the cores, but at least 1. In
    both cases it is at most `lanes`, if `lanes` is not None.
    """
    count = workers or cores // min(cores_per_game, cores)
    return count if lanes is None else min(count, lanes)


def assign_cores(config: TournamentConfig) -> list[frozenset[int]]:
    """Return one set of CPU cores for each worker of a tournament on this machine.

    If the machine has enough cores for all workers, no core is in two sets. If not, workers share cores.
    """
    cores = sorted(os.sched_getaffinity(0))
    per_game = min(config.cores_per_game, len(cores))
    workers = worker_count(
        len(cores),
        workers=config.workers,
        cores_per_game=config.cores_per_game,
        lanes=config.lanes,
    )
    return [
        frozenset(cores[(worker * per_game + number) % len(cores)] for number in range(per_game))
        for worker in range(workers)
    ]


def canonical_json(config: TournamentConfig) -> str:
    """Return a configuration as canonical JSON (RFC 8785).

    The seed is left out, because it is secret until the games are played. Variants and `bot_keys` are left out, because a
    stored configuration names versions of the league.
    """
    left_out: dict[str, Any] = {"seed": True, "bot_keys": True, "bots": {"__all__": {"variant"}}}
    values = _ADAPTER.dump_python(config, mode="json", exclude=left_out)
    return rfc8785.dumps({"format": FORMAT, **values}).decode()


def from_canonical_json(text: str) -> TournamentConfig:
    """Return the configuration from a text that `canonical_json` wrote. Its seed is None.

    Raises UserError if this version of the referee does not know the format of the text or the algorithm of the schedule,
    and ValueError if the text is no configuration or its stages are impossible. An unknown key is an error, because this
    version cannot know what the key changes.
    """
    try:
        stored = AnyFormat.model_validate_json(text)
        if stored.format != FORMAT:
            raise UserError(
                f"its configuration has format {stored.format}; this version of the referee knows {FORMAT}"
            )
        values = json.loads(text)
        del values["format"]
        config = _ADAPTER.validate_json(json.dumps(values), strict=True, extra="forbid")
    except ValidationError as error:
        raise ValueError(describe_invalid(error)) from error
    if config.schedule not in ALGORITHMS:
        raise UserError(
            f"its schedule was made by {config.schedule!r}, which this version of the referee does not know"
        )
    _check_stages(config)
    return config


def _check_stages(config: TournamentConfig) -> None:
    """Raise ValueError if the stages of a stored configuration are impossible, or do not fit its other values.

    The referee never writes such a configuration. With one, verification could crash or compute the schedule for ever.
    """
    if not config.stages:
        raise ValueError("stages: there must be at least one")
    for number, stage in enumerate(config.stages):
        for key, is_possible in (
            ("matches", 0 < stage.matches <= MAX_GAMES),
            ("seats", 1 < stage.seats <= _MAX_SEATS),
            ("challengers", 0 <= stage.challengers < len(config.bots)),
        ):
            if not is_possible:
                raise ValueError(f"stages: {number}: {key}: impossible number")
    if config.ladder is not None:
        return  # `make_course` checks the algorithm and the stage of a ladder
    if config.schedule != select_algorithm(config.stages):
        raise ValueError(f"schedule: {config.schedule} does not fit the stages")
    if config.until is not None and any(stage.balanced for stage in config.stages):
        raise ValueError("until: impossible with a balanced stage")
    for number, stage in enumerate(config.stages):
        if stage.balanced and stage.matches < stage.min_matches(len(config.bots)):
            raise ValueError(f"stages: {number}: matches: too few for all bots")


def describe_invalid(error: ValidationError) -> str:
    """Return the first reason why a JSON text does not fit its model, in one line: `KEY: KEY: reason`.

    The keys lead to the error.
    """
    first = error.errors(include_url=False)[0]
    reason = "unknown key" if first["type"] in _UNKNOWN_KEY else first["msg"]
    return "".join(f"{key}: " for key in first["loc"]) + reason


def plan_games(config: TournamentConfig) -> tuple[ScheduledGame, ...]:
    """Return the planned schedule: all games that a stored configuration makes before the first game is played.

    The commitment fixes these games. A tournament that stops early does not play all of them. Games of extensions are
    not planned.

    Raises ValueError if the algorithm of the schedule cannot make it.
    """
    assert config.lanes is not None  # noqa: S101 - stored configurations have a number of lanes
    bots = [entry.text for entry in config.bots]
    return ALGORITHMS[config.schedule](config.name, bots, config.stages, lanes=config.lanes)


_UNKNOWN_KEY = {"unexpected_keyword_argument", "extra_forbidden"}
"""The types of pydantic's errors for an unknown key, in a dataclass and in a model."""


class AnyFormat(BaseModel):
    """A stored configuration, or the member `tournament.json` of an archive, in any format. Only its key `format` is read."""

    format: int


_ADAPTER = TypeAdapter(TournamentConfig)


@dataclass(frozen=True, slots=True)
class Part:
    """A range of consecutive games in the schedule, with the seed of their deals.

    Each extension is a part with a new seed, because the older seeds may be public already.
    """

    first: int
    """Index, in the schedule, of the first game of the part."""
    games: int
    """Number of games of the part."""
    matches: int | None
    """Number of matches that the extension adds at each table. If the tables of a stage are a balanced choice, it is the
    number of matches that the extension adds to the whole stage. None for the first part."""
    commitment: str
    """The published commitment, hexadecimal. `verify` compares it with the terms."""
    terms: Terms
    """What the commitment fixes."""
    seed: bytes | None
    """The seed; None if it is unknown."""
    finished: bool
    """Whether all games of the part are played. From then on the seed is public."""

    @property
    def published_seed(self) -> bytes | None:
        """The seed if it is public, else None."""
        return self.seed if self.finished else None


def extension_matches(parts: Sequence[Part]) -> list[int]:
    """Return `Part.matches` of each extension; `parts` are all parts of a tournament."""
    return [part.matches for part in parts if part.matches is not None]


def find_part(parts: Sequence[Part], index: int) -> Part:
    """Return the part that contains the game with this index in the schedule."""
    return parts[bisect_right(parts, index, key=lambda part: part.first) - 1]


def part_title(number: int) -> str:
    """Return the title of part `number` for people, such as `extension 1`; an empty text for part 0."""
    return f"extension {number}" if number else ""


def count_rounds(config: TournamentConfig) -> int:
    """Return how many rounds a configuration makes, without extensions and without an early stop. No stage may be balanced."""
    return max(stage.matches for stage in config.stages)


def list_look_rounds(config: TournamentConfig) -> tuple[int, ...]:
    """Return after how many rounds each look takes place; an empty tuple if the configuration has no `until`.

    The last look is after the last round, when the tournament ends anyway.
    """
    return () if config.until is None else tuple(look_rounds(count_rounds(config)))


def played_stages(config: TournamentConfig, stopped_after: int | None) -> tuple[Stage, ...]:
    """Return the stages of the configuration, cut after the first `stopped_after` rounds.

    If `stopped_after` is None, the tournament did not stop early, and the stages have all their rounds. The stage of a ladder keeps all
    its planned matches, because a balanced choice cannot be cut.
    """
    if stopped_after is None or config.ladder is not None:
        return config.stages
    return shorten(config.stages, stopped_after)
