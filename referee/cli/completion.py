"""Complete the words of a command in a shell: names of bots, tournaments and rulesets, ids of games, and options.

`referee --install-completion` sets up the shell: bash, zsh or fish. At each Tab, the shell runs `referee` with the words
so far. In this run, a `CompletedCommand` replaces the command that was typed. It imports the module of that command only
to complete options, because modules of commands may load numpy and scipy, which is slow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from referee.cli.options import DB_VARIABLE, DEFAULT_LEAGUE
from referee.rules.ruleset import RULESETS

_MAX_GAMES = 1_000
"""Only this many of the newest games are completed."""
_ARGUMENTS = {
    "play": "bots",
    "tournament run": "bots",
    "tournament compare": "bots",
    "tournament resume": "tournaments",
    "tournament extend": "tournaments",
    "tournament status": "tournaments",
    "tournament standings": "tournaments",
    "tournament export": "tournaments",
    "bots challenge": "bots",
    "bots debug": "bots",
    "bots show": "bots",
    "bots log": "bots",
    "bots retire": "bots",
    "ratings": "compare",
    "ratings compare": "bots",
    "game show": "games",
    "game replay": "games",
    "report": "tournaments",
    "verify": "tournaments",
}
"""What completes the arguments of a command, by the words of the command and, if needed, its first argument.

`bots`, `tournaments` and `games` stand for their names or ids in the league (`_list_words`). Any other text is itself the only
completion, for example `compare` after `ratings`."""
_SECOND_ARGUMENTS = {"bots debug": "games"}
"""The same for commands whose second argument is of another kind than the first."""
_OPTIONS = {
    "--bot": "bots",
    "--from": "games",
    "--history": "bots",
    "--ruleset": "rulesets",
    "--tournament": "tournaments",
}
"""What completes the value of an option."""


class CompletedCommand(TyperCommand):
    """Replaces a command while a shell completes its words."""

    def __init__(self, words: str, load: Callable[[], Any]) -> None:
        """Create the replacement of a command.

        Args:
            words: the words of the command, such as `bots show`.
            load: imports the command and returns it.
        """
        super().__init__(words.rpartition(" ")[2])
        self._words = words
        self._load = load

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words after the command for `shell_complete`."""
        ctx.obj = args
        return []

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ARG002 - prescribed by Typer
        """Return no parameters: `shell_complete` does their work."""
        return []

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what the word `incomplete` can become."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415

        typed: list[str] = ctx.obj
        words = self._list_options() if incomplete.startswith("-") else self._list_values(typed)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def _list_options(self) -> list[str]:
        return [
            name for param in self._load().params for name in param.opts if name.startswith("-")
        ]

    def _list_values(self, typed: Sequence[str]) -> Iterable[str]:
        """Return the values for the word after the words `typed`.

        After a word that starts with `-` these are the values of an option in `_OPTIONS`; after other options there are none.
        """
        last = typed[-1] if typed else ""
        if last.startswith("-"):
            kind = _OPTIONS.get(last)
        elif typed and self._words in _SECOND_ARGUMENTS:
            kind = _SECOND_ARGUMENTS[self._words]
        else:
            kind = _ARGUMENTS.get(
                f"{self._words} {typed[0] if typed else ''}", _ARGUMENTS.get(self._words)
            )
        return () if kind is None else _list_words(kind, typed)


def _list_words(kind: str, typed: Sequence[str]) -> Iterable[str]:
    """Return the words of a list. Bots and tournaments are sorted by name, games from newest to oldest.

    Retired bots are left out. Without a league there are no bots, tournaments and games.
    """
    if kind == "rulesets":
        return RULESETS
    if kind not in {"bots", "tournaments", "games"}:
        return (kind,)
    from referee.errors import RefereeError  # noqa: PLC0415
    from referee.store import GameChoice  # noqa: PLC0415
    from referee.store.league import League  # noqa: PLC0415 - loads the database

    folder = Path(_value("--league", typed) or os.environ.get("REFEREE_LEAGUE") or DEFAULT_LEAGUE)
    db = _value("--db", typed) or os.environ.get(DB_VARIABLE)
    with suppress(RefereeError, OSError), League.open(folder, create=False, db=db) as league:
        if kind == "bots":
            return sorted({row.name for row in league.bots() if row.retired_at_us is None})
        if kind == "tournaments":
            return sorted(league.tournament_names())
        games, _ = league.find_games(GameChoice(), offset=0, limit=_MAX_GAMES)
        return [game.summary.game_id for game in games]
    return ()


def _value(option: str, typed: Sequence[str]) -> str | None:
    """Return the value of an option among the words `typed`."""
    for number, word in enumerate(typed):
        if word == option:
            return typed[number + 1] if number + 1 < len(typed) else None
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
