"""Create, find and extend the tournaments of a league.

`check_bots` checks the bots of a tournament file. `enter_bots` copies them into the league, and builds the copies. Then
`create_tournament` stores the whole schedule, the secret seed, and the commitment. All this happens before the first
game. `conduct` plays the games.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from referee import deals
from referee.bots import BotSpec
from referee.bots.manifest import FILE_NAME, Manifest, Variant, load_manifest
from referee.errors import NotFoundError, RefereeError, UserError
from referee.records import BotId, ScheduledGame
from referee.roster.content import hash_content
from referee.roster.roster import Roster
from referee.schedule import count_games, default_lanes
from referee.schedule.extension import extension_games, lengthen
from referee.store import NewExtension, NewTournament, StoredExtension, StoredTournament
from referee.store.league import League
from referee.toml_file import MAX_NAME
from referee.tournament.config import (
    BotEntry,
    Part,
    TournamentConfig,
    assign_cores,
    canonical_json,
    extension_matches,
    from_canonical_json,
    plan_games,
    played_stages,
)
from referee.tournament.config_file import MAX_GAMES
from referee.tournament.terms import (
    CommittedBot,
    Terms,
    digest_bots,
    digest_configuration,
    digest_schedule,
)

_TWICE_HINT = (
    "; to play against itself, it needs a second name in a tournament file:"
    ' { path = "./FOLDER", name = "NAME" }'
)

_BotSource = tuple[Path | BotId, Variant | None]
"""Where a bot of a tournament comes from: its folder, or its version in the league. The second item is its variant, or
None if it has none."""


@dataclass(frozen=True, slots=True)
class TournamentState:
    """A tournament that is stored in a league, without its schedule, which takes long to read."""

    config: TournamentConfig
    stored_config: dict[str, Any]
    """The configuration as JSON values, as it is stored."""
    parts: tuple[Part, ...]
    """The part that the tournament was created with, then one part for each extension. In a league the seed
    of a part is never None."""
    stopped_after: int | None
    """How many rounds were played when the tournament stopped early; None if it did not stop early."""

    @property
    def name(self) -> str:
        """Return the name of the tournament in its league."""
        return self.config.name

    @property
    def may_stop(self) -> bool:
        """Return True if the tournament may still stop early."""
        return self.config.has_looks and not self.parts[0].finished

    @property
    def games(self) -> int:
        """The number of games in the schedule."""
        return sum(part.games for part in self.parts)


@dataclass(frozen=True, slots=True)
class Tournament(TournamentState):
    """A tournament that is stored in a league."""

    schedule: tuple[ScheduledGame, ...]
    """All games, those of extensions included."""
    bots: dict[str, BotId]
    """The bots by their names in the schedule (`name@version`), in the order of the configuration."""


def check_bots(config: TournamentConfig, roster: Roster | None) -> None:
    """Check the bots of a tournament file before anything is created.

    Args:
        config: the configuration of the tournament.
        roster: the roster of the league; None if there is no league yet.

    Raises UserError in these cases:

    - The manifest of a bot is wrong, or sets a higher limit than the tournament allows.
    - A bot does not play a ruleset of the tournament.
    - A bot has the name of another author's bot in the league, or of a person in the league.
    - A bot is a retired version, or has the content of one.
    - Two entries are the same bot, for example the name of a bot and a folder with the same content.
    - A bot is in the league, but its copy is missing.

    Raises NotFoundError if an entry names a bot or version that the league does not have, or a bot with only retired versions.
    If several bots are wrong, the error is a UserError with at least one line for each of them.
    """
    errors: list[UserError] = []
    check = _BotCheck(config, roster)
    for number in range(len(config.bots)):
        try:
            check.check(number)
        except UserError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UserError(*(line for error in errors for line in error.args))


class _BotCheck:
    """Checks the bots of a tournament file one after the other; see `check_bots`."""

    def __init__(self, config: TournamentConfig, roster: Roster | None) -> None:
        self._config = config
        self._roster = roster
        self._sources: dict[_BotSource, int] = {}
        """The number of the first bot with each source."""
        self._named: dict[str, list[_BotSource]] = {}
        """By name in the tournament: the sources of the bots that were checked so far."""
        self._hash = cache(self._compute_hash)

    def check(self, number: int) -> None:
        """Check one bot, and remember it for the later ones. Call this in the order of the file."""
        config, roster, entry = self._config, self._roster, self._config.bots[number]
        source: _BotSource
        place: Path | BotId
        if entry.folder is not None:
            source = entry.folder, entry.variant
            self._refuse_same_source(number, source)
            manifest = load_manifest(entry.folder, entry.variant)
            place = entry.folder / FILE_NAME
            if roster is not None:
                roster.check_author(manifest, entry.folder)
        elif roster is not None:
            bot = _find_bot(config, number, roster).bot
            source = bot, entry.variant
            self._refuse_same_source(number, source)
            manifest, place = roster.manifest(bot), bot
            if entry.variant is not None:
                manifest = entry.variant.apply(manifest)
                roster.check_author(manifest, roster.folder(bot))
        else:
            raise _not_found_error(config, number, f"the league has no bot {entry.text!r}")
        self._refuse_same_content(number, source, manifest.name)
        _check_manifest(config, manifest, place)

    def _refuse_same_source(self, number: int, source: _BotSource) -> None:
        """Remember the source of a bot. Raise UserError if an earlier bot has the same folder or version, and the same variant."""
        first = self._sources.setdefault(source, number)
        if first < number:
            origin, variant = source
            bot = origin if isinstance(origin, BotId) and variant is None else None
            raise _twice_error(self._config, number, first, bot)

    def _refuse_same_content(self, number: int, source: _BotSource, name: str) -> None:
        """Raise UserError if a bot has the content of a retired version, or of an earlier bot.

        The content includes the manifest with the name, so only bots of the same name can be equal. A hash takes time, because it
        needs a copy of the folder. So a bot is hashed only if another bot of the file or a version in the league has its name.
        """
        earlier = self._named.setdefault(name, [])
        versions = [] if self._roster is None else self._roster.versions(name)
        if earlier or versions:
            content_hash = self._hash(source)
            same = [row for row in versions if row.content_hash == content_hash]
            bot = same[0].bot if same else None
            if same and same[0].retired_at_us is not None:
                raise _retired_error(self._config, number, same[0].bot)
            for other in earlier:
                if self._hash(other) == content_hash:
                    raise _twice_error(self._config, number, self._sources[other], bot)
        earlier.append(source)

    def _compute_hash(self, source: _BotSource) -> str:
        """Return the content hash of a bot."""
        origin, variant = source
        if self._roster is None:
            assert isinstance(origin, Path)  # noqa: S101 - without a roster, `check` refuses names
            return hash_content(origin, variant)
        if isinstance(origin, Path):
            return self._roster.hash_folder(origin, variant)
        if variant is None:
            return self._roster.content_hash(origin)
        return self._roster.hash_variant(origin, variant)


def _check_manifest(config: TournamentConfig, manifest: Manifest, place: Path | BotId) -> None:
    """Raise UserError if a bot does not play a ruleset of the tournament, or sets a higher limit than the tournament allows.

    The error has a line for each such ruleset and limit. `place` is the manifest's path, or `name@version` of a bot of the league.
    """
    lines = [
        f"{place}: rulesets: it does not play {stage.ruleset.name}"
        for stage in config.stages
        if stage.ruleset.name not in manifest.rulesets
    ] + [
        f"{place}: limits.{key}: {wanted} is too much, {config.file} allows {allowed}"
        for key, wanted in manifest.limits.explicit.items()
        if wanted > (allowed := getattr(config.limits, key))
    ]
    if lines:
        raise UserError(*dict.fromkeys(lines))  # several stages may have the same ruleset


async def enter_bots(
    config: TournamentConfig, roster: Roster, *, now_us: int, refreshes: bool = True
) -> tuple[BotSpec, ...]:
    """Return the bots of a tournament, in the order of its configuration.

    If an entry has a folder or a variant, the bot is copied into the league, and the copy is built. An entry without a folder names a bot of
    the league. If it names no version, the newest version that is not retired is used, as in `check_bots`. All entries without a
    folder are looked up before this call adds a version. An entry with neither a folder nor a variant uses the copy in the
    league. With `refreshes`, this copy is built again if needed. In a cluster `refreshes` is False, because the workers build
    copies themselves.

    Raises UserError if two entries are the same bot, or if a bot is retired. Raises UserError also if a copy does not fit the tournament,
    for example because the folder was changed after `check_bots`. Raises NotFoundError if the league does not have the bot of an entry
    without a folder. Raises the errors of `Roster.submit`, `Roster.submit_variant` and `Roster.refresh` too.
    """
    sources = [
        _find_bot(config, number, roster) if entry.folder is None else entry.folder
        for number, entry in enumerate(config.bots)
    ]
    numbers: dict[BotId, int] = {}
    specs: list[BotSpec] = []
    for number, source in enumerate(sources):
        spec = await _enter_bot(config, number, source, roster, now_us=now_us, refreshes=refreshes)
        if spec.bot in numbers:
            raise _twice_error(config, number, numbers[spec.bot], spec.bot)
        _check_manifest(config, roster.manifest(spec.bot), spec.bot)
        numbers[spec.bot] = number
        specs.append(spec)
    return tuple(specs)


async def _enter_bot(
    config: TournamentConfig,
    number: int,
    source: Path | BotSpec,
    roster: Roster,
    *,
    now_us: int,
    refreshes: bool,
) -> BotSpec:
    """Return one bot of a tournament; see `enter_bots`. `source` is its folder, or the bot of the league that its entry names."""
    variant = config.bots[number].variant
    if isinstance(source, Path):
        # `enter_bots` checks the copy too, but a refused bot should not be added to the league
        _check_manifest(config, load_manifest(source, variant), source / FILE_NAME)
        added = await roster.submit(source, variant, now_us=now_us)
    elif variant is not None:
        added = await roster.submit_variant(source.bot, variant, now_us=now_us)
    else:
        if refreshes:
            await roster.refresh(source.bot)
        return source
    if added.is_retired:
        raise _retired_error(config, number, added.spec.bot)
    return added.spec


def create_tournament(
    league: League, config: TournamentConfig, bots: Sequence[BotSpec], *, seed: bytes, now_us: int
) -> Tournament:
    """Store a new tournament with its whole schedule, before its first game is played.

    If the league already has a tournament `demo`, a new `demo` gets the first free name of `demo-2`, `demo-3` and so on. If such a
    name would be too long, the end of the old name is cut off before the number is added.

    Args:
        league: where the tournament is stored.
        config: the configuration from the tournament file.
        bots: the bots, as `enter_bots` returned them.
        seed: the seed of all deals, 32 bytes.
        now_us: microseconds since 1970-01-01 UTC.
    """
    name = _free_name(config.name, set(league.tournament_names()))
    seats = [stage.seats for stage in config.stages]
    lanes = config.lanes or default_lanes(seats, len(assign_cores(config)))
    versions = {str(spec.bot): spec.bot for spec in bots}
    entries = tuple(BotEntry(text, None) for text in versions)
    file = Path(
        config.file.name.encode(errors="replace").decode()
    )  # a file name may have bytes that are not UTF-8, but canonical JSON must be UTF-8
    config = replace(config, file=file, name=name, lanes=lanes, bots=entries)
    config_json, schedule = canonical_json(config), plan_games(config)
    stored_config = json.loads(config_json)
    terms = Terms(
        seed=deals.seed_digest(seed),
        configuration=digest_configuration(stored_config),
        bots=digest_bots(committed_bots(league, versions)),
        schedule=digest_schedule(schedule),
    )
    league.add_tournament(
        NewTournament(name, now_us, config_json, seed, terms.commitment, terms.text),
        schedule,
    )
    part = Part(0, len(schedule), None, terms.commitment, terms, seed, finished=False)
    return Tournament(config, stored_config, (part,), None, schedule, versions)


def find_same_seed(league: League, seed: bytes) -> str | None:
    """Return the name of a tournament of the league that has this seed, perhaps in an extension; None if there is none."""
    for row in league.tournaments():
        if seed in {row.seed, *(each.seed for each in league.extensions(row.name))}:
            return row.name
    return None


def committed_bots(league: League, bots: Iterable[str]) -> tuple[CommittedBot, ...]:
    """Return the content hash and the author of each bot (`name@version`), as the league has stored them."""
    rows = {str(row.bot): row for row in league.bots()}
    return tuple(CommittedBot(bot, rows[bot].content_hash, rows[bot].author) for bot in bots)


def find_tournament(league: League, name: str) -> Tournament:
    """Return a tournament of the league.

    Raises NotFoundError if the league has no tournament of this name, UserError if this version of the referee does
    not know the format of the stored configuration or the algorithm of its schedule, and RefereeError if the stored
    tournament is damaged.
    """
    with league.one_moment():
        state = find_state(league, name)
        schedule = tuple(league.schedule(name))
    scheduled_bots = {bot for game in schedule for bot in game.bots}
    missing = [entry.text for entry in state.config.bots if entry.text not in scheduled_bots]
    if missing and state.config.ladder is None:  # in a ladder, a bot may have no game
        raise _damage_error(league, name, f"{missing[0]} has no game in its schedule")
    versions = {entry.text: BotId.parse(entry.text) for entry in state.config.bots}
    return Tournament(
        state.config, state.stored_config, state.parts, state.stopped_after, schedule, versions
    )


def find_state(league: League, name: str) -> TournamentState:
    """Return a tournament of the league without its schedule. Raises the same errors as `find_tournament`."""
    with league.one_moment():
        row, extensions = league.tournament(name), league.extensions(name)
    try:
        config = from_canonical_json(row.config)
    except ValueError as error:
        raise _damage_error(league, name, f"its configuration: {error}") from error
    except UserError as error:
        raise UserError(f"{league.where}: tournament {name}: {error}") from error
    if config.lanes is None:
        raise _damage_error(league, name, "its configuration: lanes: missing")
    try:
        parts = _stored_parts(row, extensions)
    except ValueError as error:
        raise _damage_error(league, name, str(error)) from error
    return TournamentState(config, json.loads(row.config), parts, row.stopped_after)


def _damage_error(league: League, name: str, reason: str) -> RefereeError:
    return RefereeError(f"{league.where}: tournament {name} is damaged: {reason}")


def extend_tournament(
    league: League, tournament: Tournament, matches: int, *, seed: bytes, now_us: int
) -> Tournament:
    """Add matches to a finished or unfinished tournament. Its existing games do not change.

    Args:
        league: where the tournament is stored; the caller holds the lock of the league.
        tournament: as `find_tournament` returned it.
        matches: as in `Part.matches`.
        seed: a new secret seed for the new games, 32 bytes.
        now_us: microseconds since 1970-01-01 UTC.

    Raises the errors of `plan_extension`.
    """
    added = plan_extension(tournament, matches)
    terms = replace(
        tournament.parts[0].terms,
        seed=deals.seed_digest(seed),
        schedule=digest_schedule(added),
    )
    league.add_extension(
        tournament.name,
        NewExtension(now_us, matches, added[0].match, seed, terms.commitment, terms.text),
        added,
    )
    return find_tournament(league, tournament.name)


def plan_extension(tournament: Tournament, matches: int) -> tuple[ScheduledGame, ...]:
    """Return the games that an extension by `matches` would add; see `extend_tournament`.

    Raises UserError in these cases:

    - The tournament is a ladder, or may still stop early.
    - It would have more than `MAX_GAMES` games.
    - `matches` is less than 1.
    - The tournament is a gauntlet with a balanced choice, and `matches` is too small to let every bot play.
    """
    config = tournament.config
    assert config.lanes is not None  # noqa: S101 - `create_tournament` sets the lanes
    if config.ladder is not None:
        raise UserError(f"{config.name}: it is a ladder, which cannot be extended")
    if tournament.may_stop:
        raise UserError(
            f"{config.name}: its games decide when it stops, so it cannot be extended before its end:"
            " resume it first"
        )
    played = played_stages(config, tournament.stopped_after)
    earlier = extension_matches(tournament.parts)
    stages = lengthen(played, sum(earlier) + matches)
    if count_games(stages, len(config.bots)) > MAX_GAMES:
        raise UserError(
            f"--matches: {config.name} would have more than {MAX_GAMES} games, the limit"
        )
    try:
        *_, added = extension_games(
            config.schedule,
            config.name,
            list(tournament.bots),
            played,
            [*earlier, matches],
            lanes=config.lanes,
            last=tournament.schedule[tournament.parts[0].games - 1],
        )
    except ValueError as error:
        raise UserError(f"{config.name}: it cannot be extended: {error}") from error
    return added


def _stored_parts(row: StoredTournament, extensions: Sequence[StoredExtension]) -> tuple[Part, ...]:
    """Return the parts of a tournament from its row in the database and the rows of its extensions.

    Raises ValueError if an extension has no games, or if terms or a seed are damaged.
    """
    firsts = [each.first_game for each in extensions if each.first_game is not None]
    if len(firsts) < len(extensions):
        raise ValueError("an extension has no games")
    ends = [*firsts, row.games]
    rows: list[StoredTournament | StoredExtension] = [row, *extensions]
    return tuple(
        Part(
            first,
            end - first,
            part.matches if isinstance(part, StoredExtension) else None,
            part.commitment,
            Terms.parse(part.terms),
            deals.check_seed(part.seed),
            finished=part.finished_at_us is not None,
        )
        for first, end, part in zip([0, *firsts], ends, rows, strict=True)
    )


def _twice_error(config: TournamentConfig, number: int, first: int, bot: BotId | None) -> UserError:
    """Return the error about a bot that is listed twice; `bot` is its id in the league, None if it is not known."""
    known = "" if bot is None else f", {bot}"
    hint = _TWICE_HINT if config.bot_keys is None else "; choose two different bots"
    return UserError(
        f"{config.file}: {config.entry_key(number)}: the same bot as {config.entry_key(first)}{known}{hint}"
    )


def _find_bot(config: TournamentConfig, number: int, roster: Roster) -> BotSpec:
    """Return the bot of an entry without a folder. Raises the errors of `Roster.active_spec`, and names the entry in them."""
    try:
        return roster.active_spec(config.bots[number].text)
    except NotFoundError as error:
        raise _not_found_error(config, number, str(error)) from error
    except UserError as error:
        raise UserError(f"{config.file}: {config.entry_key(number)}: {error}") from error


def _retired_error(config: TournamentConfig, number: int, bot: BotId) -> UserError:
    """Return the error about an entry that is a retired version. It gives other advice for a variant, which cannot be submitted again."""
    advice = "submit it again to let it play"
    if config.bots[number].variant is not None:
        advice = "choose another name"
    return UserError(f"{config.file}: {config.entry_key(number)}: {bot} is retired; {advice}")


def _not_found_error(config: TournamentConfig, number: int, reason: str) -> NotFoundError:
    return NotFoundError(
        f"{config.file}: {config.entry_key(number)}: {reason};"
        f" if you mean a folder, write it with a slash, such as ./{config.bots[number].text}"
    )


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    endings = (f"-{number}" for number in count(2))
    candidates = (name[: MAX_NAME - len(ending)] + ending for ending in endings)
    return next(candidate for candidate in candidates if candidate not in taken)
