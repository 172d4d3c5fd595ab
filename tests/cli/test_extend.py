"""`referee tournament extend` adds games with a seed of their own."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256

import pytest
from real_runs import SEED, THREE, place
from strangers import ask_a_stranger

from referee import deals
from referee.store.league import League
from referee.tournament import archive_format

pytestmark = [pytest.mark.unmeasured, pytest.mark.extended("plays further tournaments")]
FITS = "seed, configuration, bots and schedule fit"
GAMES = 6
"""Games of a round: two seatings at three tables."""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A league with a tournament of two rounds that was extended by one round, then by two rounds."""
    with place(tmp_path_factory.mktemp("extend")) as made:
        file = made.tournament(bots=THREE, matches=2)
        for words in (
            ("run", file),
            ("extend", "cup", "--matches", "1"),
            ("extend", "cup", "--matches", "2", "--logs", "logs", "--messages"),
        ):
            if words[0] == "extend" and words[3] == "1":
                shutil.copytree(made.folder / "league", made.folder / "before")
            done = made.referee("tournament", *words, "--league", "league")
            assert done.returncode == 0, done.stderr
        made.said = done.stdout
        yield made


@pytest.fixture
def database(here):
    """The database of a copy of the league, for a test to damage."""
    shutil.copytree(here.folder / "league", here.folder / "copy")
    with here.database("copy") as database:
        yield database
    shutil.rmtree(here.folder / "copy")


def extensions_of(here, league="league"):
    with League.open(here.folder / league, create=False) as store:
        return store.extensions("cup")


def forget(database, first):
    """Remove this game and all later ones from the league, as if they had not been played."""
    for table in ("faults", "seats", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id >= ?", (first,))  # noqa: S608
    database.execute("UPDATE extensions SET finished_at_us = NULL WHERE id = 2")


def test_existing_games_stay_as_they_are(here):
    before, after = here.records("before"), here.records("league")
    assert (len(before), len(after)) == (2 * GAMES, 5 * GAMES)
    assert after[: len(before)] == before


def test_logs_are_those_of_the_new_games(here):
    files = {(path.parent.name, path.name) for path in (here.folder / "logs").glob("*/*")}
    with League.open(here.folder / "league", create=False) as store:
        new = store.schedule("cup")[3 * GAMES :]
    assert files == {(game.game_id, f"{bot}.jsonl") for game in new for bot in game.bots}


def test_each_extension_has_its_own_seed(here):
    seeds = [row.seed.hex() for row in extensions_of(here)]
    assert len({SEED, *seeds}) == 3
    with League.open(here.folder / "league", create=False) as store:
        for game in store.schedule("cup"):
            seed = [SEED, *seeds][(game.index >= 2 * GAMES) + (game.index >= 3 * GAMES)]
            record = store.record(game.game_id)
            assert record.deck == deals.deck(bytes.fromhex(seed), game.deal_id, record.ruleset)


def test_commitments_are_printed_before_the_games_and_seeds_after(here):
    first, second = extensions_of(here)
    lines = here.said.splitlines()
    assert lines[0].startswith("cup: 30 games, of which 18 are played, 3 bots. Commitment")
    assert lines[2] == f"Extension 2: 12 of the games. Commitment: {second.commitment}"
    assert second.commitment == sha256(second.terms.encode()).hexdigest()
    assert deals.seed_digest(second.seed) in second.terms
    assert lines[-3:] == [
        f"All games are played. Seed: {SEED}",
        f"Seed of extension 1: {first.seed.hex()}",
        f"Seed of extension 2: {second.seed.hex()}",
    ]


def test_status_and_verify_include_extensions(here):
    first, _ = extensions_of(here)
    done = here.referee("tournament", "status", "cup", "--json", "--league", "league")
    status = json.loads(done.stdout)
    assert [(each["matches"], each["games"]) for each in status["extensions"]] == [(1, 6), (2, 12)]
    assert status["extensions"][0]["seed"] == first.seed.hex()
    assert [row["games"] for row in status["rounds"]] == [GAMES] * 5 + [5 * GAMES]
    done = here.referee("verify", "--league", "league")
    assert (done.returncode, done.stdout) == (0, "cup: 30 games verified.\n")


def test_archive_has_the_extensions(here):
    done = here.referee("tournament", "export", "cup", "--league", "league")
    assert done.returncode == 0, done.stderr
    done = here.referee("verify", "cup.zip")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cup: 30 games and the ratings verified.\n")
    for number, row in enumerate(extensions_of(here), 1):
        assert f"first game of extension {number}: {row.commitment}\n" in done.stdout


@pytest.mark.toolchain("node")
def test_stranger_finds_the_seed_of_every_deck(here):
    archive = here.folder / "stranger.zip"
    words = ("cup", "--league", "league", "--output", archive)
    assert here.referee("tournament", "export", *words).returncode == 0
    *commitments, said = ask_a_stranger(archive).stdout.splitlines()
    for line, row in zip(commitments[1:], extensions_of(here), strict=True):
        assert line == f"commitment {row.commitment}: {FITS}"
    assert said == "30 decks follow from the seed"
    first, second = (row.seed.hex().encode() for row in extensions_of(here))
    archive.write_bytes(archive.read_bytes().replace(first, second))
    assert "seed: not as in the terms" in ask_a_stranger(archive).stderr


@pytest.mark.extended("plays further tournaments")
def test_unfinished_extension_keeps_its_seed_secret_and_can_be_resumed(here, database):
    first, second = extensions_of(here)
    forget(database, 25)
    said = here.referee("tournament", "status", "cup", "--league", "copy").stdout
    assert f"seed of extension 1 {first.seed.hex()}" in said
    assert "The seed of extension 2 is published when all its games are played." in said
    assert second.seed.hex() not in said
    done = here.referee("tournament", "export", "cup", "--league", "copy", "--output", "part.zip")
    assert done.returncode == 0, done.stderr
    told = "24 of 30 games of cup, with the seed, but without that of extension 2, which is still"
    assert told in done.stdout
    assert second.seed.hex().encode() not in (here.folder / "part.zip").read_bytes()
    assert first.seed.hex().encode() in (here.folder / "part.zip").read_bytes()
    done = here.referee("verify", "./part.zip")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "cup: 24 of 30 games verified, except the decks of extension 2: the seed is still secret.\n"
    )
    done = here.referee("tournament", "resume", "cup", "--league", "copy")
    assert done.returncode == 0, done.stderr
    assert here.records("copy") == here.records("league")


def test_extension_that_is_finished_first_has_its_decks_verified(here, database):
    for table in ("faults", "seats", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id = 12")  # noqa: S608
    database.execute("UPDATE tournaments SET finished_at_us = NULL")
    done = here.referee("tournament", "export", "cup", "--league", "copy", "--output", "part.zip")
    assert done.returncode == 0, done.stderr
    told = "29 of 30 games of cup, with the seed, but without that of the planned schedule, which is still secret;"
    assert told in done.stdout
    assert SEED.encode() not in (here.folder / "part.zip").read_bytes()
    done = here.referee("verify", "./part.zip")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "cup: 29 of 30 games verified, except the decks of the planned schedule: the seed is still secret.\n"
    )
    forget(database, 30)
    done = here.referee("tournament", "export", "cup", "--league", "copy", "--output", "part.zip")
    told = "28 of 30 games of cup, with the seed, but without those of the planned schedule, extension 2, which are still"
    assert told in done.stdout
    done = here.referee("verify", "./part.zip")
    assert done.stdout.startswith(
        "cup: 28 of 30 games verified, except the decks of the planned schedule, extension 2: the seeds are still secret.\n"
    )
    forget(database, 13)
    database.execute("UPDATE extensions SET finished_at_us = NULL")
    done = here.referee("tournament", "export", "cup", "--league", "copy", "--output", "part.zip")
    assert "11 of 30 games of cup, without the seeds, which are still secret;" in done.stdout
    done = here.referee("verify", "./part.zip")
    assert done.stdout.startswith(
        "cup: 11 of 30 games verified, except for their decks: the seeds are still secret.\n"
    )


SPOILT = {
    "the seed": (
        "UPDATE extensions SET seed = zeroblob(32) WHERE id = 2",
        "cup: extension 2: the SHA-256 of the seed is 66687aad",
    ),
    "the terms": (
        "UPDATE extensions SET terms = (SELECT terms FROM tournaments) WHERE id = 2",
        "cup: extension 2: the SHA-256 of the terms is ",
    ),
    "its matches": ("UPDATE extensions SET matches = 3 WHERE id = 2", "cup: the schedule has 30"),
    "no matches": (
        "UPDATE extensions SET matches = 0 WHERE id = 2",
        "cup: the configuration makes no schedule: an extension must add",
    ),
    "where it begins": (
        "UPDATE extensions SET first_match = 11 WHERE id = 2",
        "cup: extension 1: the number of stored games does not fit",
    ),
    "a game": (
        "DELETE FROM results WHERE game_id = 15",
        "cup: 29 of 30 games verified; cup-15 is not stored",
    ),
}


@pytest.mark.parametrize(("statement", "reason"), SPOILT.values(), ids=SPOILT)
def test_wrong_extension_in_the_league_is_detected(here, database, statement, reason):
    database.execute(statement)
    done = here.referee("verify", "cup", "--league", "copy")
    assert done.returncode == 1
    assert done.stderr.startswith(f"referee: {reason}")


def test_wrong_schedule_in_the_terms_of_an_extension_is_detected(here, database):
    query = "SELECT terms FROM extensions WHERE id = 1"
    (terms,) = database.execute(query).fetchone()
    digest = terms.splitlines()[-1].split()[0]
    terms = terms.replace(digest, "0" * 64)
    change = "UPDATE extensions SET terms = ?, commitment = ? WHERE id = 1"
    database.execute(change, (terms, sha256(terms.encode()).hexdigest()))
    done = here.referee("verify", "cup", "--league", "copy")
    assert done.returncode == 1
    assert done.stderr == (
        f"referee: cup: extension 1: the SHA-256 of the schedule is {digest}, not {'0' * 64} as the terms say\n"
    )


def changed(archive, *, at, value):
    """Return an archive with another value in tournament.json, packed as the referee does it."""
    members = archive_format.unpack(archive, archive.read_bytes())
    tournament = json.loads(members["tournament.json"])
    *keys, last = at
    place = tournament
    for key in keys:
        place = place[key]
    place[last] = value
    members["tournament.json"] = json.dumps(tournament).encode()
    return archive_format.pack({name: members[name] for name in archive_format.MEMBERS})


SPOILT_ARCHIVES = {
    "no extensions": (
        ("extensions",),
        [],
        "tournament.json: schedule: 30 games, but the configuration makes 12",
    ),
    "matches": (
        ("extensions", 0, "matches"),
        2,
        "tournament.json: schedule: 30 games, but configuration and extensions make 36",
    ),
    "more challengers than bots": (
        ("configuration", "stages", 0, "challengers"),
        9,
        "tournament.json: configuration: stages: 0: challengers: impossible number",
    ),
    "other seed": (
        ("extensions", 0, "seed"),
        "00" * 32,
        "extension 1: the SHA-256 of the seed is 66687aad",
    ),
    "no seed": (
        ("extensions", 1, "seed"),
        None,
        "tournament.json: extensions: 1: seed: missing, though all",
    ),
}


@pytest.mark.parametrize(("at", "value", "reason"), SPOILT_ARCHIVES.values(), ids=SPOILT_ARCHIVES)
def test_wrong_extension_in_an_archive_is_detected(here, at, value, reason):
    archive = here.folder / "whole.zip"
    words = ("cup", "--league", "league", "--output", archive)
    assert here.referee("tournament", "export", *words).returncode == 0
    spoilt = here.folder / "spoilt.zip"
    spoilt.write_bytes(changed(archive, at=at, value=value))
    done = here.referee("verify", spoilt)
    assert done.returncode == 1
    assert done.stderr.startswith(f"referee: {spoilt}: {reason}")


BAD = {
    "no such tournament": (
        ("other", "--matches", "1"),
        "league: no tournament 'other'; there are cup",
    ),
    "too many games": (
        ("cup", "--matches", "1000000"),
        "--matches: cup would have more than 1000000 games, the limit",
    ),
}


@pytest.mark.parametrize(("words", "reason"), BAD.values(), ids=BAD)
def test_bad_input_changes_nothing(here, words, reason):
    done = here.referee("tournament", "extend", *words, "--league", "league")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"referee: {reason}\n"
    assert len(extensions_of(here)) == 2


@pytest.mark.extended("plays further tournaments")
@pytest.mark.toolchain("node")
def test_balanced_choice_is_extended_by_another_one(here):
    file = here.folder / "few.toml"
    here.tournament("few", matches=1)
    file.write_text(file.read_text().replace("matches = 1", "budget = 4"))
    assert here.referee("tournament", "run", file, "--league", "few").returncode == 0
    done = here.referee(
        "tournament", "extend", "few", "--matches", "3", "--league", "few", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"]
    shown = here.referee("tournament", "status", "few", "--league", "few", "--json")
    status = json.loads(shown.stdout)
    assert status["finished"]
    assert [each["games"] for each in status["extensions"]] == [6]
    assert status["rounds"][-1]["done"] == 4 + 6
    assert here.referee("tournament", "export", "few", "--league", "few").returncode == 0
    for what in (("few", "--league", "few"), ("few.zip",)):
        checked = here.referee("verify", *what)
        assert checked.returncode == 0, checked.stderr
    said = ask_a_stranger(here.folder / "few.zip").stdout
    assert said.endswith(f"{FITS}\n10 decks follow from the seed\n")
