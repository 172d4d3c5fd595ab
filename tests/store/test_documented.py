"""Test that `tournaments/README.md` describes the database completely and correctly."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from places import Place
from records import NAMES, faulty, filled, played
from sqlalchemy import create_engine, inspect

from referee.schedule import Deals

TEXT = (Path(__file__).parents[2] / "tournaments" / "README.md").read_text()
QUERIES = re.findall(r"^```sql\n(.*?);\n```$", TEXT, re.MULTILINE | re.DOTALL)


def described(title):
    """Return each table of a section with its columns in order."""
    section = re.split(r"^### ", TEXT.split(f"\n### {title}\n")[1], flags=re.MULTILINE)[0]
    return {
        name: re.findall(r"^\| `(\w+)` \| \S", text, re.MULTILINE)
        for name, text in re.findall(
            r"^#### `(\w+)`$(.*?)(?=^####|\Z)", section, re.MULTILINE | re.DOTALL
        )
    }


@pytest.fixture
def demo(place):
    """Make a league with an unfinished tournament and a game without a tournament."""
    with place.open(create=True) as league:
        rows = filled(league, "demo")
        league.add_games(map(played, rows[:6]))
        league.add_game(faulty(played(rows[6])))
        league.add_game(replace(played(rows[7]), game_id="play-1"))
    return place


def test_exactly_the_existing_tables_views_and_columns_are_described(place):
    place.open(create=True).close()
    engine = create_engine(place.url)
    inspector = inspect(engine)

    def columns(names):
        return {name: [each["name"] for each in inspector.get_columns(name)] for name in names}

    assert described("Views") == columns(inspector.get_view_names())
    assert described("Tables") == columns(inspector.get_table_names())
    engine.dispose()


def test_the_example_queries_return_the_stored_games(demo: Place):
    standings, meetings, faults, missing = map(demo.execute, QUERIES)
    assert {row[0] for row in standings} == {f"{name}@1.0" for name in NAMES}
    assert sum(row[1] for row in standings) == 7 * 3
    assert [row[2] for row in standings] == sorted(row[2] for row in standings)
    assert all(1 <= row[2] <= 3 and 0 <= row[3] <= 100 for row in standings)
    ahead = {(row[0], row[1]): row[3:] for row in meetings}
    games = {(row[0], row[1]): row[2] for row in meetings}
    assert sum(games.values()) == 7 * 3 * 2
    for (one, other), (wins, level) in ahead.items():
        assert games[one, other] == wins + level + ahead[other, one][0]
    assert sorted(row[1:4] for row in faults) == [("crash", 1, 1), ("timeout", 1, 1)]
    assert [row[0] for row in missing] == [f"demo-{number}" for number in range(8, 25)]
    assert missing[0][1].startswith("demo-deal-")


@pytest.mark.parametrize("kind", Deals)
def test_the_query_for_missing_games_returns_their_deals(place, kind):
    with place.open(create=True) as league:
        rows = filled(league, "demo", kind=kind)
    assert place.execute(QUERIES[-1]) == [(row.game_id, row.deal_id) for row in rows]


def test_the_views_agree_with_the_league(demo: Place):
    with demo.open() as league:
        results = league.results(free=True)
        games = {game.game_id: game for game in league.games()}
        faults = league.faults()
        records = {game: league.record(game) for game in games}
    shown = demo.execute(
        "SELECT game, tournament, round, match, ruleset, seat, bot, score, rank, forfeited, won,"
        " elapsed_s, cpu_s, peak_memory_mib FROM played_seats ORDER BY game, seat"
    )
    expected = [
        (
            row.game_id,
            row.tournament or None,
            row.round if row.tournament else None,
            row.match if row.tournament else None,
            row.ruleset,
            seat,
            row.bots[seat],
            row.scores[seat],
            row.ranks[seat],
            seat in row.forfeited,
            row.ranks[seat] == 1,
            sum(move.elapsed_us for move in records[row.game_id].moves if move.seat == seat)
            / 1_000_000,
            0.01 * seat,
            (2048 + seat) / 1024,
        )
        for row in results
        for seat in range(len(row.bots))
    ]
    assert shown == expected
    shown = demo.execute(
        "SELECT game, seats, termination, decisions, started_at, duration_s, host, cpu, speed, noise FROM played_games"
        " ORDER BY game"
    )
    assert shown == [
        (
            game,
            3,
            row.termination,
            row.decisions,
            "2023-11-14 22:13:20",
            0.031,
            "alpha",
            "Model 1",
            150_000,
            0.125,
        )
        for game, row in sorted(games.items())
    ]
    shown = demo.execute(
        "SELECT game, seat, bot, cause, forfeit, move, detail, exit_code, signal, elapsed_s,"
        " stderr_tail FROM charged_faults ORDER BY seat"
    )
    assert shown == [
        (
            charged.game_id,
            charged.fault.seat,
            charged.bot,
            charged.fault.cause.value,
            charged.fault.forfeit,
            charged.fault.move,
            charged.fault.evidence.detail,
            charged.fault.evidence.exit_code,
            charged.fault.evidence.signal,
            charged.fault.evidence.elapsed_us / 1_000_000,
            charged.fault.evidence.stderr_tail,
        )
        for charged in faults
    ]
