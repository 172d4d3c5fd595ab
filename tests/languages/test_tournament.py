"""The six bots play `tournaments/languages.toml` in the strongest isolation of this machine."""

from collections import defaultdict

import pytest
from real_runs import place
from six_bots import FOLDER, SIX, build, marks_of
from strongest_isolation import strongest

from referee.store.league import League

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.timeout(1800),  # this test may have to build all six bots
    *marks_of(*(program for bot in SIX.values() for program in bot.toolchain)),
]
LIMIT_S = 600
FILE = FOLDER.parent / "tournaments" / "languages.toml"


def test_six_bots_play_identical_games_of_every_deal(league, tmp_path):
    for name in SIX:
        build(name, league)  # so that the command, which has a time limit, finds the builds
    with place(tmp_path) as here:
        with here.started(
            *("tournament", "run", FILE, "--league", league), REFEREE_ISOLATION=""
        ) as run:
            printed, _ = run.communicate(timeout=LIMIT_S)
        assert run.returncode == 0, printed
        assert "Building" not in printed
        assert here.referee("verify", "languages", "--league", league).returncode == 0
    with League.open(league, create=False) as store:
        records = [store.record(row.game_id) for row in store.results(tournament="languages")]
    assert {seat.name for record in records for seat in record.seating} == set(SIX)
    assert [record.game_id for record in records if record.faults] == []
    assert {record.isolation for record in records} == {strongest().summary}
    games = defaultdict(list)
    for record in records:
        games[record.deck].append([(move.seat, move.action) for move in record.moves])
    for first, *others in games.values():
        assert others
        assert all(other == first for other in others)
