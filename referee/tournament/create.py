"""The bots that a tournament file names, and what they are in the league.

More games for a tournament that is there already, with a secret of their own.
"""

from __future__ import annotations

from pathlib import Path

from referee import deals
from referee.bots.manifest import FILE_NAME, BotSpec, load_manifest
from referee.errors import NotFoundError, UserError
from referee.records import BotId
from referee.roster import Roster
from referee.schedule import extended, longer
from referee.store import League, NewExtension
from referee.tournament.conduct import Tournament, find
from referee.tournament.config import BotEntry, TournamentConfig, extensions, stages_played
from referee.tournament.config_file import MAX_GAMES
from referee.tournament.mapping import schedule_row


def check_bots(config: TournamentConfig, roster: Roster | None) -> None:
    """See whether the bots of a tournament are there and play by its rules, before anything is made.

    Args:
        config: the tournament's.
        roster: that of the league; None where there is no league yet.

    Raises UserError, one line, for a bad manifest, a ruleset that a bot does not play, a limit that it
    asks for beyond what the tournament allows, and a folder that is there twice; NotFoundError for a name
    that the league does not know.
    """
    for number, entry in enumerate(config.bots):
        first = config.bots.index(entry)
        if first < number:
            raise UserError(f"{config.file}: {config.key(number)}: it is {config.key(first)} too")
        if entry.folder is not None:
            manifest, place = load_manifest(entry.folder), entry.folder / FILE_NAME
        elif roster is not None:
            bot = _player(config, number, entry, roster).bot
            manifest, place = roster.manifest(bot), Path(str(bot))
        else:
            raise _not_found(config, number, f"the league has no bot {entry.text!r}")
        for stage in config.stages:
            if stage.ruleset.name not in manifest.rulesets:
                raise UserError(f"{place}: rulesets: it does not play {stage.ruleset.name}")
        for key, asked in manifest.limits.said.items():
            if asked > (allowed := getattr(config.limits, key)):
                raise UserError(
                    f"{place}: limits.{key}: it asks for {asked}, {config.file} allows {allowed}"
                )


async def enter_bots(
    config: TournamentConfig, roster: Roster, *, now_us: int
) -> tuple[BotSpec, ...]:
    """The bots of a tournament, in its order; those given by a path are brought into the league.

    Raises UserError as `check_bots` and `Roster.enter` do, and where two entries are the same bot.
    """
    numbers: dict[BotId, int] = {}
    specs: list[BotSpec] = []
    for number, entry in enumerate(config.bots):
        if entry.folder is not None:
            spec = (await roster.enter(entry.folder, now_us=now_us)).spec
        else:
            spec = _player(config, number, entry, roster)
        if spec.bot in numbers:
            raise UserError(
                f"{config.file}: {config.key(number)}: {spec.bot} is"
                f" {config.key(numbers[spec.bot])} too"
            )
        numbers[spec.bot] = number
        specs.append(spec)
    return tuple(specs)


def _player(config: TournamentConfig, number: int, entry: BotEntry, roster: Roster) -> BotSpec:
    try:
        return roster.player(entry.text)
    except NotFoundError as error:
        raise _not_found(config, number, str(error)) from error


def _not_found(config: TournamentConfig, number: int, reason: str) -> NotFoundError:
    return NotFoundError(
        f"{config.file}: {config.key(number)}: {reason} (a path has a slash in it)"
    )


def extend(
    league: League, tournament: Tournament, matches: int, *, seed: bytes, now_us: int
) -> Tournament:
    """Add matches to a tournament, finished or not; what it has stays as it is.

    Args:
        league: where it is stored; the caller holds its lock.
        tournament: as `find` has it.
        matches: how many more at each table, or in each stage of a balanced choice; at least 1.
        seed: of the new games; that of others may be known already.
        now_us: microseconds since 1970-01-01 UTC.

    Raises UserError where it would have too many games, where so few matches cannot be chosen fairly, and
    where it is not known yet after how many rounds it will stop.
    """
    config = tournament.config
    assert config.lanes is not None  # noqa: S101 - settled when the tournament was created
    if tournament.may_stop:
        raise UserError(
            f"{config.name}: it cannot be extended before it has stopped, which depends on its games:"
            " resume it first"
        )
    played = stages_played(config, tournament.stopped_after)
    stages = longer(played, sum(extensions(tournament.parts)) + matches)
    if sum(stage.games(len(config.bots)) for stage in stages) > MAX_GAMES:
        raise UserError(f"{config.name}: with these it has more than {MAX_GAMES} games, the limit")
    try:
        *_, added = extended(
            config.schedule,
            config.name,
            list(tournament.seats),
            played,
            [*extensions(tournament.parts), matches],
            lanes=config.lanes,
        )
    except ValueError as error:
        raise UserError(f"{config.name}: it cannot be extended: {error}") from error
    league.add_extension(
        config.name,
        NewExtension(now_us, matches, added[0].match, seed, deals.commitment(seed)),
        [schedule_row(game, tournament.seats) for game in added],
    )
    return find(league, config.name)
