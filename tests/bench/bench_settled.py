"""Measure what `until` saves, and how often it is wrong: `python tests/bench/bench_settled.py [TOURNAMENTS]`.

Simulated bots of known strength play rounds of all tables. They stop when every two neighbours by fit
are told apart or called equal, with a confidence of 95 %. The standings are wrong if they put a bot ahead of one that is not
worse, or call two bots equal that differ by the margin or more. Wanted are wrong standings in at most 5 % of the
tournaments. The same games are judged twice: by the boundary of `referee.ratings.judge` (after), and with an equal share of the
allowed error for each look, where no verdict is final (before). The last columns are of tournaments that play other games: by the
boundary, and each look draws the tables again (adaptive), as a tournament with `until` does. The games are a share of the full schedule.

The second table is for a single test, such as that of `stats settled`: ten times as many tournaments of duels. Half of the bots differ
from the other half by exactly the margin, so that the two closest bots of the halves are often closer than the margin in the games.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ratings"))

from simulated import play, tables

from referee.ratings.analysis import Analysis
from referee.ratings.judge import Judge, Verdict
from referee.ratings.stopping import CONFIDENCE, StopCondition, look_rounds
from referee.rules.ruleset import RULESETS
from referee.schedule import Stage
from referee.schedule.adaptive import collect_matches, redraw
from referee.schedule.round_robin import round_robin

CONDITION = StopCondition()


@dataclass(frozen=True)
class Shape:
    """A kind of tournament: its size, and the skills of its bots."""

    name: str
    bots: int
    seats: int
    rounds: int
    gap: float | None = None
    """The skill of a bot minus that of the next one; None if skills are drawn at random."""
    spread: float = 0.0
    """The standard deviation of skills that are drawn at random."""
    halves: float | None = None
    """The skill of the better half of the bots minus that of the other half; None for other skills."""

    def draw_skills(self, rng):
        """Return the (n,) skills of the bots of a tournament."""
        if self.halves is not None:
            return np.repeat([25.0, 25.0 + self.halves], self.bots // 2)
        if self.gap is None:
            return rng.normal(25, self.spread, self.bots)
        return 25 - self.gap * np.arange(self.bots)


SHAPES = [
    Shape("4 bots, 4 seats, random gaps", 4, 4, 400, spread=2.0),
    Shape("6 bots, duels, random gaps", 6, 2, 120, spread=2.0),
    Shape("8 bots, 4 seats, even gaps", 8, 4, 20, gap=1.5),
    Shape("8 bots, 4 seats, random gaps", 8, 4, 20, spread=3.0),
    Shape("8 bots, duels, even gaps", 8, 2, 120, gap=1.5),
    Shape("8 bots, duels, random gaps", 8, 2, 120, spread=3.0),
    Shape("8 bots, 4 seats, equal", 8, 4, 20, gap=0.0),
    Shape("10 bots, duels, two halves", 10, 2, 60, halves=CONDITION.margin),
]

SINGLE = [(4, 2.0, 40), (6, 2.0, 24), (10, 2.0, 20), (10, 1.0, 60), (20, 2.0, 10)]
"""Bots, margin, and matches of each pair, in the table of the single tests."""


@dataclass
class Outcomes:
    """What a rule did in the tournaments of a shape."""

    settled: list[bool] = field(default_factory=list)
    wrong: list[bool] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def add(self, played, table, truth):
        """Add a tournament: after how many rounds it stopped, and its last verdicts about neighbours."""
        self.rounds.append(played)
        self.settled.append(all(each.verdict is not Verdict.OPEN for each in table))
        self.wrong.append(any(is_wrong(each, truth) for each in table))

    def show(self, most):
        """Return the share of the games that were played, of settled tournaments, and of wrong ones, as text."""
        return f"{np.mean(self.rounds) / most:7.1%} {np.mean(self.settled):8.0%} {np.mean(self.wrong):6.1%}"


def main(tournaments: int) -> None:
    print(f"{tournaments} tournaments each, confidence {CONFIDENCE:.0%}, margin {CONDITION.margin}")
    print(f"{'':31}|{'before':^25}|{'after':^25}|{'adaptive':^25}")
    print(f"{'shape':31}" + "|  games  settled  wrong " * 3)
    for shape in SHAPES:
        rules = measure(shape, tournaments)
        print(
            f"{shape.name:31}| " + " | ".join(rule.show(shape.rounds) for rule in rules), flush=True
        )
    print("bots margin matches |  wrong: equal  ahead (a single test)")
    for single in SINGLE:
        shown = " ".join(f"{share:6.1%}" for share in measure_single(*single, 10 * tournaments))
        print("{:4} {:6} {:7}".format(*single), f"| {shown}", flush=True)


def measure_single(bots, margin, matches, tournaments):
    """Return the shares of tournaments with any wrong verdict, with a wrong *equal*, and with a wrong *ahead*."""
    rng = np.random.default_rng(1)
    skills = np.repeat([25.0, 25.0 + margin], bots // 2)
    judge = Judge(StopCondition(margin=margin))
    found = []
    for _ in range(tournaments):
        results = play(skills, tables(bots, 2, matches), rng)
        truth = dict(zip(results.bots, skills, strict=True))
        wrong = {
            each.verdict
            for each in judge.look({"basic": Analysis(results)}).neighbours["basic"]
            if is_wrong(each, truth, margin)
        }
        found.append([bool(wrong), Verdict.EQUAL in wrong, Verdict.AHEAD in wrong])
    return np.mean(found, axis=0)


def measure(shape, tournaments) -> tuple[Outcomes, Outcomes, Outcomes]:
    """Return what the rules before, after and adaptive did in the tournaments of a shape."""
    rng = np.random.default_rng(1)
    rules = Outcomes(), Outcomes(), Outcomes()
    for _ in range(tournaments):
        skills = shape.draw_skills(rng)
        whole = play(skills, tables(shape.bots, shape.seats, shape.rounds), rng)
        truth = dict(zip(whole.bots, skills, strict=True))
        played = (*play_twice(shape, whole), play_adaptively(shape, skills, rng))
        for outcomes, (rounds, table) in zip(rules, played, strict=True):
            outcomes.add(rounds, table, truth)
    return rules


def play_twice(shape, whole):
    """Return for both rules after how many rounds the tournament stops, and the last verdicts about neighbours."""
    looks = tuple(look_rounds(shape.rounds))
    share = StopCondition(confidence=1 - (1 - CONFIDENCE) / len(looks))
    judge, last = Judge(CONDITION, looks), None
    before = after = None
    for rounds in looks:
        games = whole.select(whole.match < rounds * whole.matches // shape.rounds)
        analyses = {"basic": Analysis(games)}
        if before is None:
            found = Judge(share).look(analyses)
            if found.are_settled or rounds == shape.rounds:
                before = rounds, found.neighbours["basic"]
        if after is None:
            last = found = judge.look(analyses, rounds, last)
            if found.are_settled or rounds == shape.rounds:
                after = rounds, found.neighbours["basic"]
    return before, after


def play_adaptively(shape, skills, rng):
    """Return the same for a tournament in which each look draws the tables up to the next look again."""
    stage = Stage(RULESETS["basic"], shape.seats, shape.rounds)
    names = [f"bot{number:02}" for number in range(shape.bots)]
    matches = collect_matches(names, round_robin("cup", names, [stage], lanes=shape.seats))
    looks = tuple(look_rounds(shape.rounds))
    judge, found, games = Judge(CONDITION, looks), None, None
    for last, rounds, next_rounds in zip(
        (0, *looks), looks, (*looks[1:], shape.rounds), strict=False
    ):
        new = [match.order for match in matches if last < match.round <= rounds]
        games = add_games(games, play(skills, np.array(new), rng))
        found = judge.look({"basic": Analysis(games)}, rounds, found)
        table = found.neighbours["basic"]
        if found.are_settled:
            break
        pairs = [
            (games.bots.index(each.bot), games.bots.index(each.below))
            for each in table
            if each.verdict is Verdict.OPEN
        ]
        pairs = pairs if len(pairs) < len(table) else None
        matches = redraw([stage], matches, [pairs], rounds=rounds, next_rounds=next_rounds)
    return rounds, table


def add_games(games, new):
    """Return the games with new ones after them. None stands for no games."""
    if games is None:
        return new
    columns = ("ruleset", "bot", "score", "rank", "forfeited", "strikes", "machine", "fresh_deal")
    joined = {name: np.concatenate([getattr(games, name), getattr(new, name)]) for name in columns}
    match = np.concatenate([games.match, new.match + games.matches])
    return replace(games, match=match, **joined)


def is_wrong(verdict, truth, margin=CONDITION.margin) -> bool:
    """Return True if a verdict contradicts the true skills."""
    lead = truth[verdict.bot] - truth[verdict.below]
    if verdict.verdict is Verdict.AHEAD:
        return lead <= 0
    return verdict.verdict is Verdict.EQUAL and abs(lead) >= margin


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
