"""A tournament with fresh deals is played, extended, exported and verified like any other."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest
from forgeries import renew_archive
from real_runs import SEED, place
from strangers import ask_a_stranger

from referee import deals
from referee.store.league import League
from referee.tournament import archive_format

pytestmark = pytest.mark.extended("plays further tournaments")

STAGES = '[[stage]]\ndeals = "fresh"\n\n[[stage]]\n'
GAMES = 2 * 2 * 2
"""Two stages of two matches of two games."""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a finished tournament. Its first stage has fresh deals."""
    with place(tmp_path_factory.mktemp("fresh")) as made:
        done = made.referee("tournament", "run", made.tournament(matches=2, more=STAGES))
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture(scope="module")
def archive(here):
    assert here.referee("tournament", "export", "cup").returncode == 0
    return here.folder / "cup.zip"


def test_each_game_has_its_own_deck_only_in_the_stage_with_fresh_deals(here):
    with League.open(here.folder / "league", create=False) as league:
        games = league.schedule("cup")
    by_match = {}
    for game, record in zip(games, here.records("league"), strict=True):
        assert record.deck == deals.deck(bytes.fromhex(SEED), game.deal_id, record.ruleset)
        by_match.setdefault((game.stage, game.match), set()).add(record.deck)
    assert {(stage, len(decks)) for (stage, _), decks in by_match.items()} == {(0, 2), (1, 1)}


def test_league_and_archive_are_verified(here, archive):
    done = here.referee("verify", "cup")
    assert (done.returncode, done.stdout) == (0, f"cup: {GAMES} games verified.\n")
    done = here.referee("verify", archive)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"cup: {GAMES} games and the ratings verified.\n")


@pytest.mark.toolchain("node")
def test_stranger_can_check_fresh_deals(archive):
    done = ask_a_stranger(archive)
    assert done.stderr == ""
    assert done.stdout.endswith(
        f": seed, configuration, bots and schedule fit\n{GAMES} decks follow from the seed\n"
    )


def test_change_from_fresh_deals_to_the_same_deal_is_detected(here, archive):
    members = archive_format.unpack(archive, archive.read_bytes())
    changed = members["tournament.json"].replace(b'"deals":"fresh"', b'"deals":"same"')
    assert changed != members["tournament.json"]
    parts = {name: members[name] for name in archive_format.MEMBERS}
    spoilt = here.folder / "spoilt.zip"
    spoilt.write_bytes(archive_format.pack(renew_archive(parts | {"tournament.json": changed})))
    done = here.referee("verify", spoilt)
    assert done.returncode == 1
    assert "the SHA-256 of the schedule is" in done.stderr


def test_luck_counts_only_the_matches_with_one_deal(here):
    done = here.referee("stats", "luck", "--tournament", "cup", "--json")
    assert [row["matches"] for row in json.loads(done.stdout)] == [2]
    done = here.referee("stats", "seats", "--tournament", "cup", "--json")
    assert {row["matches"] for row in json.loads(done.stdout)} == {4}


def test_standings_by_points_add_up_all_games_and_name_the_winner(here):
    sums, starts = Counter(), Counter()
    for record in here.records("league"):
        starts[str(record.seating[0])] += 1
        for bot, score in zip(map(str, record.seating), record.scores, strict=True):
            sums[bot] += score
    done = here.referee("tournament", "standings", "cup", "--by", "points", "--json")
    rows = json.loads(done.stdout)
    assert {row["bot"]: row["points"] for row in rows} == sums
    assert {row["bot"]: row["started"] for row in rows} == starts
    assert {row["games"] for row in rows} == {GAMES}
    [(best, points), (_, less)] = sums.most_common(2)
    assert points > less, "choose another seed"
    done = here.referee("tournament", "standings", "cup", "--by", "points")
    assert done.stdout.endswith(f"classic: {best} wins with {points} points.\n")


@pytest.mark.extended("plays further games")
def test_extension_has_fresh_deals_too(here):
    shutil.copytree(here.folder / "league", here.folder / "longer")
    done = here.referee("tournament", "extend", "cup", "--matches", "1", "--league", "longer")
    assert done.returncode == 0, done.stderr
    with League.open(here.folder / "longer", create=False) as league:
        added = league.schedule("cup")[GAMES:]
    assert {(game.stage, game.deal_id) for game in added} == {
        (0, "cup-deal-5-1"),
        (0, "cup-deal-5-2"),
        (1, "cup-deal-6"),
    }
    done = here.referee("verify", "cup", "--league", "longer")
    assert (done.returncode, done.stdout) == (0, f"cup: {GAMES + 4} games verified.\n")
