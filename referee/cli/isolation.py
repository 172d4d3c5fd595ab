"""`referee doctor`, and functions for all commands that start bots: select the isolation, and build bots.

On a machine that gives no isolation, `select_isolation_for` refuses all bots except the sample bots, unless the user has
asked for the rung `none`.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from referee.bots import BotSpec
from referee.bots.attach import AttachLauncher
from referee.bots.fetch import plan_fetches
from referee.bots.manifest import Manifest, Variant, load_manifest
from referee.cli.interrupts import run_loop
from referee.cli.options import JsonOption, notes, show_table, write
from referee.errors import NotFoundError, UserError
from referee.reports.checks import ProtectionRow, RefusalRow, protection_rows, refusal_rows
from referee.reports.formats import json_text, visible
from referee.roster import find_bot
from referee.roster.roster import Roster, StoredCopy, allowed_content, check_unisolated
from referee.roster.workshop import Workshop
from referee.sandbox import Isolation, Rung
from referee.sandbox.folders import run_folder
from referee.sandbox.ladder import make_launcher, select_isolation
from referee.store.league import League

app = typer.Typer()

_RUNGS = ", ".join(rung.value for rung in Rung)
_VARIABLE = "REFEREE_ISOLATION"

_UNISOLATED = "If this machine gives no isolation, only the sample bots play, unless you choose the rung none."


def _isolation_option(default: str) -> Any:
    return typer.Option(
        "--isolation",
        envvar=_VARIABLE,
        metavar="RUNG",
        help=f"The isolation of bots: {_RUNGS}. {default} {_UNISOLATED}",
    )


_TOURNAMENT_DEFAULT = (
    "By default the rung that the tournament names, or else the strongest that this machine gives. The environment variable"
    " replaces this default, unless the tournament names a stronger rung."
)
IsolationOption = Annotated[
    str | None, _isolation_option("By default the strongest that this machine gives.")
]
NewTournamentIsolationOption = Annotated[
    str | None,
    _isolation_option(
        f"{_TOURNAMENT_DEFAULT} The tournament keeps a rung that is typed here, for resume and extend."
    ),
]
OldTournamentIsolationOption = Annotated[
    str | None, _isolation_option(f"{_TOURNAMENT_DEFAULT} This option is for this run only.")
]
RequireOption = Annotated[
    str | None,
    typer.Option(
        "--require-isolation",
        metavar="RUNG",
        help="Start no bots if the isolation is weaker than this rung.",
    ),
]


def select_isolation_for(
    wanted: Rung | None,
    required: str | None,
    list_bots: Callable[[], Iterable[Path | StoredCopy | Variant]],
) -> Isolation:
    """Select the isolation of the bots that a command builds or starts.

    This function prints nothing. The caller must call `announce_isolation` or `warn_if_not_full` before a bot starts.

    Args:
        wanted: the rung from the option or the tournament file; None for the strongest rung of this machine.
        required: the weakest rung that the user accepts; None for any.
        list_bots: returns the bots, each as a folder, a version of the league, or a variant of a folder. It may leave out bots that do not
            exist. It is called only if `wanted` is None and this machine gives no isolation.

    Raises UserError if the name of a rung is unknown, if this machine does not give the rung `wanted`, or if the
    selected rung is weaker than `required`. Raises UserError also if `wanted` is None, this machine gives no isolation,
    and one of the bots is not a sample bot.
    """
    isolation = run_loop(select_isolation(wanted, parse_rung("--require-isolation", required)))
    check_unisolated(isolation, list_bots)
    return isolation


def announce_isolation(isolation: Isolation, console: Console) -> None:
    """Print one line about the isolation of the bots.

    On a rung above `none`, it names the protections that are partial or off.
    """
    console.print(_description(isolation), soft_wrap=True)


def warn_if_not_full(isolation: Isolation, wanted: str | None) -> None:
    """If the user chose no rung (`wanted` is None) and the isolation is weaker than full, print a warning."""
    if wanted is None and isolation.rung is not Rung.FULL:
        announce_isolation(isolation, notes)


def parse_rung(option: str, name: str | None) -> Rung | None:
    """Return the rung that an option names; None if the option is missing. Raises UserError if the name is unknown."""
    try:
        return None if name is None else Rung(name)
    except ValueError:
        raise UserError(f"{option}: unknown rung {name!r}; choose one of {_RUNGS}") from None


class RungChoice(NamedTuple):
    """The rungs that the user has chosen for a tournament. In each field, None means the strongest rung of this machine."""

    wanted: Rung | None
    """The rung of this run."""
    lasting: Rung | None
    """The rung that the tournament keeps. The environment variable does not change it."""


def choose_rung(ctx: typer.Context, option: str | None, key: Rung | None) -> RungChoice:
    """Return the rungs for a tournament.

    `option` is the value of `--isolation` or of its environment variable. `key` is the rung that the tournament names.

    A rung that the user typed replaces the key. A rung from the environment variable counts for this run only. It replaces a
    missing or weaker key, but not a stronger one, because a variable that was set for other commands must not weaken
    the isolation that a tournament names. Raises UserError if the name of a rung is unknown.
    """
    given = parse_rung("--isolation", option)
    if given is None:
        return RungChoice(key, key)
    source = ctx.get_parameter_source("isolation")
    if source is None or source.name != "ENVIRONMENT":  # Typer does not export ParameterSource
        return RungChoice(given, given)
    if key is None:
        return RungChoice(given, None)
    return RungChoice(max(given, key, key=lambda rung: rung.height), key)


def find_bots(
    folders: Iterable[Path | Variant], names: Iterable[str], league: Path, db: str | None
) -> Iterator[Path | StoredCopy | Variant]:
    """Yield the `folders` (or variants), then the bots of the league that have the `names`.

    Names for which `find_bot` finds nothing are skipped; the league need not exist. Raises UserError if the league's copy
    of a bot is missing, or if a name is `NAME@person`.
    """
    yield from folders
    wanted = tuple(names)
    if wanted and League.exists_at(league, db):
        with League.open(league, create=False, db=db) as store:
            for name in wanted:
                with suppress(NotFoundError):
                    yield roster_of(store).stored_copy(find_bot(store, name))


def _description(isolation: Isolation) -> str:
    if isolation.is_fallback:
        return (
            "This machine cannot isolate bots: the sample bots run with your rights, other bots do not run."
            " How to change that: referee doctor"
        )
    if isolation.rung is Rung.NONE:
        return "Bots run without isolation, with your rights: play only with bots that you trust."
    hint = "" if isolation.rung is Rung.FULL else " (referee doctor says why)"
    return f"Isolation of the bots: {isolation.summary}{hint}"


def workshop_at(
    folder: Path,
    isolation: Isolation | None = None,
    on_build: Callable[[Manifest], None] | None = None,
) -> Workshop:
    """Return the workshop that copies and builds the bots of a league.

    Args:
        folder: the folder of the league.
        isolation: the isolation of the builds; None if the caller copies no bot.
        on_build: see `Workshop`; None to print a line for each build.
    """
    return Workshop(
        folder,
        None if isolation is None else make_launcher(isolation),
        on_build=on_build or _announce,
        only=None if isolation is None else allowed_content(isolation),
    )


async def load_folder(
    folder: Path, workshop: Workshop, isolation: Isolation, ctx: typer.Context, *, build: bool
) -> BotSpec:
    """Return how to start the bot of a folder, in this folder or in a copy of it.

    No copy is made if `build` is false. Otherwise, a bot that needs a fetch or a build is built in a temporary copy. If only
    the sample bots may play, a bot that needs neither is copied too, because a folder may change after it was checked;
    this copy is removed when the command ends.
    """
    manifest = load_manifest(folder)
    if build and (manifest.build is not None or plan_fetches(folder, None, None)):
        return (await workshop.copy(folder, is_kept=False)).spec
    if build and workshop.is_limited:
        scratch = ctx.with_resource(run_folder())
        return (await workshop_at(scratch, isolation).copy(folder)).spec
    return manifest.spec(folder)


def roster_of(league: League, isolation: Isolation | None = None) -> Roster:
    """Return the roster of a league. See `workshop_at` for `isolation`."""
    return Roster(league, workshop_at(league.folder, isolation))


def attach_launcher(spec: BotSpec, seat: int) -> AttachLauncher:
    """Return a launcher that starts nothing, and prints how to start the bot of a seat by hand."""

    def announce(address: str, token: str) -> None:
        variables = f"REFEREE_ADDRESS={shlex.quote(address)} REFEREE_TOKEN={token}"
        notes.print(
            Text(
                f"Seat {seat} waits for {spec.bot}. Start it in {spec.folder}:\n"
                f"{variables} {visible(shlex.join(spec.command))}"
            ),
            soft_wrap=True,
        )

    return AttachLauncher(announce)


def now_us() -> int:
    """Return the time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def _announce(manifest: Manifest) -> None:
    name, build = manifest.name, manifest.build
    if build is None:
        notes.print(f"Fetching the packages of {name}", soft_wrap=True)
        return
    announce_fetch(manifest)
    notes.print(Text(visible(f"Building {name}: {' '.join(build.command)}")), soft_wrap=True)


def announce_fetch(manifest: Manifest) -> None:
    """Print the command `build.fetch` of a bot, if there is one.

    The user must see it, because the bot's author wrote it and it reaches registries.
    """
    if manifest.build is not None and manifest.build.fetch:
        line = f"Fetching the packages of {manifest.name}: {' '.join(manifest.build.fetch)}"
        notes.print(Text(visible(line)), soft_wrap=True)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Test the isolation of bots on this machine, and say what to install for a stronger one.

    Example: referee doctor --json
    """
    isolation = run_loop(select_isolation())
    rows, refusals = protection_rows(isolation), refusal_rows(isolation)
    if as_json:
        write(json_text({"rung": isolation.rung, "protections": rows, "higher_rungs": refusals}))
        return
    show_table(ProtectionRow, rows, f"isolation: {isolation.rung.value}")
    if refusals:
        show_table(RefusalRow, refusals, "stronger rungs that this machine does not give")
