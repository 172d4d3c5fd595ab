"""A report is a folder of pages that link only to each other, and appears whole or not at all."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import chdir, closing
from pathlib import Path
from unittest.mock import MagicMock
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect, sync_playwright
from sample_league import GAMES, SampleLeague

from referee.cli import web as cli
from referee.errors import NotFoundError, StoreError, UserError
from referee.store.league import League
from referee.web import pages, report
from referee.web.report import ReportSize, _Report, write_report
from referee.web.templates import file_name
from referee.web.views import REPLAY_HIDDEN, LeagueViews

WITHOUT_PAGES_OF_BOTS = ["boards", "games", "phrases.js", "static"]
"""What is in a report for which `_list_pages` returns nothing."""
ADDRESS = re.compile(r"""(?:href|src|action)="([^"#]*)[^"]*\"""")


@pytest.fixture(scope="module")
def folder(here):
    """Return the folder of a report that the command wrote."""
    done = here.referee("report", "cup", "--output", here.folder / "pages")
    assert (done.returncode, done.stderr) == (0, "")
    assert "index.html" in done.stdout
    return here.folder / "pages"


def addresses(folder: Path) -> list[tuple[Path, str]]:
    """Return every page with each address in it, without the part after `#`."""
    return [
        (page, address)
        for page in folder.rglob("*.html")
        for address in ADDRESS.findall(page.read_text())
        if address
    ]


@pytest.mark.extended("writes more reports")
def test_every_address_of_a_report_is_relative_and_leads_to_a_file(folder):
    found = addresses(folder)
    assert len(found) > 100
    missing = [
        (page.name, address)
        for page, address in found
        if not (page.parent / unquote(address)).resolve().is_relative_to(folder.resolve())
        or not (page.parent / unquote(address)).is_file()
    ]
    assert missing == []


@pytest.mark.extended("writes more reports")
def test_report_has_a_page_and_data_for_each_game(folder, league):
    ids = [game.game_id for game in league.results(tournament="cup")]
    assert sorted(path.stem for path in (folder / "games").iterdir()) == sorted(ids)
    for game_id in ids:
        script = (folder / "boards" / f"{game_id}.js").read_text()
        data = json.loads(script.removeprefix("linkoGame(").removesuffix(");\n"))
        assert data["game"] == game_id
        assert len(data["moves"]) == len(league.record(game_id).moves)


@pytest.mark.extended("writes more reports")
def test_report_has_no_script_of_the_server(folder):
    names = {path.name for path in (folder / "static").rglob("*.js")}
    assert {"board.js", "replay.js", "charts.js", "vega.js"} <= names
    assert not {name for name in names if name in {"live.js", "sit.js"} or name.startswith("htmx")}
    assert not [page for page, address in addresses(folder) if "htmx" in address]


@pytest.mark.extended("writes more reports")
def test_page_of_a_bot_does_not_name_the_folder_of_its_author(folder, here):
    text = (folder / "bots" / "crashes@1.html").read_text()
    assert "crashes" in text
    assert str(here.folder) not in text


def copy_league(here, folder):
    """Copy the database of the league into a new folder, and return this folder."""
    copy = folder / "league"
    copy.mkdir()
    with (
        closing(sqlite3.connect(here.folder / "league" / "league.db")) as source,
        closing(sqlite3.connect(copy / "league.db")) as target,
    ):
        source.backup(target)
    return copy


@pytest.mark.extended("writes more reports")
def test_replays_of_unfinished_deals_are_hidden_without_spoilers(here, tmp_path):
    copy = copy_league(here, tmp_path)
    with League.open(here.folder / "league", create=False) as opened:
        first = opened.schedule("cup")[0]
    with closing(sqlite3.connect(copy / "league.db")) as database, database:
        key = "(SELECT id FROM games WHERE name = ?)"
        for table in ("faults", "records", "seats", "results"):
            database.execute(f"DELETE FROM {table} WHERE game_id = {key}", [first.game_id])  # noqa: S608
    with League.open_read_only(copy) as opened:
        others = [game.game_id for game in opened.schedule("cup") if game.match == first.match]
        played = len(opened.results(tournament="cup"))
        written = write_report(LeagueViews(opened), "cup", tmp_path / "pages")
        assert (written.replays, written.hidden) == (played - len(others) + 1, len(others) - 1)
        assert not [each for each in others if (tmp_path / "pages/games" / f"{each}.html").exists()]
        with pytest.raises(UserError, match=re.escape(REPLAY_HIDDEN)):
            LeagueViews(opened).board(others[1])
        spoilt = write_report(LeagueViews(opened, spoilers=True), "cup", tmp_path / "spoilt")
        assert (spoilt.replays, spoilt.hidden) == (played, 0)


@pytest.mark.extended("writes more reports")
def test_report_shows_the_tournament_as_it_was_at_one_moment(here, tmp_path, monkeypatch):
    copy = copy_league(here, tmp_path)
    write = _Report.write

    def write_after_a_change(report):
        with closing(sqlite3.connect(copy / "league.db")) as database, database:
            database.execute("DELETE FROM results")
        return write(report)

    monkeypatch.setattr(_Report, "write", write_after_a_change)
    with League.open_read_only(copy) as opened:
        stored = len(opened.results(tournament="cup"))
        assert write_report(LeagueViews(opened), "cup", tmp_path / "pages").replays == stored
        assert not opened.results()


def test_report_reads_and_replays_each_game_once(league, tmp_path, monkeypatch):
    calls = Counter()

    def count(name, function):
        def counting(*arguments):
            calls[name] += 1
            return function(*arguments)

        return counting

    monkeypatch.setattr(_Report, "_list_pages", lambda *_: {})
    monkeypatch.setattr(pages, "board_data", count("board_data", pages.board_data))
    for name in ("is_deal_played", "record"):
        monkeypatch.setattr(league, name, count(name, getattr(league, name)))
    games = write_report(LeagueViews(league), "cup", tmp_path / "pages").replays
    assert games > 1
    assert calls == {"board_data": games, "is_deal_played": games, "record": games}


@pytest.mark.extended("writes more reports")
def test_histories_are_of_the_same_moment_as_the_report(tmp_path, monkeypatch):
    sample = SampleLeague(tmp_path)
    sample.play(slice(6))
    list_pages, write = _Report._list_pages, _Report.write
    paths = ("bots/greedy@1.0", "histories/greedy@1.0")

    def write_after_games(report):
        sample.play(slice(6, GAMES))
        return write(report)

    monkeypatch.setattr(
        _Report,
        "_list_pages",
        lambda report, bots: {path: list_pages(report, bots)[path] for path in paths},
    )
    with League.open_read_only(sample.league.folder) as opened:
        write_report(LeagueViews(opened, spoilers=True), "cup", tmp_path / "before")
        monkeypatch.setattr(_Report, "write", write_after_games)
        write_report(LeagueViews(opened, spoilers=True), "cup", tmp_path / "meanwhile")
    for path in paths:
        before, meanwhile = (
            (tmp_path / name / f"{path}.html").read_text() for name in ("before", "meanwhile")
        )
        assert "Rating history, classic" in before
        assert meanwhile == before
    sample.league.close()


@pytest.mark.parametrize("name", ["note.txt", ".report-2026/note.txt"])
def test_folder_with_files_is_refused_and_not_changed(league, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=r"--output: .* is not an empty folder"):
        write_report(LeagueViews(league), "cup", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_what_a_killed_report_has_left_is_removed(league, tmp_path, monkeypatch):
    monkeypatch.setattr(_Report, "_list_pages", lambda *_: {})
    write, output, killed = _Report.write, tmp_path / "pages", tmp_path / "killed"
    output.mkdir()

    def write_and_keep(report):
        written = write(report)
        shutil.copytree(output, killed)
        return written

    with monkeypatch.context() as patch:
        patch.setattr(_Report, "write", write_and_keep)
        write_report(LeagueViews(league), "cup", output)
    assert [path.name[:8] for path in killed.iterdir()] == [".report-"]
    write_report(LeagueViews(league), "cup", killed)
    for folder in (output, killed):
        assert sorted(path.name for path in folder.iterdir()) == WITHOUT_PAGES_OF_BOTS


def test_mark_of_an_unfinished_report_is_removed_last(tmp_path, monkeypatch):
    left = tmp_path / ".report-x"
    (left / "games").mkdir(parents=True)
    (left / "phrases.js").touch()
    (left / report._UNFINISHED).touch()
    monkeypatch.setattr(report.shutil, "rmtree", MagicMock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        report._remove(left)
    assert (left / report._UNFINISHED).exists()


def test_interrupted_removal_is_finished_by_the_next_report(league, tmp_path, monkeypatch):
    monkeypatch.setattr(_Report, "_list_pages", lambda *_: {})
    output = tmp_path / "pages"
    with monkeypatch.context() as patch:
        for place, name in ((league, "record"), (report.shutil, "rmtree")):
            patch.setattr(place, name, MagicMock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_report(LeagueViews(league), "cup", output)
    assert len(list(tmp_path.rglob(report._UNFINISHED))) == 1
    write_report(LeagueViews(league), "cup", output)
    assert list(tmp_path.iterdir()) == [output]
    assert sorted(path.name for path in output.iterdir()) == WITHOUT_PAGES_OF_BOTS


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_report_that_is_interrupted_while_its_files_are_moved_leaves_nothing(
    league, tmp_path, monkeypatch, error
):
    list_pages = _Report._list_pages
    monkeypatch.setattr(
        _Report, "_list_pages", lambda *given: {"index": list_pages(*given)["index"]}
    )
    rename, moved = Path.rename, []

    def rename_all_but_the_last(path, target):
        moved.append(path.name)
        if len(moved) == 5:
            raise error
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_all_but_the_last)
        with pytest.raises((KeyboardInterrupt, StoreError)):
            write_report(LeagueViews(league), "cup", tmp_path)
    assert moved[4] == "index.html"
    assert list(tmp_path.iterdir()) == []
    write_report(LeagueViews(league), "cup", tmp_path)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("output", [".", "link", "new/inner"])
def test_report_is_written_into_an_empty_folder_or_a_new_one(league, tmp_path, monkeypatch, output):
    monkeypatch.setattr(_Report, "_list_pages", lambda *_: {})
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "../link").symlink_to(empty)
    with chdir(empty if output == "." else tmp_path):
        write_report(LeagueViews(league), "cup", Path(output))
        written = sorted(path.name for path in Path(output).iterdir())
    assert written == WITHOUT_PAGES_OF_BOTS
    assert (tmp_path / "link").is_symlink()


def test_unknown_tournament_leaves_no_folder(league, tmp_path):
    with pytest.raises(NotFoundError, match="no tournament 'none'"):
        write_report(LeagueViews(league), "none", tmp_path / "pages")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended("writes more reports")
def test_damaged_record_is_said_on_its_page_and_other_pages_are_whole(here, tmp_path):
    copy = copy_league(here, tmp_path)
    with closing(sqlite3.connect(copy / "league.db")) as database, database:
        database.execute(
            "UPDATE records SET record = x'00' WHERE game_id = (SELECT id FROM games WHERE name = 'cup-1')"
        )
    with League.open_read_only(copy) as opened:
        written = write_report(LeagueViews(opened), "cup", tmp_path / "pages")
        assert (written.replays, written.damaged) == (len(opened.results()) - 1, ["cup-1"])
    assert "cannot be read" in (tmp_path / "pages/games/cup-1.html").read_text()
    assert "cannot be read" not in (tmp_path / "pages/games/cup-2.html").read_text()


@pytest.mark.parametrize(
    ("games", "says"),
    [
        (
            1,
            "The record of cup-1 is damaged, so there is no replay. The page of the game says why.",
        ),
        (
            2,
            "The records of 2 games are damaged, so there is no replay: cup-1, cup-2. The pages of the games say why.",
        ),
        (
            5,
            "The records of 5 games are damaged, so there is no replay: cup-1, cup-2, cup-3, cup-4, cup-5. The pages of the games say why.",
        ),
        (7, "cup-4, cup-5 and 2 more. The pages of the games say why."),
    ],
)
def test_command_names_the_games_with_damaged_records(here, monkeypatch, capsys, games, says):
    damaged = [f"cup-{number}" for number in range(1, games + 1)]
    written = ReportSize(replays=3, hidden=0, damaged=damaged)
    monkeypatch.setattr(cli, "write_report", lambda *_: written)
    cli.report("cup", Path("pages"), league=here.folder / "league")
    assert says in capsys.readouterr().out


def test_error_of_the_database_is_no_damaged_record_and_leaves_no_folder(
    league, tmp_path, monkeypatch
):
    monkeypatch.setattr(_Report, "_list_pages", lambda *_: {})
    monkeypatch.setattr(league, "record", MagicMock(side_effect=UserError("the disk has failed")))
    with pytest.raises(UserError, match="the disk has failed"):
        write_report(LeagueViews(league), "cup", tmp_path / "pages")
    assert list(tmp_path.iterdir()) == []


DIFFERENT = ("x@1.0a", "x@1.0A", "x@1.0", "x@1.0.", ".x@1.0", "x/1", "x~1", "x:1", "é", "É")


def test_different_texts_are_different_files_on_every_system():
    names = [file_name(text) for text in DIFFERENT]
    assert len({name.lower() for name in names}) == len(DIFFERENT)
    assert all(
        re.fullmatch(r"[a-z0-9_+@~-]([a-z0-9._+@~-]*[a-z0-9_+@~-])?", name) for name in names
    )


@pytest.mark.extended("opens pages in a browser")
@pytest.mark.toolchain("chromium")
def test_report_opens_in_a_browser_without_a_server(folder):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        page, problems = browser.new_page(), []
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text))
        page.goto((folder / "index.html").as_uri())
        expect(page.locator("figure.chart svg").first).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Games", exact=True).click()
        page.get_by_role("link", name="cup-1", exact=True).click()
        expect(page.locator("#replay-board")).to_be_visible(timeout=60_000)
        page.keyboard.press("End")
        expect(page.locator("#replay-said")).to_contain_text("game over", timeout=60_000)
        assert problems == []
        browser.close()
