"""Compute how strong the bots are, and how certain that is, from the results of their games."""
