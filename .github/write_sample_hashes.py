"""Write `referee/roster/sample_hashes.txt`. The referee recognises its sample bots by these content hashes.

Run `.venv/bin/python .github/write_sample_hashes.py` after each change of a sample bot. A test compares the file with the bots.
"""

from __future__ import annotations

from pathlib import Path

from referee.roster.content import hash_content
from referee.roster.roster import SAMPLE_BOTS

FILE = Path(__file__).parents[1] / "referee" / "roster" / "sample_hashes.txt"


def sample_hashes() -> str:
    """Return the text of the file."""
    folders = sorted(manifest.parent for manifest in SAMPLE_BOTS.glob("*/bot.toml"))
    return "".join(f"{hash_content(folder)}  {folder.name}\n" for folder in folders)


if __name__ == "__main__":
    FILE.write_text(sample_hashes(), encoding="utf-8")
