"""An archive has the data of the league, and every change of a byte in it is found."""

from __future__ import annotations

import gzip
import json
import re
import struct
import zipfile
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from forgeries import renew_archive
from sample_league import BOTS, GAMES, SEED, SampleLeague

from referee.errors import Cause, Evidence, NotFoundError, UserError
from referee.match.replay import Difference
from referee.protocol import record as wire
from referee.records import BotId, Fault
from referee.store.league import League
from referee.tournament import archive_format
from referee.tournament.archive_reader import ArchivedTournament
from referee.tournament.archive_writer import export_archive
from referee.tournament.verify import verify_tournament
from referee.tournament.verify_league import LeagueTournament


@pytest.fixture
def unplayed(tmp_path):
    """Return a league with a tournament without any game."""
    sample = SampleLeague(tmp_path)
    yield sample
    sample.league.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a league with a finished tournament."""
    sample = SampleLeague(tmp_path_factory.mktemp("finished"))
    sample.play(slice(None))
    yield sample
    sample.league.close()


@pytest.fixture(scope="module")
def data(finished):
    """Return the archive of the finished tournament."""
    return finished.export().data


@pytest.fixture
def verify(tmp_path):
    """Return a function that writes bytes to a file and verifies this archive."""

    def check(content):
        path = tmp_path / "cup.zip"
        path.write_bytes(content)
        return ArchivedTournament.open(path).verify()

    return check


def read_members(data):
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if name != archive_format.SUMS
        }


# The content of an archive


def test_the_archive_of_a_finished_tournament_verifies(finished, data, verify):
    assert verify(data) == GAMES == verify_tournament(LeagueTournament(finished.league, "cup"))
    export = finished.export()
    assert (export.played, export.games, export.has_seed) == (GAMES, GAMES, True)


def test_the_same_state_makes_the_same_bytes(finished, data, unplayed):
    assert finished.export().data == data
    unplayed.play(slice(5, None))
    unplayed.play(slice(5))
    assert unplayed.export().data == data


def test_the_page_names_the_format_and_every_key_of_the_tournament():
    page = Path(__file__).parents[2] / "proto" / "DEALS.md"
    [row] = re.findall(r"^\| `tournament\.json` \| (.*)$", page.read_text(), re.MULTILINE)
    keys = set(archive_format.TournamentModel.model_fields)
    missing = sorted(keys - set(re.findall(r"`(\w+)`", row)))
    assert not missing, f"describe {missing} in the row tournament.json of proto/DEALS.md"
    assert f"`format`, the number {archive_format.FORMAT};" in row


def test_any_program_can_read_an_archive(finished, data, tmp_path):
    """Read an archive with zip, JSON, gzip and SHA-256 only."""
    members = read_members(data)
    assert tuple(members) == archive_format.MEMBERS
    tournament = json.loads(members["tournament.json"])
    assert tournament["format"] == archive_format.FORMAT
    assert tournament["name"] == "cup"
    assert tournament["commitment"] == sha256(tournament["terms"].encode()).hexdigest()
    assert tournament["seed"] == SEED.hex()
    assert tournament["configuration"]["stages"][1]["ruleset"]["name"] == "duel"
    assert [game for match in tournament["schedule"] for game in match["games"]] == [
        f"cup-{number}" for number in range(1, GAMES + 1)
    ]
    bots = json.loads(members["bots.json"])
    assert [bot["bot"] for bot in bots] == [f"{name}@1.0" for name in BOTS]
    assert [bot["content_hash"] for bot in bots] == [
        row.content_hash for row in finished.league.bots()
    ]
    assert bots[0]["manifest"]["run"]["command"] == ["python3", "bot.py"]
    ratings = json.loads(members["ratings.json"])
    assert {ruleset: set(table) for ruleset, table in ratings.items()} == {
        ruleset: {f"{name}@1.0" for name in BOTS} for ruleset in ("classic", "duel")
    }
    stream = gzip.decompress(members["records.binpb.gz"])
    first = finished.league.record("cup-1")
    size = stream[0] & 127 | stream[1] << 7
    assert wire.loads(stream[2 : 2 + size]) == first
    assert str(tmp_path).encode() not in data
    assert str(finished.league.folder).encode() not in data + stream


def test_export_writes_each_record_before_it_reads_the_next(finished, data, monkeypatch):
    """The memory may be too small for all records."""
    steps = []

    def record(league, game_id):
        steps.append(f"read {game_id}")
        return read(league, game_id)

    def dumps(game):
        steps.append(f"write {game.game_id}")
        return write(game)

    read, write = League.record, wire.dumps
    monkeypatch.setattr(League, "record", record)
    monkeypatch.setattr(archive_format.wire, "dumps", dumps)
    assert finished.export().data == data
    numbers = range(1, GAMES + 1)
    assert steps == [f"{step} cup-{number}" for number in numbers for step in ("read", "write")]


def test_an_unfinished_tournament_has_no_seed(unplayed, verify):
    unplayed.play(slice(2, 7))
    export = unplayed.export()
    assert (export.played, export.games, export.has_seed) == (5, GAMES, False)
    assert json.loads(read_members(export.data)["tournament.json"])["seed"] is None
    assert SEED.hex().encode() not in export.data
    assert SEED not in export.data
    assert verify(export.data) == 5


def test_decks_of_a_match_must_be_equal_even_without_a_seed(unplayed, verify):
    """Two cards of the deck change places that no move of the game reaches."""
    unplayed.play(slice(2))

    def swap_last_cards(records):
        *front, last_but_one, last = records[1].deck
        assert last_but_one != last
        records[1] = replace(records[1], deck=(*front, last, last_but_one))

    members = change_records(read_members(unplayed.export().data), swap_last_cards)
    message = "^cup-2: the record has another deck than an earlier game with the same deal$"
    with pytest.raises(Difference, match=message):
        verify(archive_format.pack(members))


def test_the_archive_of_an_unplayed_tournament_verifies(unplayed, verify):
    assert verify(unplayed.export().data) == 0


def test_exporting_an_unknown_tournament_fails(unplayed):
    with pytest.raises(NotFoundError, match="no tournament 'cap'"):
        export_archive(unplayed.league, unplayed.roster, "cap")


def test_records_of_any_length_can_be_stored_and_loaded(finished):
    record = finished.league.record("cup-1")
    detailed = [replace(record, isolation="x" * length) for length in (0, 120, 20_000, 5_000_000)]
    assert list(archive_format.load_records(archive_format.dump_records(detailed))) == detailed
    assert list(archive_format.load_records(archive_format.dump_records([]))) == []


# Changes that do not fit the sums


def flip_bit(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("name", [*archive_format.MEMBERS, archive_format.SUMS])
def test_a_changed_byte_in_a_part_is_found(data, verify, name):
    with zipfile.ZipFile(BytesIO(data)) as archive:
        content, begin = archive.read(name), archive.getinfo(name).header_offset
    at = data.index(content, begin) + len(content) // 2
    with pytest.raises(Difference, match=rf"damaged.*{name}"):
        verify(flip_bit(data, at))


@pytest.mark.parametrize("name", [*archive_format.MEMBERS, archive_format.SUMS])
def test_a_changed_part_in_an_intact_zip_is_found(data, verify, name):
    """Change a part as a program does that unpacks and packs the archive."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members[name] = flip_bit(members[name], len(members[name]) // 2)
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    with pytest.raises(Difference, match=r": its SHA-256 is not the one in SHA256SUMS") as caught:
        verify(buffer.getvalue())
    assert name == archive_format.SUMS or str(caught.value).startswith(name)


def test_a_changed_byte_anywhere_is_found(data, verify):
    """Change each byte of the zip structure, and some bytes of the members."""
    members = list(read_members(data).values())
    inside = {
        at
        for content in members
        for at in range(data.index(content) + 1, data.index(content) + len(content) - 1)
    }
    places = [at for at in range(len(data)) if at not in inside] + sorted(inside)[::997]
    for at in places:
        with pytest.raises((Difference, UserError)):
            verify(flip_bit(data, at))


def test_an_archive_that_is_cut_off_anywhere_is_refused(data, verify):
    for size in (*range(0, len(data), 499), len(data) - 1):
        with pytest.raises((Difference, UserError)) as caught:
            verify(data[:size])
        assert size < 4 or "the zip is damaged or cut off" in str(caught.value)


def test_bytes_before_or_after_the_zip_are_found(data, verify):
    for content in (b"\0" + data, data + b"\0"):
        with pytest.raises(Difference, match="the zip"):
            verify(content)


def test_a_zip_that_another_program_packed_is_refused(data, verify):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, zipfile.ZipFile(BytesIO(data)) as old:
        for name in old.namelist():
            archive.writestr(name, old.read(name))
    with pytest.raises(Difference, match="the zip was not packed by the referee: byte"):
        verify(buffer.getvalue())


# Changes by somebody who corrects the sums, too: the members do not fit each other


def change_json(members, name, change):
    values = json.loads(members[name])
    change(values)
    return members | {name: (json.dumps(values) + "\n").encode()}


def change_records(members, change):
    records = list(archive_format.load_records(members[archive_format.RECORDS]))
    change(records)
    return members | {archive_format.RECORDS: archive_format.dump_records(records)}


def put(*path, value):
    """Return a function that puts a value at the end of a path of keys."""

    def change(values):
        *way, last = path
        for key in way:
            values = values[key]
        values[last] = value

    return change


def drop(*path):
    """Return a function that removes the value at the end of a path of keys."""

    def change(values):
        *way, last = path
        for key in way:
            values = values[key]
        del values[last]

    return change


def swap_two_cards(records):
    cards = {records[1].deck[0]: records[1].deck[-1], records[1].deck[-1]: records[1].deck[0]}
    deck = tuple(cards.get(card, card) for card in records[1].deck)
    records[1] = replace(records[1], deck=deck)


def change_rank(records):
    records[1] = replace(records[1], ranks=(records[1].ranks[1], 3))


def change_seat_of_move(records):
    moves = records[1].moves
    records[1] = replace(records[1], moves=(*moves[:3], replace(moves[3], seat=9), *moves[4:]))


def remove_first_times(records):
    moves = (replace(move, elapsed_us=0) for move in records[1].moves[:2])
    records[1] = replace(records[1], moves=(*moves, *records[1].moves[2:]))


def enlarge_batch(records):
    first, *others = records[1].moves
    records[1] = replace(records[1], moves=(replace(first, batch_size=65), *others))


def change_seating(records):
    records[1] = replace(records[1], seating=(BotId("eve", "1"), records[1].seating[1]))


def swap_records(records):
    records[1], records[2] = records[2], records[1]


def join_games(schedule):
    """Return a schedule of matches with one game each. Its digest is that of `schedule`."""
    return [
        match
        | {"games": [game], "deals": [deal], "lanes": [lane]}
        | {"bots": match["bots"][seating:] + match["bots"][:seating]}
        for match in schedule
        for seating, (game, deal, lane) in enumerate(
            zip(match["games"], match["deals"], match["lanes"], strict=True)
        )
    ]


def make_balanced(configuration):
    configuration["schedule"] = "balanced-1"
    configuration["until"] = {"confidence": 0.95, "margin": 30.0}
    for stage in configuration["stages"]:
        stage.update(balanced=True, matches=6)


ZEROS = "0" * 64
EXTENSION = {"created_at_us": 0, "matches": 1, "commitment": ZEROS, "terms": "", "seed": None}
TOURNAMENT = {
    "seed": (put("seed", value=ZEROS), "the SHA-256 of the seed is 66687aad"),
    "no seed": (put("seed", value=None), "tournament.json: seed: missing, though all its games"),
    "short seed": (put("seed", value="00"), "tournament.json: seed: "),
    "commitment": (put("commitment", value=ZEROS), "the SHA-256 of the terms is "),
    "terms": (put("terms", value="no terms"), "tournament.json: terms: these are no terms of a"),
    "no terms": (drop("terms"), "tournament.json: terms: Field required"),
    "planned schedule": (
        put("planned_schedule", value=[]),
        "tournament.json: planned_schedule: not the one of the commitment",
    ),
    "planned schedule with the same games": (
        lambda values: values.update(planned_schedule=values["schedule"]),
        "tournament.json: planned_schedule: must be null, because the schedule has the same games",
    ),
    "planned schedule with other games and the same digest": (
        lambda values: values.update(planned_schedule=join_games(values["schedule"])),
        "tournament.json: planned_schedule: not the one of the commitment",
    ),
    "more lanes than possible": (
        put("configuration", "lanes", value=10**6),
        "tournament.json: configuration: lanes: more than 1024",
    ),
    "until with a balanced stage": (
        lambda values: make_balanced(values["configuration"]),
        "tournament.json: configuration: until: impossible with a balanced stage",
    ),
    "name": (put("name", value="cap"), "tournament.json: configuration: name: cup, not cap"),
    "name that imitates other output": (
        put("configuration", "name", value="cup: 18 games and the ratings verified.\n[conceal]"),
        "tournament.json: configuration: name: impossible name",
    ),
    "matches of an extension": (
        put("extensions", value=[EXTENSION | {"matches": 10**4_000}]),
        "tournament.json: extensions: 0: matches: ",
    ),
    "too many extensions": (
        put("extensions", value=[EXTENSION] * 1001),
        "tournament.json: extensions: ",
    ),
    "no name": (drop("name"), "tournament.json: name: Field required"),
    "more": (put("more", value=1), "tournament.json: more: "),
    "option of another ruleset": (
        put("configuration", "stages", 0, "ruleset", "ghost_start", value="as-dealt"),
        "tournament.json: configuration: stages: 0: ruleset: Value error, classic has no ghost, so",
    ),
    "matches": (
        put("configuration", "stages", 0, "matches", value=10**15),
        "tournament.json: configuration: stages: 0: matches: impossible number",
    ),
    "seats": (
        put("configuration", "stages", 0, "seats", value=30_000),
        "tournament.json: configuration: stages: 0: seats: impossible number",
    ),
    "no seats": (
        put("configuration", "stages", 0, "seats", value=0),
        "tournament.json: configuration: stages: 0: seats: impossible number",
    ),
    "challengers below 0": (
        put("configuration", "stages", 0, "challengers", value=-1),
        "tournament.json: configuration: stages: 0: challengers: impossible number",
    ),
    "no match": (
        put("configuration", "stages", 0, "matches", value=0),
        "tournament.json: configuration: stages: 0: matches: impossible number",
    ),
    "too many bots": (
        put("configuration", "bots", value=[{"text": "a@1", "folder": None}] * 2001),
        "tournament.json: configuration: bots: more than 2000",
    ),
    "no lanes": (
        put("configuration", "lanes", value=None),
        "tournament.json: configuration: lanes: missing",
    ),
    "no stages": (
        put("configuration", "stages", value=[]),
        "tournament.json: configuration: stages: there must be at least one",
    ),
    "no configuration": (
        put("configuration", value={}),
        "tournament.json: configuration: format: Field required",
    ),
    "bots": (
        put("configuration", "bots", 0, "text", value="eve@1"),
        "bots.json: it has greedy@1.0, random@1.0, bait@1.0, but the configuration has eve@1, ",
    ),
    "schedule": (
        put("schedule", 1, "bots", value=["bait@1.0", "greedy@1.0"]),
        "cup-3: the stored schedule differs from that of the configuration",
    ),
    "deal": (
        put("schedule", 0, "deals", 1, value="cup-deal-2"),
        "cup-2: the stored schedule differs from that of the configuration",
    ),
    "round": (
        put("schedule", 1, "round", value=7),
        "cup-3: the stored schedule differs from that of the configuration",
    ),
    "stage": (
        put("schedule", 1, "stage", value=7),
        "tournament.json: schedule: match 2: the configuration has no stage 7",
    ),
    "lane": (
        put("schedule", 1, "lanes", value=[1]),
        "tournament.json: schedule: match 2: it must have as many lanes and deals as games",
    ),
    "missing deal": (
        drop("schedule", 1, "deals", 0),
        "tournament.json: schedule: match 2: it must have as many lanes and deals as games",
    ),
    "match": (
        drop("schedule", 8),
        "tournament.json: schedule: 16 games, but the configuration makes 18",
    ),
}
CONFIGURATION = {
    "clocks": (
        put("configuration", "clocks", "decision_us", value=1),
        "cup-1: the record has other clocks or another max_strikes than the tournament",
    ),
    "rules": (
        put("configuration", "stages", 0, "ruleset", "ghost", value=True),
        "cup-1: the record has the rules of ",
    ),
    "lanes": (
        put("configuration", "lanes", value=0),
        "the configuration makes no schedule: tables of 2 seats need at least 2 lanes, not 0",
    ),
}
BOTS_JSON = {
    "bot": (put(0, "bot", value="greedy@1.1"), "bots.json: it has greedy@1.1, "),
    "no bot": (
        drop(0),
        "bots.json: it has random@1.0, bait@1.0, but the configuration has greedy@1.0, ",
    ),
    "manifest": (
        put(0, "manifest", "name", value="eve"),
        "bots.json: greedy@1.0: its manifest has the name eve",
    ),
    "key": (put(0, "manifest", "run", "shell", value="sh"), "bots.json: 0: manifest: run: shell: "),
    "hash": (put(0, "content_hash", value="12"), "bots.json: 0: content_hash: "),
}
RATINGS = {
    "mu": (
        put("duel", "bait@1.0", "mu", value=31.5),
        "ratings.json: duel: bait@1.0 has mu=31.5 sigma=",
    ),
    "sigma": (
        put("classic", "bait@1.0", "sigma", value=0.1),
        "ratings.json: classic: bait@1.0 has mu=",
    ),
    "fit": (
        put("classic", "bait@1.0", "fit", value=25.5),
        "ratings.json: classic: bait@1.0 has mu=",
    ),
    "no fit": (drop("classic", "bait@1.0", "fit"), "ratings.json: classic: bait@1.0: fit: "),
    "nothing": (drop("duel", "bait@1.0"), "ratings.json: duel: bait@1.0 has none, but its games"),
    "bot": (
        put("duel", "eve@1", value={"mu": 50, "sigma": 1, "fit": 50}),
        "ratings.json: duel: eve@1 has ratings, but has not played",
    ),
    "not a number": (put("duel", "bait@1.0", "mu", value=float("nan")), "ratings.json: "),
}
RECORDS = {
    "deck": (swap_two_cards, "cup-2: the deck in the record is not the one that the seed gives"),
    "rank": (change_rank, "cup-2: result: the record says "),
    "action": (change_seat_of_move, "cup-2: move 4: seat 9 moves, but seat "),
    "opening": (remove_first_times, "cup-2: move 1: the bot has replied after 0 us"),
    "batch": (enlarge_batch, "cup-2: a batch has 65 requests, but a bot plays at most 64 games"),
    "seating": (change_seating, "cup-2: the record has eve@1 "),
    "order": (swap_records, "cup-4: records.binpb.gz: cup-2 is not in the schedule, or is out of"),
    "gone": (drop(4), "17 of 18 games verified; cup-5 is not stored"),
    "twice": (
        lambda records: records.append(records[-1]),
        "records.binpb.gz: cup-18 is not in the schedule, or is out of order",
    ),
}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        pytest.param(name, *case, id=f"{name}: {change}")
        for name, cases in (
            (archive_format.TOURNAMENT, TOURNAMENT),
            (archive_format.BOTS, BOTS_JSON),
            (archive_format.RATINGS, RATINGS),
        )
        for change, case in cases.items()
    ],
)
def test_a_changed_part_with_correct_sums_is_found(data, verify, name, change, message):
    with pytest.raises(Difference) as caught:
        verify(archive_format.pack(change_json(read_members(data), name, change)))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (archive_format.TOURNAMENT, b'"commitment"'),
        (archive_format.TOURNAMENT, b'"lanes"'),
        (archive_format.RATINGS, b'"classic"'),
    ],
)
def test_a_repeated_key_is_found(data, verify, name, key):
    """A person or another program may read the first value, although the referee would take the last one."""
    members = read_members(data)
    changed = members[name].replace(key, key + b": {}," + key, 1)
    with pytest.raises(Difference) as caught:
        verify(archive_format.pack(members | {name: changed}))
    assert str(caught.value) == f"{name}: the key {key.decode()[1:-1]} is there 2 times"


@pytest.mark.parametrize(("change", "message"), CONFIGURATION.values(), ids=CONFIGURATION)
def test_a_configuration_that_does_not_fit_the_games_is_found(data, verify, change, message):
    """The terms and the commitment fit the changed configuration."""
    members = change_json(read_members(data), archive_format.TOURNAMENT, change)
    with pytest.raises(Difference) as caught:
        verify(archive_format.pack(renew_archive(members)))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("case", RECORDS)
def test_changed_records_with_correct_sums_are_found(data, verify, case):
    change, message = RECORDS[case]
    with pytest.raises(Difference) as caught:
        verify(archive_format.pack(change_records(read_members(data), change)))
    assert str(caught.value).startswith(message)


STREAMS = {
    "no gzip": (b"records", "Not a gzipped file"),
    "cut off": (gzip.compress(b"\x7fabc"), "the file ends in the middle of this record"),
    "cut off in a length": (gzip.compress(b"\xff"), "the file ends in the middle of this record"),
    "no record": (gzip.compress(b"\x03abc"), "the bytes are no linko.v1.GameRecord"),
    "an empty record": (gzip.compress(b"\0"), "the record's termination is missing or unknown"),
    "larger than the limit": (
        gzip.compress(b"\xff\xff\xff\x7f" + bytes(2**21)),
        "it has more than 117440512 bytes",
    ),
    "too many fields": (
        gzip.compress(b"\x82\x80\x80\x01" + b"\x32\x00" * (2**20 + 1)),
        "it has more than 1048576 fields",
    ),
    "a field of another type": (
        gzip.compress(b"\x82\x80\x80\x01" + b"\x31\x00" * (2**20 + 1)),
        "it has a field of an unknown type",
    ),
    "a long length": (gzip.compress(b"\xff" * 50), "it has more than 117440512 bytes"),
}


def test_unknown_field_in_a_record_is_found(data, verify):
    members = read_members(data)
    records = archive_format.load_records(members[archive_format.RECORDS])
    first, *others = (wire.dumps(record) for record in records)
    field_1000 = b"\xc0\x3e\x01"
    stream = b"".join(dump_delimited(each) for each in (first + field_1000, *others))
    message = r"^cup-1: records\.binpb\.gz: record 1: the record has an unknown field"
    with pytest.raises(Difference, match=message):
        verify(archive_format.pack(members | {archive_format.RECORDS: gzip.compress(stream)}))


@pytest.mark.extended("measures large schedules and long statistics")
def test_record_with_the_most_and_longest_faults_can_be_read_again(data):
    """At most, each of five seats has 1,000 strikes, and each fault has 4 KiB of output, written as escapes of 4 bytes."""
    record = next(archive_format.load_records(read_members(data)[archive_format.RECORDS]))
    evidence = Evidence(detail="illegal", stderr_tail="\\xff" * 4096)
    fault = Fault(0, Cause.ILLEGAL, forfeit=False, move=0, evidence=evidence)
    largest = replace(record, faults=(fault,) * 5_000)
    [loaded] = archive_format.load_records(archive_format.dump_records([largest]))
    assert loaded == largest


def dump_delimited(message):
    """Return a message with its size before it. The size must be from 128 to 16,383."""
    return bytes([len(message) % 128 + 128, len(message) // 128]) + message


@pytest.mark.parametrize("case", STREAMS)
def test_records_that_cannot_be_read_are_found(data, verify, case):
    stream, message = STREAMS[case]
    with pytest.raises(Difference, match=rf"^cup-1: records\.binpb\.gz: record 1: {message}"):
        verify(archive_format.pack(read_members(data) | {archive_format.RECORDS: stream}))


# Files that are not archives


def test_a_file_that_is_not_a_zip_is_refused(verify):
    for content in (b"", b"name = 'cup'\n", b"\x1f\x8b", bytes(10_000)):
        with pytest.raises(
            UserError, match=r"cup\.zip: this is not a zip file, and so not an archive"
        ):
            verify(content)


def test_an_archive_of_another_format_is_refused(data, verify):
    known, old = archive_format.FORMAT, archive_format.FORMAT - 1
    members = change_json(read_members(data), archive_format.TOURNAMENT, put("format", value=old))
    with pytest.raises(
        UserError,
        match=rf"cup\.zip: tournament\.json: format: {old}; this version .* knows {known}$",
    ):
        verify(archive_format.pack({**members, "more": b""}))


@pytest.mark.parametrize("name", archive_format.MEMBERS)
def test_a_missing_part_is_named(data, verify, name):
    members = read_members(data)
    del members[name]
    with pytest.raises(Difference, match=f"^{name}: the member is missing"):
        verify(archive_format.pack(members))


def test_an_unknown_part_is_refused(data, verify):
    with pytest.raises(Difference, match=r"^evil\.sh: an archive has no member of this name"):
        verify(archive_format.pack({**read_members(data), "evil.sh": b""}))


def test_a_zip_bomb_is_refused(data, verify):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(archive_format.TOURNAMENT, bytes(10**8))
    with pytest.raises(
        Difference, match=r"^tournament\.json: members of an archive are not compressed"
    ):
        verify(buffer.getvalue())
    lies = bytearray(data)
    directory = data.rindex(b"PK\x01\x02")
    lies[directory + 20 : directory + 28] = struct.pack("<II", 2**31, 2**31)
    with pytest.raises(Difference, match="the members of the zip are larger than the file"):
        verify(bytes(lies))


def test_a_zip_with_impossible_zip64_fields_is_refused(verify):
    """Python's zipfile does not raise BadZipFile for the offset. Before Python 3.14 `is_zipfile` raises it for the disks."""
    far = struct.pack("<HHQ", 1, 8, 2**64 - 1)
    directory = struct.pack("<4s24xHH10xL", b"PK\x01\x02", 4, len(far), 2**32 - 1) + b"SUMS" + far
    end = struct.pack("<4s4xHHLLH", b"PK\x05\x06", 1, 1, len(directory), 0, 0)
    with pytest.raises(Difference, match=r"^the zip is damaged or cut off: "):
        verify(directory + end)
    two_disks = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 2)
    with pytest.raises(
        (Difference, UserError), match=r"^the zip is damaged or cut off: |: this is not a zip file"
    ):
        verify(two_disks + end)


def test_a_file_that_is_too_large_is_refused(tmp_path):
    path = tmp_path / "cup.zip"
    with path.open("wb") as file:
        file.truncate(archive_format.MAX_SIZE + 1)
    with pytest.raises(UserError, match=r"cup\.zip: 1073741825 bytes; an archive has at most"):
        ArchivedTournament.open(path)


def test_a_missing_file_is_reported(tmp_path):
    for path, reason in ((tmp_path, "not a file"), (tmp_path / "cup.zip", "no such file")):
        with pytest.raises(UserError, match=f"{path}: {reason}"):
            ArchivedTournament.open(path)
