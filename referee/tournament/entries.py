"""The bots that a tournament file names, and what they are in the league."""

from __future__ import annotations

from pathlib import Path

from referee.bots.manifest import FILE_NAME, BotSpec, load_manifest
from referee.errors import NotFoundError, UserError
from referee.records import BotId
from referee.roster import Roster
from referee.tournament.config import BotEntry, TournamentConfig


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
