"""Export a finished or unfinished tournament of a league as an archive.

The archive has nothing that must stay secret. It has the seed of a part only after all games of the part are played. It
has no path of this machine. `archive_format` defines the members of the zip file.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from pydantic import BaseModel

from referee.records import GameRecord, GameResult, ScheduledGame
from referee.roster.roster import Roster
from referee.store.league import League
from referee.tournament import archive_format
from referee.tournament.config import Part, plan_games
from referee.tournament.create import Tournament, find_tournament


@dataclass(frozen=True, slots=True)
class Export:
    """An archive, and the facts that the command `tournament export` prints."""

    data: bytes
    """The bytes of the archive."""
    played: int
    """Number of games with a record in the archive."""
    games: int
    """Number of all games in the schedule."""
    has_seed: bool
    """Whether the archive has at least one seed: that of the planned schedule, or that of an extension."""
    secret: tuple[int, ...]
    """The numbers of the parts whose seed is still secret, so the archive does not have it. The planned schedule is number 0."""


def export_archive(league: League, roster: Roster, name: str) -> Export:
    """Return the archive of a tournament.

    Raises NotFoundError, UserError and RefereeError as `find_tournament` does. Raises UserError if a record is damaged,
    or if the league's copy of a bot is gone.
    """
    with league.one_moment():  # a driver may store games meanwhile
        tournament = find_tournament(league, name)
        played = league.forfeits(name)
    seeds = tuple(_publishable_seed(tournament, part, played) for part in tournament.parts)
    games = [game for game in tournament.schedule if game.game_id in played]
    results: list[GameResult] = []

    def read_records() -> Iterator[GameRecord]:
        for game in games:
            record = league.record(game.game_id)
            results.append(GameResult.from_record(name, game, record))
            yield record

    # one record after the other: the memory may be too small for all records
    records = archive_format.dump_records(read_records())
    data = archive_format.pack(
        {
            archive_format.TOURNAMENT: _dump_json(
                _make_tournament_model(league, tournament, seeds)
            ),
            archive_format.BOTS: _dump_json(_make_bots_model(league, roster, tournament)),
            archive_format.RECORDS: records,
            archive_format.RATINGS: _dump_json(archive_format.RatingsModel.from_results(results)),
        }
    )
    return Export(
        data=data,
        played=len(games),
        games=len(tournament.schedule),
        has_seed=any(seeds),
        secret=tuple(number for number, seed in enumerate(seeds) if seed is None),
    )


def _publishable_seed(tournament: Tournament, part: Part, played: Container[str]) -> str | None:
    """Return the seed of a part as hexadecimal digits; None if the seed is still secret."""
    games = tournament.schedule[part.first : part.first + part.games]
    finished = part.finished or all(game.game_id in played for game in games)
    return part.seed.hex() if part.seed is not None and finished else None


def _make_tournament_model(
    league: League, tournament: Tournament, seeds: tuple[str | None, ...]
) -> archive_format.TournamentModel:
    row = league.tournament(tournament.name)
    extensions = league.extensions(tournament.name)[: len(seeds) - 1]
    return archive_format.TournamentModel(
        format=archive_format.FORMAT,
        name=tournament.name,
        created_at_us=row.created_at_us,
        configuration=tournament.stored_config,
        schedule=tuple(_make_matches(tournament.schedule)),
        planned_schedule=_make_planned_schedule(tournament),
        commitment=row.commitment,
        terms=row.terms,
        seed=seeds[0],
        stopped_after=tournament.stopped_after,
        extensions=tuple(
            archive_format.Extension(
                created_at_us=extension.created_at_us,
                matches=extension.matches,
                commitment=extension.commitment,
                terms=extension.terms,
                seed=seed,
            )
            for extension, seed in zip(extensions, seeds[1:], strict=True)
        ),
    )


def _make_bots_model(
    league: League, roster: Roster, tournament: Tournament
) -> archive_format.BotsModel:
    hashes = {row.bot: row.content_hash for row in league.bots()}
    return archive_format.BotsModel(
        tuple(
            archive_format.Bot(bot=text, content_hash=hashes[bot], manifest=roster.manifest(bot))
            for text, bot in tournament.bots.items()
        )
    )


def _make_planned_schedule(tournament: Tournament) -> tuple[archive_format.Match, ...] | None:
    """Return the matches of the planned schedule; None if the first part of the tournament has exactly these matches."""
    if not tournament.config.has_looks:
        return None
    planned = plan_games(tournament.config)
    stored = tournament.schedule[: tournament.parts[0].games]
    return None if stored == planned else tuple(_make_matches(planned))


def _make_matches(schedule: Iterable[ScheduledGame]) -> Iterator[archive_format.Match]:
    for _, group in groupby(schedule, key=lambda game: game.match):
        games = tuple(group)
        yield archive_format.Match(
            stage=games[0].stage,
            round=games[0].round,
            bots=games[0].bots,
            games=tuple(game.game_id for game in games),
            deals=tuple(game.deal_id for game in games),
            lanes=tuple(game.lane for game in games),
        )


def _dump_json(part: BaseModel) -> bytes:
    """Return a JSON member; the same values always give the same bytes."""
    values = part.model_dump(mode="json")
    return (json.dumps(values, sort_keys=True, separators=(",", ":")) + "\n").encode()
