"""Write the golden games again:

.venv/bin/python tests/rules/golden/regenerate.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playthrough import GOLDEN, playthrough

for golden in GOLDEN:
    text = playthrough(golden)
    changed = not golden.path.exists() or golden.path.read_text(encoding="utf-8") != text
    golden.path.write_text(text, encoding="utf-8")
    print(f"{golden.path.name}: {'written' if changed else 'unchanged'}")  # noqa: T201 - it reports
