"""Draw `.github/ratings.svg`, the picture of the README: `.venv/bin/python .github/draw_ratings.py`.

It plays the demo tournament with a fixed seed in a temporary league and draws what `referee ratings` prints.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).with_name("ratings.svg")
COMMAND = ("ratings",)
COLUMNS = 92
"""Wide enough for the columns that matter; a narrower terminal hides more of them."""


def main() -> None:
    """Play, print, and save the output as SVG."""
    referee = Path(sys.executable).with_name("referee")
    with tempfile.TemporaryDirectory() as folder:
        demo = (ROOT / "tournaments" / "demo.toml").read_text().replace("../", f"{ROOT}/")
        tournament = Path(folder, "demo.toml")
        tournament.write_text(f'{demo}seed = "{bytes(32).hex()}"\n')
        environment = os.environ | {
            "REFEREE_LEAGUE": f"{folder}/league",
            "COLUMNS": str(COLUMNS),
            "FORCE_COLOR": "1",
        }
        environment.pop("REFEREE_DB", None)
        run = ("tournament", "run", tournament)
        subprocess.run([referee, *run], env=environment, check=True, stdout=subprocess.DEVNULL)
        output = subprocess.run(
            [referee, *COMMAND], env=environment, check=True, capture_output=True, text=True
        ).stdout
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(Text.from_ansi(f"$ referee {' '.join(COMMAND)}\n{output}".rstrip()))
    console.save_svg(
        str(PICTURE), title="LINKO! referee", theme=DIMMED_MONOKAI, unique_id="ratings"
    )


if __name__ == "__main__":
    main()
