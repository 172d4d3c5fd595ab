"""A tournament checked from its seed: commitment, schedule, decks, moves, results."""

from __future__ import annotations

from referee import deals
from referee.match import Difference, check
from referee.records import GameRecord
from referee.schedule import ScheduledGame, round_robin
from referee.store import League
from referee.tournament.conduct import Tournament


def audit(league: League, tournament: Tournament) -> int:
    """Check everything that is stored of a tournament; returns how many games that were.

    Raises Difference at the first thing that is not right.
    """
    config, seed = tournament.config, tournament.seed
    commitment = league.tournament(tournament.name).commitment
    if deals.commitment(seed) != commitment:
        raise Difference(f"the seed's SHA-256 is {deals.commitment(seed)}, not {commitment}")
    assert config.lanes is not None  # noqa: S101 - settled when the tournament was created
    schedule = round_robin(
        tournament.name, list(tournament.seats), config.stages, lanes=config.lanes
    )
    for made, kept in zip(schedule, tournament.schedule, strict=True):
        if made != kept:
            raise Difference(f"{kept.game_id}: the schedule has it otherwise than it is stored")
    stored = league.stored(tournament.name)
    played = [game for game in tournament.schedule if game.game_id in stored]
    for game in played:
        record = league.record(game.game_id)
        try:
            _check_game(tournament, game, record)
        except Difference as difference:
            raise Difference(f"{game.game_id}: {difference}") from difference
    _check_rows(league, tournament)
    return len(played)


def _check_game(tournament: Tournament, game: ScheduledGame, record: GameRecord) -> None:
    seating = tuple(tournament.seats[name] for name in game.bots)
    if record.game_id != game.game_id:
        raise Difference(f"the record is of another game, {record.game_id}")
    if record.seating != seating:
        raise Difference(f"the record has {record.seating}, the schedule {seating}")
    if record.ruleset != game.ruleset:
        raise Difference(f"the record has the rules of {record.ruleset}, not of {game.ruleset}")
    deck = deals.deck(tournament.seed, game.deal_id, game.ruleset)
    if record.deck != deck:
        raise Difference("the deck is not what the seed gives")
    check(record)


def _check_rows(league: League, tournament: Tournament) -> None:
    """What ratings are made of must be what the records say."""
    for row in league.results(tournament=tournament.name):
        result = league.record(row.game_id).result
        if (row.scores, row.ranks, row.forfeited) != (
            result.scores,
            result.ranks,
            result.forfeited,
        ):
            raise Difference(f"{row.game_id}: the table of results differs from the record")
