"""Write a tournament's pages into a folder of files, which a browser opens without a server.

The pages have the same templates as on the server. In a page that was opened from a file, a browser refuses `fetch` and
module scripts. So all data is in the page itself or comes as a classic script.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import ceil
from pathlib import Path

from referee.errors import UserError, write_error
from referee.store import GameChoice
from referee.web import bot_pages, pages
from referee.web.board import board_script, phrases_script
from referee.web.templates import STATIC, Links, Page, file_name, render
from referee.web.views import LeagueViews

_LIVE_ONLY = ("live.js", "sit.*", "htmx*")
"""The assets that only a server needs."""
_UNFINISHED = ".unfinished-report"
"""An empty file with this name marks the folder of an unfinished report. Only folders with this mark are removed, because a
folder of the user may also have a name that begins with `.report-`."""


@dataclass(frozen=True, slots=True)
class ReportSize:
    """How many games of a report have a replay, and why the others have none."""

    replays: int
    """Number of games with a replay."""
    hidden: int
    """Number of stored games without a replay, because other games of the same deal are still to be played."""
    damaged: Sequence[str]
    """The ids of the stored games without a replay, because their records cannot be replayed. Their pages say why."""


def write_report(views: LeagueViews, name: str, output: Path) -> ReportSize:
    """Write the report of a tournament into `output`, a folder that is new or empty.

    The pages appear only when all are complete. Unfinished reports in `output`, for example of killed runs, are removed.
    Raises NotFoundError if the tournament does not exist, UserError if `output` is a file or contains anything but unfinished
    reports, and an error from `write_error` if the report cannot be written.
    """
    views.league.check_tournament(name)
    with (
        _new_folder(output) as folder,
        views.league.one_moment(),  # a driver may store games meanwhile
    ):
        return _Report(views, name, folder).write()


@contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """Provide a new folder for the pages inside `output`. At the end, its files are moved into `output`.

    After an error in the block or while the files are moved, the new folder is removed, and also `output` if it is new.
    `output` is never replaced, because it may be the working directory or a link. If the process is killed while the files are moved,
    some of them stay in `output`.

    Unfinished reports in `output` are removed first, even if another process still writes them. So do not write two reports
    into one folder at the same time.
    """
    try:
        is_new = not output.exists()
        if is_new:
            output.mkdir(parents=True)
        elif not output.is_dir() or not all(map(_is_unfinished, output.iterdir())):
            raise UserError(f"--output: {output} exists and is not an empty folder")
        for unfinished in output.iterdir():
            _remove(unfinished)
        folder = Path(tempfile.mkdtemp(prefix=".report-", dir=output))
        try:
            (folder / _UNFINISHED).touch()
            yield folder
            _move_files(folder, output)
            _remove(folder)
        except BaseException:
            with suppress(OSError):
                _remove(folder)
                if is_new:
                    output.rmdir()
            raise
    except OSError as error:
        raise write_error(f"--output: {output} cannot be written", error) from error


def _move_files(folder: Path, output: Path) -> None:
    """Move the files of a report from `folder` into `output`, `index.html` last. After an error, move them back and raise the error."""
    names = sorted(
        {path.name for path in folder.iterdir()} - {_UNFINISHED}, key="index.html".__eq__
    )
    try:
        for name in names:
            (folder / name).rename(output / name)
    except BaseException:
        for name in names:
            with suppress(OSError):  # not moved yet
                (output / name).rename(folder / name)
        raise


def _remove(folder: Path) -> None:
    """Remove the folder of an unfinished report, and the mark in it last.

    If the removal is interrupted, the mark stays. A later run with the same `output` recognises the folder by the mark, and
    removes the rest.
    """
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _UNFINISHED:
            path.unlink()
    shutil.rmtree(folder)


def _is_unfinished(path: Path) -> bool:
    """Return True if `path` is the folder of an unfinished report, for example of a killed run."""
    return (path / _UNFINISHED).is_file()


def _game_path(game_id: str) -> str:
    """Return the path of the page of a game, without `.html`."""
    return f"games/{file_name(game_id)}"


class _Report:
    """Write the files of one report."""

    def __init__(self, views: LeagueViews, name: str, folder: Path) -> None:
        self._views = views
        self._name = name
        self._folder = folder
        self._choice = GameChoice(tournament=name)
        games = views.league.results(tournament=name)
        self._stored = len(games)
        self._ids = [game.game_id for game in games if not views.is_spoiler(game.game_id)]
        self._pages = self._list_pages(sorted({bot for game in games for bot in game.bots}))
        self._paths = {*self._pages, *map(_game_path, self._ids)}

    def write(self) -> ReportSize:
        """Write all files."""
        for path, make in self._pages.items():
            self._write_page(path, make)
        damaged = [game_id for game_id in self._ids if not self._write_game(game_id)]
        self._write("phrases.js", phrases_script())
        for asset in STATIC.rglob("*"):
            if asset.is_file() and not any(map(asset.match, _LIVE_ONLY)):
                shutil.copyfile(asset, self._place("static" / asset.relative_to(STATIC)))
        return ReportSize(
            replays=len(self._ids) - len(damaged),
            hidden=self._stored - len(self._ids),
            damaged=damaged,
        )

    def _write_page(self, path: str, make: Callable[[Links], Page]) -> Page:
        """Write the page that `make` returns; `path` is without `.html`. Return the page."""
        links = Links(root="../" * path.count("/"), files=self._paths, report=self._name)
        page = make(links)
        self._write(f"{path}.html", render(page, links))
        return page

    def _write_game(self, game_id: str) -> bool:
        """Write the page of a game and the data of its replay. Return False if the record cannot be replayed."""
        make = partial(pages.game_page, self._views, game_id=game_id)
        board = self._write_page(_game_path(game_id), make).values["board"]
        if board is None:
            return False
        self._write(f"boards/{file_name(game_id)}.js", board_script(game_id, board))
        return True

    def _list_pages(self, bots: list[str]) -> dict[str, Callable[[Links], Page]]:
        """Map the path of each page, without `.html`, to the function that makes the page. Pages that show one game are left out."""
        views = self._views
        found: dict[str, Callable[[Links], Page]] = {
            "index": partial(pages.tournament_page, views, name=self._name)
        }
        for number in range(1, ceil(self._stored / pages.PAGE_SIZE) + 1):
            found["games" if number == 1 else f"games-{number}"] = partial(
                pages.games_page, views, choice=self._choice, number=number
            )
        for bot in bots:
            found[f"bots/{file_name(bot)}"] = partial(bot_pages.bot_page, views, bot=bot)
            found[f"histories/{file_name(bot)}"] = partial(bot_pages.history_page, views, bot=bot)
        for bot, other in combinations(bots, 2):
            path = f"pairs/{file_name(bot)}/{file_name(other)}"
            found[path] = partial(bot_pages.pair_page, views, bot=bot, other=other)
        return found

    def _write(self, path: str, text: str) -> None:
        self._place(path).write_text(text, encoding="utf-8")

    def _place(self, path: str | Path) -> Path:
        """Return where a file of the report is written, and make the folders above it."""
        file = self._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file
