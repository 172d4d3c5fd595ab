"""`referee verify` names the first difference between a league, its seeds and the rules."""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import replace

import pytest
from forgeries import renew_database
from real_runs import place

from referee.protocol import record as wire
from referee.records import BotId
from referee.store.league import League


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with place(tmp_path_factory.mktemp("verify")) as made:
        crashes = made.bot("crashes", "import os\nos._exit(3)\n")
        file = made.tournament(bots=("random", "greedy", crashes), matches=2)
        done = made.referee("tournament", "run", file, "--league", "whole")
        assert done.returncode == 0, done.stderr
        yield made


@pytest.fixture
def database(here):
    shutil.copytree(here.folder / "whole", here.folder / "league")
    with here.database() as database:
        yield database
    shutil.rmtree(here.folder / "league")


def key_of(database, game):
    (key,) = database.execute("SELECT id FROM games WHERE name = ?", (game,)).fetchone()
    return key


def change(database, game, *, with_):
    """Replace the record of a game."""
    key = key_of(database, game)
    (kept,) = database.execute("SELECT record FROM records WHERE game_id = ?", (key,)).fetchone()
    record = with_(wire.loads(zlib.decompress(kept)))
    changed = zlib.compress(wire.dumps(record))
    database.execute("UPDATE records SET record = ? WHERE game_id = ?", (changed, key))


def test_correct_league_is_verified(here):
    done = here.referee("verify", "--league", "whole")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "cup: 12 games verified.\n"
    assert here.referee("verify", "cup", "--league", "whole").stdout == done.stdout


def test_league_without_games_says_so(here):
    League.open(here.folder / "empty", create=True).close()
    done = here.referee("verify", "--league", "empty")
    assert (done.returncode, done.stdout, done.stderr) == (0, "games: none\n", "")


def test_empty_name_is_no_tournament(here):
    done = here.referee("verify", "", "--league", "whole")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no tournament ''" in done.stderr


def other_deck(record):
    first, second = record.deck[0], next(card for card in record.deck if card != record.deck[0])
    swapped = {first: second, second: first}
    return replace(record, deck=tuple(swapped.get(card, card) for card in record.deck))


def other_move(record):
    first, *others = record.moves
    return replace(record, moves=(replace(first, seat=1), *others))


def one_move_less(record):
    return replace(record, moves=record.moves[:-1])


def one_card_less(record):
    return replace(record, deck=record.deck[1:])


def more_patience(record):
    return replace(record, max_strikes=record.max_strikes + 1)


def other_scores(record):
    scores = (record.scores[0] + 1, *record.scores[1:])
    return replace(record, scores=scores)


def other_seating(record):
    return replace(record, seating=(BotId("eve", "1"), *record.seating[1:]))


def slow_move(record):
    """Exceed the limit of 5 s in the first move, in a game that lasts long enough."""
    first, *others = record.moves
    moves = (replace(first, elapsed_us=9_000_000), *others)
    return replace(record, moves=moves, duration_us=record.duration_us + 9_000_000)


def other_rules(record):
    return replace(record, ruleset=record.ruleset.with_options(end_on=None, max_turns=77))


RECORDS = {
    other_deck: "cup-2: the deck in the record is not the one that the seed gives",
    other_move: "cup-2: move 1: seat 1 moves, but seat 0 must decide",
    one_move_less: "cup-2: the game is not over after ",
    more_patience: "cup-2: the record has other clocks or another max_strikes than the tournament",
    other_scores: "cup-2: result: the record says ",
    other_seating: "cup-2: the record has eve@1 ",
    slow_move: "cup-2: move 1: 9000000 us are charged, but the limit was 5000000 us",
    other_rules: "cup-2: the record has the rules of ",
}


def assert_difference(here, says):
    done = here.referee("verify")
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.startswith("referee: cup: ") or "tournament cup" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("tamper", RECORDS, ids=lambda tamper: tamper.__name__)
def test_changed_record_is_detected(here, database, tamper):
    change(database, "cup-2", with_=tamper)
    change(database, "cup-9", with_=other_deck)
    assert_difference(here, f"referee: cup: {RECORDS[tamper]}")


STATEMENTS = {
    "a bit of a record": (
        "UPDATE records SET record = zeroblob(50) WHERE game_id = :game",
        "cup-2: league: the record of cup-2 cannot be read",
    ),
    "the record of another game": (
        "UPDATE records SET record = (SELECT record FROM records WHERE game_id = :other) WHERE game_id = :game",
        "cup-2: the stored record is that of game cup-3",
    ),
    "a record that has gone": (
        "DELETE FROM records WHERE game_id = :game",
        "cup-2: league: no game 'cup-2' is stored",
    ),
    "a score": (
        "UPDATE seats SET score = score + 1 WHERE game_id = :game AND seat = 0",
        "cup-2: scores: the database has ",
    ),
    "a rank": (
        "UPDATE seats SET rank = 3 - rank WHERE game_id = :game",
        "cup-2: ranks: the database has ",
    ),
    "who played": (
        "UPDATE seats SET bot_id = bot_id % 3 + 1 WHERE game_id = :game",
        "cup-2: bots: the database has ",
    ),
    "by which rules": (
        "UPDATE results SET ruleset = 'basic' WHERE game_id = :game",
        "cup-2: ruleset: the database has basic, the record classic",
    ),
    "how it ended": (
        "UPDATE results SET termination = 'exhausted' WHERE game_id = :game",
        "cup-2: the end or the times in the table results differ from the record",
    ),
    "the number of decisions": (
        "UPDATE results SET decisions = decisions + 1 WHERE game_id = :game",
        "cup-2: the end or the times in the table results differ from the record",
    ),
    "when it began": (
        "UPDATE results SET started_at_us = started_at_us - 1 WHERE game_id = :game",
        "cup-2: the end or the times in the table results differ from the record",
    ),
    "how long it lasted": (
        "UPDATE results SET duration_us = duration_us + 1 WHERE game_id = :game",
        "cup-2: the end or the times in the table results differ from the record",
    ),
    "the speed of the machine": (
        "UPDATE results SET speed = speed + 1 WHERE game_id = :game",
        "cup-2: the machine in the table results differs from the record",
    ),
    "the machine": (
        "UPDATE machines SET host = 'elsewhere'",
        "cup-1: the machine in the table results differs from the record",
    ),
    "a forfeit": (
        "UPDATE faults SET forfeit = 0 WHERE game_id = :faulty",
        "the table of faults differs from the record",
    ),
    "the time of a fault": (
        "UPDATE faults SET elapsed_us = elapsed_us + 1 WHERE game_id = :faulty",
        "the table of faults differs from the record",
    ),
    "the exit code of a fault": (
        "UPDATE faults SET exit_code = 77 WHERE game_id = :faulty",
        "the table of faults differs from the record",
    ),
    "the seed": (
        "UPDATE tournaments SET seed = zeroblob(32)",
        "cup: the SHA-256 of the seed is 66687aad",
    ),
    "the commitment": (
        "UPDATE tournaments SET commitment = '66687aad'",
        ", not 66687aad as the commitment says",
    ),
    "the terms": (
        "UPDATE tournaments SET terms = terms || ' '",
        "tournament cup is damaged: these are no terms of a commitment",
    ),
    "the schedule": (
        "UPDATE games SET seating = 1 - seating WHERE id = :game",
        "cup-2: the stored schedule differs from that of the configuration",
    ),
    "a game of the schedule": (
        "DELETE FROM games WHERE id = :game",
        "the schedule has 11 games, not 12",
    ),
    "the configuration": (
        "UPDATE tournaments SET config = '{}'",
        "league: tournament cup is damaged: its configuration: format: Field required",
    ),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_other_changes_are_detected(here, database, what):
    statement, says = STATEMENTS[what]
    (faulty,) = database.execute("SELECT min(game_id) FROM faults").fetchone()
    keys = {name: key_of(database, game) for name, game in (("game", "cup-2"), ("other", "cup-3"))}
    keys["faulty"] = faulty
    changed = database.execute(
        statement, {key: keys[key] for key in keys if f":{key}" in statement}
    )
    assert changed.rowcount > 0
    assert_difference(here, says)


NEWER = {
    "the algorithm of its schedule": (
        ('"round-robin-1"', '"swiss-7"'),
        "its schedule was made by 'swiss-7', which this version of the referee does not know",
    ),
    "the format of its configuration": (
        ('"format":1', '"format":2'),
        "its configuration has format 2; this version of the referee knows 1",
    ),
}


@pytest.mark.parametrize("what", NEWER)
def test_tournament_of_a_newer_version_is_refused(here, database, what):
    change, says = NEWER[what]
    database.execute("UPDATE tournaments SET config = replace(config, ?, ?)", change)
    renew_database(database)
    done = here.referee("verify")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"referee: league: tournament cup: {says}\n"


def add_tournament(database, name):
    """Add a copy of the tournament, with its first game only, which is not played."""
    for table, changed in (
        ("tournaments", {"id": 99, "name": name}),
        ("matches", {"id": 99, "tournament_id": 99}),
        ("games", {"id": 99, "name": f"{name}-1", "match_id": 99}),
    ):
        old = database.execute(f"SELECT * FROM {table} ORDER BY id LIMIT 1")  # noqa: S608
        row = dict(zip([each[0] for each in old.description], old.fetchone(), strict=True))
        places = ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {table} VALUES ({places})", tuple((row | changed).values()))  # noqa: S608


@pytest.mark.parametrize(
    ("config", "reason"),
    [("{}", "format: Field required"), ('{"format":1,"x":1}', "file: Field required")],
)
def test_list_of_tournaments_names_the_damaged_one_and_has_the_others(
    here, database, config, reason
):
    add_tournament(database, "other")
    database.execute("UPDATE tournaments SET config = ? WHERE name = 'cup'", (config,))
    done = here.referee("tournament", "status", "--json")
    assert done.returncode == 1
    assert [row["tournament"] for row in json.loads(done.stdout)] == ["other"]
    [line] = done.stderr.splitlines()
    assert line.startswith("referee: tournament cup is damaged: its configuration: ")
    assert reason in line


@pytest.mark.parametrize(
    "command",
    [("resume", "cup"), ("extend", "cup", "--matches", "1"), ("export", "cup"), ("status", "cup")],
    ids=lambda command: command[0],
)
def test_command_refuses_a_tournament_with_an_unknown_schedule(here, database, command):
    change, says = NEWER["the algorithm of its schedule"]
    database.execute("UPDATE tournaments SET config = replace(config, ?, ?)", change)
    done = here.referee("tournament", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"referee: league: tournament cup: {says}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("game", "replay", "cup-1", "--tables"),
        ("play", "random", "greedy", "--from", "cup-1:0"),
        ("bots", "debug", "random", "cup-1", "--seat", "0"),
    ],
    ids=" ".join,
)
def test_game_with_a_wrong_deck_is_named(here, database, command):
    change(database, "cup-1", with_=one_card_less)
    done = here.referee(*command)
    assert done.returncode == 1
    assert "referee: cup-1 is not correct: the deck " in done.stderr


def remove(database, game):
    key = key_of(database, game)
    for table in ("seats", "faults", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id = ?", (key,))  # noqa: S608


def test_missing_game_of_a_finished_tournament_is_detected(here, database):
    remove(database, "cup-5")
    assert_difference(here, "cup: 11 of 12 games verified; cup-5 is not stored\n")
    remove(database, "cup-2")
    assert_difference(here, "cup: 10 of 12 games verified; cup-2 and 1 more are not stored\n")


def test_unfinished_tournament_may_miss_games(here, database):
    remove(database, "cup-12")
    database.execute("UPDATE tournaments SET finished_at_us = NULL")
    done = here.referee("verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "cup: 11 of 12 games verified.\n"


def test_kept_games_are_verified_except_their_decks(here, database):
    for seed in (1, 2):
        table = ("random", "greedy", "--ruleset", "duel", "--seed", seed)
        assert here.referee("play", *table, "--keep").returncode == 0
    done = here.referee("verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "cup: 12 games verified.\ngames outside tournaments: 2 verified, except for their decks.\n"
    )
    assert here.referee("verify", "cup").stdout == "cup: 12 games verified.\n"
    (game,) = database.execute("SELECT name FROM games WHERE match_id IS NULL LIMIT 1").fetchone()
    more = "UPDATE seats SET score = score + {} WHERE seat = 0 AND game_id = ?"
    database.execute(more.format(1), (key_of(database, game),))
    done = here.referee("verify")
    assert done.returncode == 1
    assert done.stderr.startswith(f"referee: {game}: scores: the database has ")
    database.execute(more.format(-1), (key_of(database, game),))
    change(database, game, with_=one_move_less)
    done = here.referee("verify")
    assert done.returncode == 1
    assert done.stderr.startswith(f"referee: {game}: the game is not over after ")
