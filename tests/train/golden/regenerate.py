"""Write the playthrough of OpenSpiel again: `.venv/bin/python tests/train/golden/regenerate.py`."""

from pathlib import Path

from open_spiel.python.algorithms.generate_playthrough import playthrough

import referee.train.openspiel  # noqa: F401 - registers the game

GAME = "linko(ruleset=duel,players=2,max_turns=8)"

text = playthrough(GAME, None, seed=1)
(Path(__file__).parent / "linko_duel.txt").write_text(text)
