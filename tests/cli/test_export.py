"""`referee tournament export` writes archives that `referee verify` checks without a league."""

from __future__ import annotations

import json
import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from real_runs import SEED, place
from strangers import ask_a_stranger

from referee.cli.verify import _write

QUESTION = "Compare this commitment with the one shown before the first game: {}\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with place(tmp_path_factory.mktemp("export")) as made:
        crashes = made.bot("crashes", "import os\nos._exit(3)\n")
        file = made.tournament(bots=("random", "greedy", crashes), matches=2)
        done = made.referee("tournament", "run", file)
        assert done.returncode == 0, done.stderr
        made.commitment = done.stdout.splitlines()[0].split(" Commitment: ")[1]
        yield made


@pytest.fixture(scope="module")
def archive(here):
    """The archive of a finished tournament, in a folder without a league."""
    away = here.folder / "away"
    away.mkdir()
    done = here.referee("tournament", "export", "cup", "--output", away / "cup.zip")
    data = (away / "cup.zip").read_bytes()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{away / 'cup.zip'}: 12 games of cup, with the seed; {len(data)} bytes,"
        f" SHA-256 {sha256(data).hexdigest()}\n"
    )
    return away / "cup.zip"


def test_archive_of_a_finished_tournament_is_verified(here, archive):
    done = here.referee("verify", archive, "--league", "nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == f"cup: 12 games and the ratings verified.\n{QUESTION.format(here.commitment)}"
    )


def test_archive_is_named_after_the_tournament_by_default(here, archive):
    assert here.referee("tournament", "export", "cup").returncode == 0
    assert (here.folder / "cup.zip").read_bytes() == archive.read_bytes()
    assert here.referee("tournament", "export", "cup").returncode == 0, "it is written again"
    assert here.referee("verify", "cup.zip").returncode == 0
    assert [path.name for path in here.folder.glob("*.part")] == []


def test_ratings_of_the_archive_are_those_of_the_standings(here, archive):
    shown = json.loads(here.referee("tournament", "standings", "cup", "--json").stdout)
    with zipfile.ZipFile(archive) as parts:
        kept = json.loads(parts.read("ratings.json"))["classic"]
    assert {row["bot"]: (row["mu"], row["sigma"]) for row in shown} == {
        bot: pytest.approx((rating["mu"], rating["sigma"]), abs=1e-6)
        for bot, rating in kept.items()
    }


@pytest.mark.toolchain("node")
def test_stranger_can_check_the_decks(here, archive):
    assert ask_a_stranger(archive).stdout == (
        f"commitment {here.commitment}: seed, configuration, bots and schedule fit\n"
        "12 decks follow from the seed\n"
    )
    other = here.folder / "other-seed.zip"
    other.write_bytes(archive.read_bytes().replace(SEED.encode(), b"0" * 64))
    assert "seed: not as in the terms" in ask_a_stranger(other).stderr


def test_archive_of_an_unfinished_tournament_has_no_seed(here):
    shutil.copytree(here.folder / "league", here.folder / "other")
    with here.database("other") as database:
        for table in ("seats", "faults", "records", "results"):
            database.execute(f"DELETE FROM {table} WHERE game_id > 7")  # noqa: S608
        database.execute("UPDATE tournaments SET finished_at_us = NULL")
    export = ("tournament", "export", "cup", "--league", "other", "--output", "some.zip")
    done = here.referee(*export)
    assert (done.returncode, done.stderr) == (0, "")
    said = "some.zip: 7 of 12 games of cup, without the seed, which is still secret; "
    assert done.stdout.startswith(said)
    assert SEED.encode() not in (here.folder / "some.zip").read_bytes()
    done = here.referee("verify", "some.zip")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "cup: 7 of 12 games verified, except for their decks: the seed is still secret.\n"
        "Configuration, bots and planned schedule are those of the commitment. For games whose seed is still secret, two things"
        " are not proved: that the cards follow from the seed, and that the archive has every game that was played.\n"
        + QUESTION.format(here.commitment)
    )


def test_changed_archive_is_detected(here, archive):
    with zipfile.ZipFile(archive) as whole:
        at = whole.getinfo("records.binpb.gz").header_offset + 200
    data = bytearray(archive.read_bytes())
    data[at] ^= 1
    (here.folder / "changed.zip").write_bytes(data)
    done = here.referee("verify", "changed.zip")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "referee: changed.zip: the zip is damaged or cut off: Bad CRC-32 for file"
        " 'records.binpb.gz'\n"
    )


def test_file_that_is_not_an_archive_is_refused(here):
    for file, says in (
        ("cup.toml", "cup.toml: this is not a zip file, and so not an archive of a tournament"),
        ("nothing.zip", "nothing.zip: no such file"),
        ("./league", "league: not a file"),
    ):
        done = here.referee("verify", file)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"referee: {says}\n")


def test_unwritable_output_is_refused(here):
    for output, says in (
        ("nowhere/cup.zip", "nowhere/cup.zip: No such file or directory"),
        ("league", "league: this exists already and is not an archive; choose another --output"),
        (
            "/dev/null",
            "/dev/null: this exists already and is not an archive; choose another --output",
        ),
        (
            "cup.toml",
            "cup.toml: this exists already and is not an archive; choose another --output",
        ),
        ("/dev/null/cup.zip", "/dev/null/cup.zip: Not a directory"),
        (f"{300 * 'x'}.zip", f"{300 * 'x'}.zip: File name too long"),
    ):
        done = here.referee("tournament", "export", "cup", "--output", output)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"referee: {says}\n")


def test_interrupted_export_leaves_no_file(tmp_path, monkeypatch):
    write = Path.write_bytes

    def write_and_interrupt(file, data):
        write(file, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", write_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        _write(tmp_path / "cup.zip", b"data")
    assert list(tmp_path.iterdir()) == []


def test_unknown_tournament_is_refused(here):
    done = here.referee("tournament", "export", "cap")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "referee: league: no tournament 'cap' (did you mean 'cup'?); there are cup\n"
    )
    assert not (here.folder / "cap.zip").exists()
