"""A tournament played in the terminal, whether it is new, resumed or extended."""

from __future__ import annotations

import shlex

import typer

from referee.cli.lookup import Choice, current_ratings, roster_of
from referee.cli.options import INTERRUPTED, announce, console, league_options
from referee.cli.progress import Interrupts, conduct
from referee.errors import RefereeError, UserError
from referee.reports.bot_rows import FaultRow, fault_rows
from referee.reports.rating_rows import RatingRow
from referee.reports.terminal import RowsTable
from referee.sandbox.rungs import Isolation
from referee.store import League
from referee.tournament.config import count_rounds, part_title
from referee.tournament.create import Tournament, find_tournament


def play_to_end(
    store: League, tournament: Tournament, isolation: Isolation, interrupts: Interrupts
) -> None:
    """Play what is missing of a tournament, and say how it stands.

    Raises typer.Exit where it was interrupted, and UserError and RefereeError where it cannot go on.
    """
    finished = _conduct(store, tournament, isolation, interrupts)
    tournament = find_tournament(store, tournament.name)  # it may have stopped
    rows = current_ratings(store, Choice(tournament=tournament.name))
    if rows:
        console.print(RowsTable(RatingRow, rows, tournament.name))
    faults = fault_rows(store.faults(tournament=tournament.name))
    if faults:
        console.print(RowsTable(FaultRow, faults, "faults"))
    if not finished:
        console.print(
            f"Interrupted. To resume: {resume_command(store, tournament.name)}", soft_wrap=True
        )
        raise typer.Exit(INTERRUPTED)
    ended = told_stop(tournament) if tournament.config.until else "All games are played."
    for number, part in enumerate(tournament.parts):
        seed = part.seed.hex() if part.seed is not None else ""
        said = f"Seed of {part_title(number)}" if number else f"{ended} Seed"
        console.print(f"{said}: {seed}", soft_wrap=True)


def _conduct(
    store: League, tournament: Tournament, isolation: Isolation, interrupts: Interrupts
) -> bool:
    """Play; returns whether the tournament is finished, and says what to do where it cannot be."""
    try:
        _announce(store, tournament)
        announce(isolation, console)
        return conduct(store, tournament, roster_of(store), isolation, console, interrupts)
    except UserError:
        raise
    except (RefereeError, OSError):
        console.print(
            f"Stopped. To try again: {resume_command(store, tournament.name)}", soft_wrap=True
        )
        raise


def _announce(store: League, tournament: Tournament) -> None:
    before = len(store.stored(tournament.name))
    console.print(
        f"{tournament.name}: {'at most ' if tournament.may_stop else ''}"
        f"{len(tournament.schedule)} games,"
        f"{f' of which {before} are played,' if before else ''}"
        f" {len(tournament.config.bots)} bots."
        f" Commitment to the seed (SHA-256): {tournament.parts[0].commitment}",
        soft_wrap=True,
    )
    for number, part in enumerate(tournament.parts[1:], 1):
        console.print(
            f"{part_title(number).capitalize()}: {part.games} of the games."
            f" Commitment to its seed (SHA-256): {part.commitment}",
            soft_wrap=True,
        )


def told_stop(tournament: Tournament) -> str:
    """Where a finished tournament with `until` stopped."""
    rounds, after = count_rounds(tournament.config), tournament.stopped_after
    if after is None:
        return f"All {rounds} rounds are played: it was not settled before."
    return f"Settled after {after} of {rounds} rounds."


def resume_command(store: League, name: str) -> str:
    """What to type to go on with a tournament."""
    return shlex.join(["referee", "tournament", "resume", name, *league_options(store)])
