"""Check a bot: run all steps one after another, and make a report of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import cached_property, partial
from pathlib import Path

from referee.bots.logs import LogSettings
from referee.check import (
    LEFT_OUT,
    Finding,
    Report,
    Step,
    StepFailure,
    StepVerdict,
    Strength,
    dropped_text,
    inform,
    kind_name,
    pass_with,
    skip_because,
)
from referee.check.bot_under_test import Measurements
from referee.check.decision_steps import check_decisions
from referee.check.game_steps import ConcurrencySteps, measure_strength
from referee.check.games import TableSize, list_rulesets, plan_games, play_in_sequence
from referee.check.lifecycle_steps import ShutdownSteps, StartUpSteps
from referee.clocks import Clocks
from referee.errors import UserError, count_text
from referee.roster.workshop import Copy, Workshop
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sandbox.folders import run_folder

Work = Callable[[], Awaitable[Finding]]
"""A function that does what a step has to do. The function raises `StepFailure` if the step fails."""
_TABLES = {"classic": 3, "basic": 4, "advanced": 5, "expert": 3, "expert-jokers": 4, "duel": 2}
"""The number of players in the step `decisions: RULESET` of each ruleset."""
_PLAYER_COUNTS = range(2, 6)
"""The check has a step `full games: N players` for each of these N."""
_VITAL = ("manifest", "build", "start", "hello")
"""If one of these steps fails, all later steps are skipped."""
_DECISIONS = tuple(f"decisions: {name}" for name in RULESETS)
_FULL_GAMES = tuple(f"full games: {players} players" for players in _PLAYER_COUNTS)
STEPS = (
    *_VITAL,
    *_DECISIONS,
    *_FULL_GAMES,
    "one large message",
    "games at once",
    "games kept apart",
    "deterministic",
    "goodbye",
    "SIGTERM",
    "nothing left running",
    "latency",
    "CPU and memory",
    "strength",
)
"""The names of all steps, in their order."""
QUICK_STEPS = frozenset((*_VITAL, *_DECISIONS, "goodbye"))
"""A selection of steps that takes little time and finds most mistakes."""
_NEEDED = {
    "games kept apart": ("games at once",),
    "nothing left running": ("goodbye", "SIGTERM"),
    "latency": _FULL_GAMES,
    "CPU and memory": _FULL_GAMES,
}
"""Maps a step to the steps whose results it uses. If the step is chosen, those steps are chosen too."""
_LIMIT_S = 900.0
"""No step begins later than this number of seconds after the end of the build. A chosen step that comes later is not tried, and fails."""
_GRACE_S = 30.0
"""A step may run this number of seconds beyond `_LIMIT_S`. Then it is stopped, and fails."""


def choose_steps(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of the selected steps, together with the steps that they need and all vital steps.

    A text selects all steps whose names begin with it. Upper and lower case are equal. Raises `UserError` if a text
    selects no step.
    """
    chosen = set(_VITAL)
    for text in texts:
        found = [name for name in STEPS if name.casefold().startswith(text.casefold())]
        if not found:
            raise UserError(f"no step begins with {text!r}; choose one of {', '.join(STEPS)}")
        chosen.update(found, *(_NEEDED.get(name, ()) for name in found))
    return frozenset(chosen)


async def check_bot(
    folder: Path,
    workshop: Workshop,
    *,
    on_begin: Callable[[int, str], None],
    on_step: Callable[[Step], None],
    clocks: Clocks | None = None,
    logs: LogSettings | None = None,
    chosen: Collection[str] = STEPS,
    discard: Callable[[Copy], None] = lambda _: None,
) -> Report:
    """Check the bot in a folder. Only a copy of the folder is built and run.

    Args:
        folder: the bot's folder.
        workshop: copies and builds the bot.
        on_begin: called with the number and name of each step before it starts.
        on_step: called with each finished step.
        clocks: the time limits for the bot; None for the defaults of `Clocks`.
        logs: where to write what the bot prints; None for nowhere.
        chosen: the names of the steps to run. All other steps are left out. Later steps treat a left-out step `decisions`
            or `full games` as passed.
        discard: called with the copy if the check raises an exception, for example VoidGame, or after Ctrl-C.

    The check leaves no process running. It leaves no files except the logs and the copy. A new copy is temporary, see
    `Workshop.copy`. Raises `VoidGame` if the machine lacks the resources to run the bot. Raises `UserError` if the bot cannot
    be built for a reason that is not in the bot, such as a TMPDIR with a long path.
    """
    measurements = Measurements()
    with run_folder() as scratch:
        start_up = StartUpSteps(
            folder, workshop, scratch, clocks or Clocks(), measurements, logs=logs
        )
        run = _Check(start_up, measurements, on_begin, on_step, chosen)
        try:
            await run.run()
        except BaseException:
            if start_up.copy is not None:
                discard(start_up.copy)
            raise
    return run.report()


class _Check:
    """One run of a check, with everything that its finished steps have found out."""

    def __init__(
        self,
        start_up: StartUpSteps,
        measurements: Measurements,
        on_begin: Callable[[int, str], None],
        on_step: Callable[[Step], None],
        chosen: Collection[str],
    ) -> None:
        self._chosen = chosen
        self._on_begin = on_begin
        self._on_step = on_step
        self._start_up = start_up
        self._measurements = measurements
        self._steps: list[Step] = []
        self._failed_vital_step: Step | None = None
        """The vital step that failed; None if no vital step has failed. See `_step`."""
        self._passed_rulesets: list[Ruleset] = []
        """The bot's rulesets whose step `decisions: RULESET` has passed or was left out."""
        self._tables: list[TableSize] = []
        """From each passed step `full games`, the table sizes that were played; from each left-out one, all its table sizes."""
        self._strength: Strength | None = None
        self._until_s: float | None = None
        """The monotonic time, in seconds, after which no step is tried; None before the end of the build."""

    def report(self) -> Report:
        """Return the report of a finished run."""
        manifest = self._start_up.manifest
        return Report(
            bot=None if manifest is None else manifest.bot,
            steps=tuple(self._steps),
            latencies=self._measurements.latencies,
            usage=self._measurements.usage,
            strength=self._strength,
            copy=self._start_up.copy,
        )

    async def run(self) -> None:
        """Run all steps."""
        # The steps `full games` fill `_tables`, so they must run before the steps that use it.
        await self._step("manifest", self._start_up.read_manifest, vital=True)
        await self._step("build", self._start_up.build, vital=True)
        self._until_s = time.monotonic() + _LIMIT_S
        await self._step("start", self._start_up.start, vital=True)
        await self._step("hello", self._start_up.check_hello, vital=True)
        for ruleset in RULESETS.values():
            await self._step(
                f"decisions: {ruleset.name}",
                partial(self._check_ruleset, ruleset),
                on_left_out=partial(self._assume_ruleset, ruleset),
            )
        for players in _PLAYER_COUNTS:
            await self._step(
                f"full games: {players} players",
                partial(self._play_full_games, players),
                on_left_out=partial(self._assume_tables, players),
            )
        await self._concurrency_step("one large message", ConcurrencySteps.check_batch)
        await self._concurrency_step("games at once", ConcurrencySteps.check_interleaved)
        await self._concurrency_step("games kept apart", ConcurrencySteps.check_separation)
        await self._concurrency_step("deterministic", ConcurrencySteps.report_determinism)
        await self._shutdown_step("goodbye", ShutdownSteps.check_goodbye)
        await self._shutdown_step("SIGTERM", ShutdownSteps.check_sigterm)
        await self._shutdown_step("nothing left running", ShutdownSteps.check_nothing_left)
        await self._step("latency", self._report_latency)
        await self._step("CPU and memory", self._report_usage)
        await self._game_step("strength", self._report_strength)

    async def _step(
        self,
        name: str,
        work: Work,
        *,
        vital: bool = False,
        on_left_out: Callable[[], None] = lambda: None,
    ) -> None:
        """Run one step and record it. If a `vital` step fails, all later steps are skipped.

        If the step is not chosen, it is skipped, and `on_left_out` is called.
        """
        number = len(self._steps) + 1
        self._on_begin(number, name)
        began_s = time.monotonic()
        try:
            if self._failed_vital_step is not None:
                finding = _skip_after(self._failed_vital_step)
            elif name not in self._chosen:
                finding = skip_because(LEFT_OUT)
                on_left_out()
            elif self._until_s is not None and began_s > self._until_s:
                raise _time_is_over("not tried")
            else:
                finding = await self._run_in_time(work)
        except StepFailure as failure:
            finding = failure.finding
        step = Step(number, name, finding, time.monotonic() - began_s)
        if vital and finding.verdict is StepVerdict.FAIL:
            self._failed_vital_step = step
        self._steps.append(step)
        self._on_step(step)

    async def _run_in_time(self, work: Work) -> Finding:
        """Do the work of a step. Raises `StepFailure` if it still runs `_LIMIT_S` + `_GRACE_S` seconds after the build.

        The steps `manifest` and `build` are not stopped, because that time begins after the build. A build has its own
        time limit.
        """
        until_s = self._until_s
        left_s = None if until_s is None else until_s + _GRACE_S - time.monotonic()
        try:
            async with asyncio.timeout(left_s) as timeout:
                return await work()
        except TimeoutError:
            if timeout.expired():
                raise _time_is_over("stopped") from None
            raise

    async def _game_step(self, name: str, work: Work) -> None:
        """Run a step that plays games with `_tables`. If `_tables` is empty, skip the step."""

        async def work_if_playable() -> Finding:
            if not self._tables:
                return skip_because(
                    "not tried: the bot has not played a full game without a mistake"
                )
            return await work()

        await self._step(name, work_if_playable)

    async def _concurrency_step(
        self, name: str, work: Callable[[ConcurrencySteps], Awaitable[Finding]]
    ) -> None:
        await self._game_step(name, lambda: work(self._concurrency))

    async def _shutdown_step(
        self, name: str, work: Callable[[ShutdownSteps], Awaitable[Finding]]
    ) -> None:
        await self._step(name, lambda: work(self._shutdown))

    @cached_property
    def _concurrency(self) -> ConcurrencySteps:
        return ConcurrencySteps(self._start_up.bot, self._start_up.max_games, self._tables)

    @cached_property
    def _shutdown(self) -> ShutdownSteps:
        games = plan_games("ending", self._tables, 1)
        return ShutdownSteps(self._start_up.bot, games[0] if games else None)

    async def _check_ruleset(self, ruleset: Ruleset) -> Finding:
        if ruleset.name not in self._start_up.spec.rulesets:
            return skip_because("bot.toml does not list this ruleset")
        finding = await check_decisions(self._start_up.bot, ruleset, _TABLES[ruleset.name])
        self._passed_rulesets.append(ruleset)
        return finding

    def _assume_ruleset(self, ruleset: Ruleset) -> None:
        """Treat a ruleset as passed if the bot plays it, because its step was left out."""
        if ruleset.name in self._start_up.spec.rulesets:
            self._passed_rulesets.append(ruleset)

    def _assume_tables(self, players: int) -> None:
        """Treat the table sizes with `players` players as playable, because their step was left out."""
        self._tables += self._list_tables(players)

    def _list_tables(self, players: int) -> list[TableSize]:
        """Return the table sizes with `players` players for the rulesets in `_passed_rulesets`.

        A ruleset with a ghost gives two table sizes: one with its own options, and one with changed options of the ghost.
        """
        return [
            TableSize(each, players)
            for ruleset in self._passed_rulesets
            for each in list_rulesets(ruleset)
            if ruleset.min_players <= players <= ruleset.max_players
        ]

    async def _play_full_games(self, players: int) -> Finding:
        """Play one game with each table size of `_list_tables`, as far as the time of `play_in_sequence` allows."""
        tables = self._list_tables(players)
        if not tables:
            some_failed = len(self._passed_rulesets) < len(self._start_up.spec.rulesets)
            qualifier = "whose decisions were right " if some_failed else ""
            return skip_because(f"no ruleset of bot.toml {qualifier}is for {players} players")
        games = plan_games(f"full-{players}", tables, len(tables))
        bot = self._start_up.bot
        async with bot.run() as process:
            played = await play_in_sequence(bot, process, games)
            dropped_messages = process.session.dropped
        decisions = [decision for game in played for decision in game.decisions]
        for decision in decisions:
            self._measurements.add_decision(decision.kind, decision.elapsed_us)
        self._tables += tables[: len(played)]
        shortfall = "" if len(played) == len(tables) else f" of {len(tables)}, because it is slow"
        dropped = f"\n{dropped_text(dropped_messages)}" if dropped_messages else ""
        return pass_with(
            f"{count_text(len(decisions), 'decision')} in {count_text(len(played), 'game')}{shortfall}{dropped}"
        )

    async def _report_latency(self) -> Finding:
        rows = self._measurements.latencies
        if not rows:
            return skip_because("the bot sent no reply")
        return inform(
            "\n".join(
                (
                    f"{'in ms':18} {'p50':>7} {'p95':>7} {'max':>7}",
                    *(
                        f"{kind_name(row.kind):18} {_ms(row.p50_us)} {_ms(row.p95_us)}"
                        f" {_ms(row.max_us)}"
                        for row in rows
                    ),
                )
            )
        )

    async def _report_usage(self) -> Finding:
        usage = self._measurements.usage
        if usage is None:
            return skip_because("the bot never ran")
        return inform(
            f"{usage.cpu_s:.1f} s of CPU time so far, {usage.memory_bytes / 2**20:.0f} MiB of memory at most"
        )

    async def _report_strength(self) -> Finding:
        max_games = self._start_up.max_games if self._concurrency.went_well else 1
        strength = await measure_strength(self._start_up.bot, self._tables, max_games)
        if strength is None:
            return skip_because("not measured: the bot's games take too long")
        self._strength = strength
        return inform(
            f"{strength.margin:+.1f} ± {strength.interval:.1f} points a game against random play"
            f" ({count_text(strength.games, 'game')} of {strength.ruleset} with {strength.players} players)"
        )


def _time_is_over(event: str) -> StepFailure:
    return StepFailure(
        f"replies that are quick enough for a whole check within {_LIMIT_S / 60:g} minutes",
        f"{event}: the time for the check is over",
    )


def _skip_after(failed: Step) -> Finding:
    return skip_because(f"not tried: step {failed.number} ({failed.name}) failed")


def _ms(duration_us: int) -> str:
    return f"{duration_us / 1000:7.1f}"
