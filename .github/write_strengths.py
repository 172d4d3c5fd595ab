"""Write the table of strengths in `sample_bots/README.md` from a stored tournament.

    referee tournament run tournaments/sample-bots.toml
    .venv/bin/python .github/write_strengths.py sample-bots

The argument is the name that the tournament has in the league: a second run is called `sample-bots-2`. Another
folder of the league is named by `REFEREE_LEAGUE`, as for all commands.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from referee.ratings.intervals import Estimate
from referee.reports.formats import estimate
from referee.rules.ruleset import RULESETS

PAGE = Path(__file__).parents[1] / "sample_bots" / "README.md"
TABLE = re.compile(r"\| bot \| `classic` .*?\n(?=\n)", re.DOTALL)
"""The table with all its lines."""


def strength_table(rows: list[dict[str, Any]]) -> str:
    """Return the table.

    Args:
        rows: what `referee tournament standings --json` prints: a row for each ruleset and bot.
    """
    played = {row["ruleset"] for row in rows}
    rulesets = [ruleset for ruleset in RULESETS if ruleset in played]
    fits: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        name, _, _version = row["bot"].partition("@")
        fits.setdefault(name, {})[row["ruleset"]] = row
    bots = sorted(fits, key=lambda bot: -mean(row["fit"] for row in fits[bot].values()))
    lines = [
        ["bot", *(f"`{ruleset}`" for ruleset in rulesets)],
        ["---"] * (1 + len(rulesets)),
        *([f"`{bot}`", *(_cell(fits[bot][ruleset]) for ruleset in rulesets)] for bot in bots),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(row: dict[str, Any]) -> str:
    return estimate(1)(Estimate(row["fit"], row["fit_low"], row["fit_high"]))


def ask_referee(*words: str) -> Any:
    """Return what a command prints as JSON."""
    referee = Path(sys.executable).with_name("referee")
    done = subprocess.run([referee, *words, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    """Read the standings, and replace the table of the page."""
    (tournament,) = sys.argv[1:]
    if not ask_referee("tournament", "status", tournament)["finished"]:
        sys.exit(f"{tournament} is not finished")
    table = strength_table(ask_referee("tournament", "standings", tournament))
    page, found = TABLE.subn(lambda _: table, PAGE.read_text(encoding="utf-8"))
    if found != 1:
        sys.exit(f"{PAGE}: no table that begins with | bot | `classic`")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
