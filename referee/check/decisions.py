"""The steps that put every kind of decision of a ruleset to the bot, from scripted positions."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

from referee.check.bench import Bench
from referee.check.games import PATIENCE_S, Plan, join
from referee.check.positions import kinds_of, script
from referee.check.report import Finding, Trouble, passed
from referee.check.seats import BotSeat
from referee.check.words import counted
from referee.errors import BotFault, Cause
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import Ruleset

_AFTER_WHICH_IT_GOES_ON = {Cause.ILLEGAL, Cause.MALFORMED}
"""Faults that say nothing about the next answer: the others cost time, or the process is dead."""


async def decisions(bench: Bench, ruleset: Ruleset, players: int) -> Finding:
    """Ask a fresh process of the bot all kinds of decisions of a ruleset.

    Raises `Trouble` with the first wrong answer to each kind.
    """
    scripted = await script(ruleset, players, bench.clocks)
    kinds = kinds_of(ruleset)
    until_s = time.monotonic() + PATIENCE_S
    plan = Plan(scripted.name, ruleset, players, scripted.seat)
    async with bench.bot() as process:
        seat = BotSeat(process, await join(bench, process, plan), plan.where)
        asked = Counter[DecisionKind]()
        wrong = defaultdict[DecisionKind, list[Trouble]](list)
        for ask in scripted.asks:
            if time.monotonic() > until_s and len(asked) == len(kinds):
                break
            kind = ask.decision.kind
            asked[kind] += 1
            try:
                answer = await seat.decide(ask)
            except BotFault as fault:
                assert seat.trouble is not None  # noqa: S101 - a seat that raises has said why
                wrong[kind].append(seat.trouble)
                if fault.cause not in _AFTER_WHICH_IT_GOES_ON:
                    break
            else:
                bench.meter.answered(kind, answer.elapsed_us)
        if wrong:
            raise _together(wrong, asked)
    return passed(f"{counted(asked.total(), 'answer')}; all {len(asked)} kinds of decisions")


def _together(wrong: dict[DecisionKind, list[Trouble]], asked: Counter[DecisionKind]) -> Trouble:
    expected = "\n".join(troubles[0].expected for troubles in wrong.values())
    came = "\n".join(
        f"{troubles[0].came}"
        + (f" ({len(troubles)} of {asked[kind]} such answers)" if len(troubles) > 1 else "")
        for kind, troubles in wrong.items()
    )
    return Trouble(expected, came)
