"""Offer the game as environments for training: PettingZoo, Gymnasium and OpenSpiel.

The rules, the seats and the seeds are those of the referee. `referee.sdk.env` has the numbers of actions and
observations, and lets a trained policy play for the referee. The libraries are in the extra `linko-referee[train]`.
Each module imports only the libraries of its own environment, and this module imports none.
"""
