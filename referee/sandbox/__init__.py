"""Run one untrusted program: start it isolated, limit and measure it, and end everything that it started.

`ladder` finds the strongest isolation that the machine gives and creates the launcher for it. README.md describes
the rungs of the ladder. This package knows no gRPC, no bot and no rule of the game.
"""
