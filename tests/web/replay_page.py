"""Write the page of a game into a folder, as a report has it, so that a browser can open it without a server."""

from __future__ import annotations

import shutil
from pathlib import Path

import referee.web
from referee.records import GameRecord
from referee.reports.game_rows import charge_rows, game_head, seat_rows
from referee.web.board import board_data, board_script, phrases_script
from referee.web.templates import Links, Page, file_name, render

STATIC = Path(referee.web.__file__).with_name("static")
_FILES = frozenset({"index", "games"})


def write_replay(
    folder: Path, record: GameRecord, *, log: list[str] | None = None, problem: str | None = None
) -> Path:
    """Return the page of the game. Its files are in `folder`, which may have other games already."""
    name = file_name(record.game_id)
    links = Links(root="../", files=_FILES)
    values = {
        "board_file": links.board(record.game_id),
        "linked": True,
        "game_id": record.game_id,
        "head": game_head(record),
        "seats": seat_rows(record),
        "charges": charge_rows(record),
        "log": log,
        "problem": problem,
        "stderr_hidden": None,
    }
    shutil.copytree(STATIC, folder / "static", dirs_exist_ok=True)
    for part in ("games", "boards"):
        (folder / part).mkdir(exist_ok=True)
    (folder / "phrases.js").write_text(phrases_script(), encoding="utf-8")
    if problem is None:
        script = board_script(record.game_id, board_data(record))
        (folder / "boards" / f"{name}.js").write_text(script, encoding="utf-8")
    page = folder / "games" / f"{name}.html"
    page.write_text(render(Page("game.html", record.game_id, values), links), encoding="utf-8")
    return page
