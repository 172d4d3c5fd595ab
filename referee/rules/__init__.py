"""The game of LINKO!: pure. No I/O, no clock, no randomness; the deck comes in ordered.

`game.Game` is what the rest of the project uses; `turn` is the rulebook; `table` moves the cards.
The rules come from five rulebooks. Where these are silent, the rulings R1 to R15 in
`referee/rules/README.md` decide.
"""
