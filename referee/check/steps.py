"""The steps of a check, in order, and what each needs of those before."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from pathlib import Path

from referee.check.games import Table, plans, play_one_by_one
from referee.check.report import (
    Finding,
    Report,
    Step,
    StepFailure,
    Strength,
    Verdict,
    counted,
    kind_name,
    passed,
    skipped,
    told,
)
from referee.check.seats import UsageMonitor
from referee.check.start_up import StartUp
from referee.check.trials import ShutdownSteps, Together, decisions, strength
from referee.clocks import Clocks
from referee.roster.workshop import Workshop
from referee.rules.ruleset import RULESETS, Ruleset
from referee.sandbox.folders import run_folder

Work = Callable[[], Awaitable[Finding]]
"""What a step does. `StepFailure` fails it."""
_TABLES = {"classic": 3, "basic": 4, "advanced": 5, "expert": 3, "expert-jokers": 4, "duel": 2}
"""How many sit in the scripted positions of each ruleset."""
_SIZES = range(2, 6)
_LIMIT_S = 900.0
"""No step is begun after that, not counting the build."""


async def check(
    folder: Path,
    workshop: Workshop,
    *,
    on_begin: Callable[[int, str], None],
    on_step: Callable[[Step], None],
    clocks: Clocks | None = None,
) -> Report:
    """Check the bot of a folder, of which a copy is built and run.

    Args:
        folder: the bot's.
        workshop: makes the copy.
        on_begin: is told the number and name of each step that begins.
        on_step: is told of each step that is done.
        clocks: the limits to which the bot is held, by default those of a tournament.

    Whatever the bot does, this ends, and leaves no process, and no file but the copy. Raises `VoidGame` when the
    machine has no room for a process.
    """
    meter = UsageMonitor()
    with (
        run_folder() as parent,
        tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as scratch,
    ):
        birth = StartUp(folder, workshop, Path(scratch), clocks or Clocks(), meter)
        run = _Check(birth, meter, on_begin, on_step)
        await run.run()
    return run.report()


class _Check:
    """The state of a check: what is known of the bot so far."""

    def __init__(
        self,
        birth: StartUp,
        meter: UsageMonitor,
        on_begin: Callable[[int, str], None],
        on_step: Callable[[Step], None],
    ) -> None:
        self._on_begin = on_begin
        self._on_step = on_step
        self._birth = birth
        self._meter = meter
        self._steps: list[Step] = []
        self._broken: Step | None = None
        """The step without which nothing else can be tried, if it failed."""
        self._sound: list[Ruleset] = []
        """The rulesets all of whose decisions it can take."""
        self._tables: list[Table] = []
        """Those at which it has played games."""
        self._strength: Strength | None = None
        self._until_s = 0.0
        """When patience ends."""

    def report(self) -> Report:
        """What is known at the end."""
        manifest = self._birth.manifest
        return Report(
            bot=None if manifest is None else manifest.bot,
            steps=tuple(self._steps),
            latencies=self._meter.latencies,
            usage=self._meter.usage,
            strength=self._strength,
            copy=self._birth.copy,
        )

    async def run(self) -> None:
        """Do all the steps."""
        await self._step("manifest", self._birth.read_manifest, vital=True)
        await self._step("build", self._birth.build, vital=True)
        self._until_s = time.monotonic() + _LIMIT_S
        await self._step("start", self._birth.start, vital=True)
        await self._step("hello", self._birth.hello, vital=True)
        for ruleset in RULESETS.values():
            await self._step(f"decisions: {ruleset.name}", partial(self._decisions, ruleset))
        for players in _SIZES:
            await self._step(f"full games: {players} players", partial(self._full_games, players))
        await self._game_step("games at once", self._with_together(Together.interleaved))
        await self._game_step("games kept apart", self._with_together(Together.not_mixed))
        await self._game_step("deterministic", self._with_together(Together.deterministic))
        await self._step("goodbye", self._with_endings(ShutdownSteps.goodbye))
        await self._step("SIGTERM", self._with_endings(ShutdownSteps.sigterm))
        await self._step("nothing left running", self._with_endings(ShutdownSteps.nothing_left))
        await self._step("latency", self._latency)
        await self._step("CPU and memory", self._usage)
        await self._game_step("strength", self._against_chance)

    async def _step(self, name: str, work: Work, *, vital: bool = False) -> None:
        number = len(self._steps) + 1
        self._on_begin(number, name)
        began_s = time.monotonic()
        try:
            if self._broken is not None:
                finding = _not_tried(self._broken)
            elif self._until_s and began_s > self._until_s:
                finding = _too_slow()
            else:
                finding = await work()
        except StepFailure as trouble:
            finding = trouble.finding
        step = Step(number, name, finding, time.monotonic() - began_s)
        if vital and finding.verdict is Verdict.FAIL:
            self._broken = step
        self._steps.append(step)
        self._on_step(step)

    async def _game_step(self, name: str, work: Work) -> None:
        """A step with games, at the tables at which games went well."""

        async def work_if_it_plays() -> Finding:
            if not self._tables:
                return skipped("not tried: no full game went well")
            return await work()

        await self._step(name, work_if_it_plays)

    @cached_property
    def _together(self) -> Together:
        return Together(self._birth.bench, self._birth.max_games, self._tables)

    @cached_property
    def _endings(self) -> ShutdownSteps:
        games = plans("ending", self._tables, 1)
        return ShutdownSteps(self._birth.bench, games[0] if games else None)

    def _with_together(self, work: Callable[[Together], Awaitable[Finding]]) -> Work:
        return lambda: work(self._together)

    def _with_endings(self, work: Callable[[ShutdownSteps], Awaitable[Finding]]) -> Work:
        return lambda: work(self._endings)

    async def _decisions(self, ruleset: Ruleset) -> Finding:
        if ruleset.name not in self._birth.spec.rulesets:
            return skipped("not among the rulesets of its bot.toml")
        finding = await decisions(self._birth.bench, ruleset, _TABLES[ruleset.name])
        self._sound.append(ruleset)
        return finding

    async def _full_games(self, players: int) -> Finding:
        """One game of each ruleset that went well so far and is for so many."""
        tables = [
            Table(each, players)
            for each in self._sound
            if each.min_players <= players <= each.max_players
        ]
        if not tables:
            why = "that went well " if len(self._sound) < len(self._birth.spec.rulesets) else ""
            return skipped(f"none of its rulesets {why}is for {players} players")
        games = plans(f"full-{players}", tables, len(tables))
        bench = self._birth.bench
        async with bench.bot() as process:
            played = await play_one_by_one(bench, process, games)
        answers = [answer for game in played for answer in game.answers]
        for answer in answers:
            self._meter.answered(answer.kind, answer.elapsed_us)
        self._tables += tables[: len(played)]
        each = "" if len(played) == len(tables) else f" of {len(tables)}, for it is slow"
        return passed(f"{counted(len(answers), 'answer')} in {counted(len(played), 'game')}{each}")

    async def _latency(self) -> Finding:
        rows = self._meter.latencies
        if not rows:
            return skipped("nothing was answered")
        return told(
            "\n".join(
                (
                    f"{'in ms':18} {'p50':>7} {'p95':>7} {'max':>7}",
                    *(
                        f"{kind_name(each.kind):18} {_ms(each.p50_us)} {_ms(each.p95_us)}"
                        f" {_ms(each.max_us)}"
                        for each in rows
                    ),
                )
            )
        )

    async def _usage(self) -> Finding:
        usage = self._meter.usage
        if usage is None:
            return skipped("the bot never ran")
        return told(
            f"{usage.cpu_s:.1f} s of CPU so far, {usage.memory_bytes / 2**20:.0f} MiB at most"
        )

    async def _against_chance(self) -> Finding:
        at_once = self._birth.max_games if self._together.went_well else 1
        found = await strength(self._birth.bench, self._tables, at_once)
        if found is None:
            return skipped("its games take too long: not measured")
        self._strength = found
        return told(
            f"{found.margin:+.1f} ± {found.interval:.1f} points a game against random play"
            f" ({counted(found.games, 'game')} of {found.ruleset} with {found.players} players)"
        )


def _too_slow() -> Finding:
    raise StepFailure(
        f"answers so quick that a check is done within {_LIMIT_S / 60:g} minutes",
        "not tried: that time is over",
    )


def _not_tried(broken: Step) -> Finding:
    return skipped(f"not tried: step {broken.number} ({broken.name}) failed")


def _ms(duration_us: int) -> str:
    return f"{duration_us / 1000:7.1f}"
