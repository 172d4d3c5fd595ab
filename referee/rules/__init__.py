"""Implement the rules of LINKO!, without I/O, clocks or randomness. The caller passes a shuffled deck.

The rest of the project uses `game.Game`. `turn` has the order of play, and `table` moves the cards. The
rules come from five rulebooks. If they leave a case open, one of the rulings R1 to R15 in
`referee/rules/README.md` decides it.
"""
