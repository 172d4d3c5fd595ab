"""Implement the rules of LINKO!, without I/O, clocks or randomness. The caller passes a shuffled deck.

The rest of the project plays games with `game.Game`. `game.turn` defines the order of play, and `table` moves the
cards. The rules come from several rulebooks, which `referee/rules/README.md` lists. If the rulebooks leave a case
open or contradict each other, one of the rulings R1 to R19 on the same page decides the case.
"""
