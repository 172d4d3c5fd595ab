"""Implement the rules of LINKO!, without I/O, clocks or randomness. The deck comes in ordered.

The rest of the project uses `game.Game`. `turn` is the order of play of the rulebooks, and `table`
moves the cards. The rules come from five rulebooks. Where those are silent, the rulings R1 to R15 in
`referee/rules/README.md` decide.
"""
