"""A tournament that was changed everywhere, so that everything fits, still has another commitment."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace

import pytest
from forgeries import (
    add_until,
    change_author,
    change_config,
    change_content_hash,
    cut_schedule,
    exchange_bots,
    export,
    forge,
    forge_archive,
    put,
    renew_archive,
)
from sample_league import SampleLeague

from referee.errors import RefereeError
from referee.match.replay import Difference
from referee.reports.selection import GameFilter
from referee.reports.verdicts import judge_games
from referee.store.league import League
from referee.tournament import archive_format
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.create import extend_tournament, find_tournament
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament, verify_free_games

CONFIGURATION = "the SHA-256 of the configuration is"
BOTS = "the SHA-256 of the bots is"
TERMS = "the SHA-256 of the terms is"
FORGERIES = {
    cut_schedule: CONFIGURATION,
    exchange_bots: CONFIGURATION,
    add_until: CONFIGURATION,
    change_author: BOTS,
    change_content_hash: BOTS,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return the folder of a league with a finished tournament."""
    folder = tmp_path_factory.mktemp("original")
    sample = SampleLeague(folder)
    sample.play(slice(None))
    sample.league.close()
    return folder / "league"


@pytest.fixture
def folder(original, tmp_path):
    """Return the folder of a copy of the league, for a test to forge."""
    return shutil.copytree(original, tmp_path / "league")


def verify_league(folder):
    """Verify the tournament; return its commitment."""
    with closing(League.open(folder, create=False)) as league:
        claim = LeagueTournament(league, "cup")
        verify_tournament(claim)
        return claim.parts[0].commitment


def verify_archive(folder, members):
    """Verify an archive with these members; return its commitment."""
    archive = folder / "cup.zip"
    archive.write_bytes(archive_format.pack(members))
    claim = ArchivedTournament.open(archive)
    claim.verify()
    return claim.parts[0].commitment


# In a league


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_a_league_is_found(folder, change):
    forge(folder, change)
    with pytest.raises(Difference, match=FORGERIES[change]):
        verify_league(folder)


STRAY = r"^cup-1: its row in the table results names the wrong tournament, or a row about it in the table faults names a seat that the game does not have$"
FAULT = (
    "INSERT INTO faults (game_id, seat, cause, forfeit, move, detail, elapsed_us, stderr_tail)"
    " VALUES (1, {seat}, '{cause}', 1, 0, '', 0, '')"
)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE results SET tournament_id = NULL", STRAY),
        (FAULT.format(seat=7, cause="crash"), STRAY),
        (FAULT.format(seat=1, cause="crash"), "^cup-1: the table of faults differs"),
    ],
)
def test_row_that_does_not_fit_its_game_is_found(folder, statement, message):
    forge(folder, lambda database: database.execute(statement))
    with pytest.raises(Difference, match=message):
        verify_league(folder)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (FAULT.format(seat=1, cause="bogus"), "cup-1: 'bogus' is not a valid Cause$"),
        ("UPDATE tournaments SET seed = x'00'", "a seed must have 32 bytes, but this one has 1$"),
    ],
)
def test_value_that_the_referee_never_writes_is_damage(folder, statement, message):
    forge(folder, lambda database: database.execute(statement))
    with pytest.raises(RefereeError, match=f"is damaged: {message}"):
        verify_league(folder)


def test_configuration_without_lanes_is_damage(folder):
    def drop_lanes(database):
        change_config(database, lambda config: config.update(lanes=None))

    forge(folder, drop_lanes, terms=True, commitment=True)
    with pytest.raises(RefereeError, match=r"is damaged: its configuration: lanes: missing$"):
        verify_league(folder)


IMPOSSIBLE = {
    "stages: there must be at least one": lambda config: config.update(stages=[]),
    "stages: 0: challengers: impossible number": lambda config: config["stages"][0].update(
        challengers=-1
    ),
    "stages: 0: seats: impossible number": lambda config: config["stages"][0].update(
        seats=1, balanced=True, challengers=1
    ),
    "schedule: round-robin-1 does not fit the stages": lambda config: config["stages"][0].update(
        challengers=1
    ),
    "until: impossible with a balanced stage": lambda config: make_balanced(
        config, until={"confidence": 0.95, "margin": 30.0}
    ),
    "stages: 0: matches: too few for all bots": lambda config: make_balanced(config, matches=1),
}


def make_balanced(config, *, until=None, matches=6):
    """Change all stages of a configuration into balanced choices of `matches` matches."""
    config.update(schedule="balanced-1", until=until)
    for stage in config["stages"]:
        stage.update(balanced=True, matches=matches)


@pytest.mark.parametrize("problem", IMPOSSIBLE)
def test_impossible_stages_are_damage(folder, problem):
    def change(database):
        change_config(database, IMPOSSIBLE[problem])

    forge(folder, change, terms=True, commitment=True)
    with pytest.raises(RefereeError, match=rf"cup is damaged: its configuration: {problem}$"):
        verify_league(folder)
    selected = GameFilter(tournament="cup")
    with (
        closing(League.open(folder, create=False)) as league,
        pytest.raises(RefereeError, match=rf"is damaged: its configuration: {problem}$"),
    ):
        judge_games(league, selected, confidence=None, margin=None)


def test_game_outside_tournaments_without_its_seats_is_found(tmp_path):
    sample = SampleLeague(tmp_path)
    record = sample.make_record(sample.tournament.schedule[0])
    sample.league.add_game(replace(record, game_id="play-1-1"))
    sample.play(slice(1, 2))
    assert verify_free_games(sample.league) == 1
    forge(tmp_path / "league", lambda database: database.execute("DELETE FROM seats"))
    with pytest.raises(Difference, match="the table seats has no rows for this game"):
        verify_free_games(sample.league)
    sample.league.close()


def test_row_of_a_game_does_not_concern_another_tournament(folder):
    forge(folder, lambda database: database.execute("UPDATE results SET tournament_id = NULL"))
    with League.open(folder, create=False) as league:
        assert league.stray_games(tournament="cup")
        assert not league.stray_games(tournament="another")


def test_game_outside_tournaments_with_a_tournament_in_its_results_is_found(tmp_path):
    sample = SampleLeague(tmp_path)
    record = sample.make_record(sample.tournament.schedule[0])
    sample.league.add_game(replace(record, game_id="play-1-1"))
    forge(
        tmp_path / "league",
        lambda database: database.execute("UPDATE results SET tournament_id = 1"),
    )
    for tournament in (None, "cup"):
        assert sample.league.stray_games(tournament=tournament) == {"play-1-1"}
    with pytest.raises(Difference, match=r"^play-1-1: its row in .* names the wrong tournament"):
        LeagueTournament(sample.league, "cup")
    sample.league.close()


def test_game_outside_tournaments_without_its_first_times_is_found(tmp_path):
    sample = SampleLeague(tmp_path)
    record = sample.make_record(sample.tournament.schedule[0])
    moves = (replace(record.moves[0], elapsed_us=0), *record.moves[1:])
    sample.league.add_game(replace(record, game_id="play-1-1", moves=moves))
    with pytest.raises(Difference, match=r"^play-1-1: move 1: the bot has replied after 0 us$"):
        verify_free_games(sample.league)
    sample.league.close()


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_a_league_with_other_terms_is_found(folder, change):
    forge(folder, change, terms=True)
    with pytest.raises(Difference, match=TERMS):
        verify_league(folder)


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_a_league_that_fits_everywhere_has_another_commitment(original, folder, change):
    forge(folder, change, terms=True, commitment=True)
    assert verify_league(folder) != verify_league(original)


# In an archive


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_an_archive_is_found(folder, change):
    members = forge_archive(folder, change)
    with pytest.raises(Difference, match=FORGERIES[change]):
        verify_archive(folder, members)


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_an_archive_with_other_terms_is_found(folder, change):
    members = forge_archive(folder, change, terms=True)
    with pytest.raises(Difference, match=TERMS):
        verify_archive(folder, members)


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_an_archive_that_fits_everywhere_has_another_commitment(original, folder, change):
    members = forge_archive(folder, change, terms=True, commitment=True)
    assert verify_archive(folder, members) != verify_league(original)


# Unknown keys: nobody knows what they would change, so they are refused even if everything fits


UNKNOWN = {
    "at the top": lambda config: config.update(more=1),
    "of the clocks": lambda config: config["clocks"].update(more=1),
    "of a ruleset": lambda config: config["stages"][0]["ruleset"].update(more=1),
}
KNOWN = {"nothing": {}, "terms": {"terms": True}, "commitment": {"terms": True, "commitment": True}}


@pytest.mark.parametrize("fitting", KNOWN)
@pytest.mark.parametrize("place", UNKNOWN)
def test_unknown_key_of_the_configuration_is_refused(folder, place, fitting):
    members = export(folder)
    tournament = json.loads(members[archive_format.TOURNAMENT])
    UNKNOWN[place](tournament["configuration"])
    members |= {archive_format.TOURNAMENT: json.dumps(tournament).encode()}
    if fitting != "nothing":
        members = renew_archive(members, commitment=fitting == "commitment")
    with pytest.raises(Difference, match=r"^tournament\.json: configuration: .*more: unknown key"):
        verify_archive(folder, members)
    forge(folder, lambda database: change_config(database, UNKNOWN[place]), **KNOWN[fitting])
    with pytest.raises(RefereeError, match=r"damaged.*more: unknown key$"):
        verify_league(folder)


# An archive of an unfinished tournament has terms, too


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_change_in_an_archive_without_a_game_is_found(tmp_path, change):
    sample = SampleLeague(tmp_path)
    sample.league.close()
    folder = tmp_path / "league"
    right = export(folder)
    assert json.loads(right[archive_format.TOURNAMENT])["seed"] is None
    verify_archive(folder, right)
    members = forge_archive(folder, change)
    with pytest.raises(Difference, match=FORGERIES[change]):
        verify_archive(folder, members)


# The seed of a part is missing, and its records are from a tournament with another seed


def test_results_of_another_seed_are_refused_beside_an_unplayed_extension(folder, tmp_path):
    with closing(League.open(folder, create=False)) as league:
        cup = find_tournament(league, "cup")
        extend_tournament(league, cup, 1, seed=bytes(32), now_us=0)
    right = export(folder)
    verify_archive(folder, right)
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = SampleLeague(other_folder, seed=bytes(32))
    other.play(slice(None))
    other.league.close()
    records = export(other_folder / "league")
    members = put(right, archive_format.TOURNAMENT, "seed", value=None)
    members |= {name: records[name] for name in (archive_format.RECORDS, archive_format.RATINGS)}
    message = r"^tournament\.json: seed: missing, though all its games are played$"
    with pytest.raises(Difference, match=message):
        verify_archive(folder, members)
