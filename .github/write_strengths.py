"""Write the table of strengths in `sample_bots/README.md` from the stored tournament `sample-bots`.

    referee tournament run tournaments/sample-bots.toml
    python .github/write_strengths.py

A league in another folder is named by `REFEREE_LEAGUE`, as for all commands.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from referee.rules.ruleset import RULESETS

PAGE = Path(__file__).parents[1] / "sample_bots" / "README.md"
TOURNAMENT = "sample-bots"
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
    if row["fit_low"] is None:  # it always ranked last
        return f"< {row['fit_high']:.1f}"
    if row["fit_high"] is None:  # it always ranked first
        return f"> {row['fit_low']:.1f}"
    return f"{row['fit']:.1f} [{row['fit_low']:.1f}, {row['fit_high']:.1f}]"


def main() -> None:
    """Read the standings, and replace the table of the page."""
    referee = Path(sys.executable).with_name("referee")
    command = [referee, "tournament", "standings", TOURNAMENT, "--json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page = PAGE.read_text(encoding="utf-8")
    table = strength_table(json.loads(output))
    PAGE.write_text(TABLE.sub(lambda _: table, page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
