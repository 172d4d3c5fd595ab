"""Show a tournament while it is played, and let games in play finish after Ctrl-C, SIGTERM or SIGHUP.

A terminal gets a live screen with progress and standings. A file or pipe gets about ten plain lines of progress, and lines
about faults. If the terminal or the pipe is closed, the games in play finish too, and nothing more is printed (see
`referee.cli.options.Output`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from referee.cli.cluster import OpenWorkers
from referee.cli.interrupts import STOP_AT_ONCE, Interrupts
from referee.cli.options import Output
from referee.errors import Cause, count_text
from referee.ratings.trueskill import Ratings
from referee.records import Fault, GameRecord, GameResult, ScheduledGame
from referee.reports.formats import game_speed, quoted, visible
from referee.reports.rating_rows import StandingRow, Tally
from referee.reports.selection import GameFilter, rate_in_order
from referee.reports.terminal import RowsTable
from referee.roster.roster import Roster
from referee.sandbox import Isolation
from referee.store import HostFigures
from referee.store.league import League
from referee.tournament.conduct import Conductor
from referee.tournament.create import Tournament


class LiveTable:
    """The standings of a running tournament.

    Ratings depend on the order of games, but games finish in any order. Therefore a finished game enters the
    standings when all earlier games of the schedule are finished.
    """

    def __init__(self, league: League, tournament: Tournament) -> None:
        self._tally = Tally()
        self._name = tournament.name
        self._waiting: dict[int, tuple[GameResult, Mapping[int, int]]] = {}
        """Games that wait for an earlier one, by their index in the schedule, each with the strikes of its seats."""
        results = league.results(tournament=tournament.name)
        numbers = enumerate(results)
        self._next = next((number for number, row in numbers if row.index != number), len(results))
        self._ratings = Ratings()
        if not results:
            return
        choice = GameFilter(tournament=tournament.name)
        columns = choice.columns(league)
        self._ratings = rate_in_order(league, choice, columns.select(slice(self._next)))
        strikes: list[dict[int, int]] = [{} for _ in results]
        for game, seat in zip(*columns.strikes.nonzero(), strict=True):
            strikes[game][int(seat)] = int(columns.strikes[game, seat])
        for index, row in enumerate(results):
            if index < self._next:
                self._tally.add(row, strikes[index])
            else:
                self._waiting[row.index] = row, strikes[index]

    def add(self, game: ScheduledGame, record: GameRecord) -> None:
        """Add a game that was just played."""
        strikes = Counter(fault.seat for fault in record.faults if not fault.forfeit)
        self._add(GameResult.from_record(self._name, game, record), strikes)

    def rows(self) -> Sequence[StandingRow]:
        """Return the current standings."""
        return self._tally.rows(self._ratings.table())

    def _add(self, game: GameResult, strikes: Mapping[int, int]) -> None:
        self._waiting[game.index] = game, strikes
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._ratings.add(following[0])
            self._tally.add(*following)
            self._next += 1


_PLAIN_LINES = 10
"""Approximate number of progress lines if the output is not a terminal."""
_REFRESH_S = 0.25
"""Seconds between two refreshes of the screen."""


def conduct(
    league: League,
    tournament: Tournament,
    roster: Roster,
    isolation: Isolation,
    console: Output,
    interrupts: Interrupts,
    open_workers: OpenWorkers,
) -> bool:
    """Play the missing games of a tournament and show the progress. Return True if the tournament is finished.

    The first interrupt drains the tournament: no further stretch is sent, but each worker still plays at least one
    portion of each stretch that it has, and these games are stored. The tournament is drained too if the terminal or the
    pipe to which `console` writes is closed. The second interrupt kills the workers and the bots. Each interrupt takes
    effect before its message is printed, because a print may fail.
    """
    screen = _Screen(league, tournament, console)
    conductor = Conductor(
        league,
        tournament,
        roster,
        isolation,
        open_workers(screen.say),
        on_game_stored=screen.add,
        say=screen.say,
    )
    screen.list_hosts = conductor.list_hosts
    count = 0

    def interrupt() -> None:
        nonlocal count
        count += 1
        if count < STOP_AT_ONCE:
            conductor.drain()
            screen.say("Finishing the games in play; Ctrl-C again stops at once.")
        else:
            conductor.kill()
            screen.say("Stopping at once.")

    with screen, asyncio.Runner() as runner:
        loop = runner.get_loop()
        interrupts.call_on_interrupt(loop, interrupt)
        refreshing = loop.create_task(screen.refresh(if_unread=conductor.drain))
        try:
            return runner.run(conductor.play_missing_games())
        finally:
            refreshing.cancel()


class _Screen:
    """Shows the progress and the faults: on a live screen with the standings, or as lines if the output is a dumb terminal or no terminal."""

    def __init__(self, league: League, tournament: Tournament, console: Output) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._name = tournament.name
        self._table = LiveTable(league, tournament) if self._is_live else None
        self._faults = Counter[str]()
        for each in league.fault_counts(tournament=tournament.name):
            self._faults[each.cause.value] += each.strikes + each.forfeits
        self.list_hosts: Callable[[], Sequence[HostFigures]] = tuple
        """Returns what the hosts of a cluster do; see `Conductor.list_hosts`."""
        self._suspended: set[tuple[int, str]] = set()
        """Lane and bot of each suspension that was printed. No suspension is printed twice."""
        self._began = time.monotonic()
        self._played = 0
        self._total = len(tournament.schedule)
        self._at_most = "at most " if tournament.may_stop else ""
        self._done = league.tournament(self._name).stored
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[left]}"),
            TextColumn(f"left{' at most' if tournament.may_stop else ''}"),
            console=console,
            expand=True,
        )
        self._task = self._progress.add_task(
            self._name, total=self._total, completed=self._done, speed="", left="-:--:--"
        )
        self._live = Live(
            console=console, get_renderable=self._render, auto_refresh=False, transient=True
        )

    def __enter__(self) -> None:
        if self._is_live:
            self._live.start()

    def __exit__(self, *_exc: object) -> None:
        if self._is_live:
            self._live.stop()
        if self._played:
            self._line(f"{self._elapsed_s():.0f} s")
            for text in self._host_texts():
                self.say(text)

    async def refresh(self, *, if_unread: Callable[[], None]) -> None:
        """Refresh the screen regularly. If the pipe or the terminal is closed, call `if_unread` and return.

        `refresh` and `add` must run in the same thread, because `add` changes the screen.
        """
        while not self._console.quiet:
            if self._is_live:
                self._live.refresh()
                # If the terminal is closed, Rich writes nothing, so no write fails. Therefore look at the terminal here.
                if not self._console.is_terminal:
                    self._console.on_broken_pipe()
            await asyncio.sleep(_REFRESH_S)
        if_unread()

    def say(self, text: str) -> None:
        """Print `text`, and quote its lines after the first one, because they are the output of a program.

        The live screen does not overwrite the printed lines.
        """
        line, _, output = text.partition("\n")
        shown = visible(line) + ("\n" + quoted(output).rstrip("\n") if output else "")
        self._console.print(Text(shown), soft_wrap=not self._is_live)

    def add(self, game: ScheduledGame, record: GameRecord) -> None:
        """Show a game that was played and stored."""
        self._played += 1
        self._done += 1
        if self._table is not None:
            self._table.add(game, record)
        for fault in record.faults:
            self._faults[fault.cause.value] += 1
            self._print_fault(game, record, fault)
        # Do not use Rich's estimate: it is far too low, or missing, if many games arrive together.
        seconds = round(self._elapsed_s() / self._played * (self._total - self._done))
        self._progress.update(
            self._task,
            completed=self._done,
            speed=self._speed(),
            left=str(timedelta(seconds=seconds)),
        )
        is_due = self._done % max(1, self._total // _PLAIN_LINES) == 0
        if not self._is_live and is_due and self._done < self._total:
            self._line(f"{self._at_most}{seconds} s left")

    def _print_fault(self, game: ScheduledGame, record: GameRecord, fault: Fault) -> None:
        bot = record.seating[fault.seat]
        if fault.cause is not Cause.SUSPENDED:
            self.say(
                f"{game.game_id}: {bot} (seat {fault.seat}),"
                f" {'forfeit' if fault.forfeit else 'strike'}, {fault.cause.value}:"
                f" {fault.evidence.detail}"
            )
        elif (game.lane, str(bot)) not in self._suspended:
            self._suspended.add((game.lane, str(bot)))
            self.say(
                f"{game.game_id}: {bot} is suspended: it forfeits all other games of lane"
                f" {game.lane} without being started"
            )

    def _line(self, time_text: str) -> None:
        self.say(
            f"{self._name}: {self._done} of {self._at_most}{self._total} games, {self._speed()}, {time_text},"
            f" {self._fault_text()}"
        )

    def _speed(self) -> str:
        return game_speed(self._played / self._elapsed_s())

    def _elapsed_s(self) -> float:
        """Return the seconds since the start, more than 0."""
        return max(1e-9, time.monotonic() - self._began)

    def _fault_text(self) -> str:
        if not self._faults:
            return "no faults"
        return "faults: " + ", ".join(f"{count} {cause}" for cause, count in self._faults.items())

    def _host_texts(self) -> list[str]:
        """Return a line about each host of a cluster."""
        elapsed_s = self._elapsed_s()
        return [
            f"{host.host}: {count_text(host.playing, 'worker')} playing, {host.idle} idle, {host.lost} lost;"
            f" {count_text(host.games, 'game')}, {game_speed(host.games / elapsed_s)}"
            for host in self.list_hosts()
        ]

    def _render(self) -> RenderableType:
        """Return the content of the live screen. Important lines come first, because a low window cuts off the last lines."""
        rows = () if self._table is None else self._table.rows()
        table = RowsTable(StandingRow, rows, "so far") if rows else Text()
        hosts = map(Text, self._host_texts())
        return Group(self._progress, Text(self._fault_text()), *hosts, Text(), table)
