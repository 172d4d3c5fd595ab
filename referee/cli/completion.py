"""Complete the words of a command in a shell: names of bots, tournaments and rulesets, ids of games, and options.

`referee --install-completion` sets up the shell: bash, zsh or fish. At each Tab, the shell runs `referee` with the words
so far. In this run, a `CompletedCommand` replaces the command that was typed. The module of the command may load
numpy and scipy, which is slow. So it is imported in two cases only: the word to complete is an option, or an option
was typed that is not in `_OPTIONS`. Only the module knows whether such an option takes a value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperCommand

from referee.cli.options import DB_VARIABLE, DEFAULT_LEAGUE
from referee.rules.ruleset import RULESETS

_MAX_GAMES = 1_000
"""The largest number of game ids that a shell gets. They are the ids of the newest games."""
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
"""Maps the words of a command to what completes its arguments.

`bots`, `tournaments` and `games` stand for the names or ids that `_list_words` finds in the league. Any other text is itself
the only completion, for example `compare` after `ratings`."""
_SECOND_ARGUMENTS = {"bots debug": "games"}
"""The kind of word for all arguments after the first one, by command. Other commands have one kind for all arguments."""
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
        """Return no parameters, so that `shell_complete` completes every word."""
        return []

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return what the word `incomplete` can become."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415

        typed: list[str] = ctx.obj
        known = self._list_options if incomplete.startswith("-") else self._list_values
        return [CompletionItem(word) for word in known(typed) if word.startswith(incomplete)]

    def _list_options(self, typed: Sequence[str]) -> list[str]:
        command = self._load_command(self._read(typed).words)
        return [name for param in command.params for name in param.opts if name.startswith("-")]

    def _list_values(self, typed: Sequence[str]) -> Iterable[str]:
        """Return the possible values of the word after `typed`: the value of an option, or an argument."""
        read = self._read(typed)
        if read.option is not None:
            kind = _OPTIONS.get(read.option)
        elif read.arguments and read.words in _SECOND_ARGUMENTS:
            kind = _SECOND_ARGUMENTS[read.words]
        else:
            kind = _ARGUMENTS.get(read.words)
        return () if kind is None else _list_words(kind, typed)

    def _read(self, typed: Sequence[str]) -> _Typed:
        """Divide the words after the command into a subcommand, options and arguments."""
        words, arguments, rest = self._words, 0, iter(typed)
        for word in rest:
            if word.startswith("-"):
                if self._takes_value(words, word) and next(rest, None) is None:
                    return _Typed(words, arguments, word)
            elif not arguments and f"{words} {word}" in _ARGUMENTS:
                words = f"{words} {word}"
            else:
                arguments += 1
        return _Typed(words, arguments, None)

    def _takes_value(self, words: str, option: str) -> bool:
        """Return True if the word after `option` is its value."""
        return option in _OPTIONS or any(
            option in param.opts and not param.is_flag for param in self._load_command(words).params
        )

    def _load_command(self, words: str) -> Any:
        """Return the command with these words: this command or its subcommand."""
        command = self._load()
        for name in words.removeprefix(self._words).split():
            command = command.commands[name]
        return command


class _Typed(NamedTuple):
    """What was typed before the word that is completed."""

    words: str
    """The words of the command, with those of a subcommand."""
    arguments: int
    """The number of complete arguments."""
    option: str | None
    """The last word if it is an option that needs a value."""


def _list_words(kind: str, typed: Sequence[str]) -> Iterable[str]:
    """Return the words that `kind` stands for. Bots and tournaments are sorted by name, games from newest to oldest.

    Retired bots are left out. Without a league there are no bots, tournaments or games.
    """
    if kind == "rulesets":
        return RULESETS
    if kind not in {"bots", "tournaments", "games"}:
        return (kind,)
    from referee.errors import RefereeError  # noqa: PLC0415
    from referee.store import GameChoice  # noqa: PLC0415
    from referee.store.league import League  # noqa: PLC0415 - loads the database

    place = _value("--league", typed) or os.environ.get("REFEREE_LEAGUE") or DEFAULT_LEAGUE
    # The shell has not yet replaced a `~`. If there is no user `name`, `os.path.expanduser` leaves `~name` as it is, but
    # `Path.expanduser` raises an error.
    folder = Path(os.path.expanduser(place))  # noqa: PTH111
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
