"""Compute the whole schedule of a tournament before its first game.

A schedule depends only on its arguments, so that anyone can compute it again.
"""
