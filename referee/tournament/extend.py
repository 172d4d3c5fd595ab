"""More games for a tournament that is there already, with a secret of their own."""

from __future__ import annotations

from referee import deals
from referee.errors import UserError
from referee.schedule import extended, longer
from referee.store import League, NewExtension
from referee.tournament.conduct import Tournament, find
from referee.tournament.file_model import MAX_GAMES
from referee.tournament.mapping import schedule_row
from referee.tournament.parts import extensions
from referee.tournament.settling import stages_played


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
    played = stages_played(config, tournament.settled_after)
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
