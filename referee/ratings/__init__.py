"""How strong the bots are, from the ranks of their games.

TrueSkill, free for all, for each ruleset apart: the settings of the rating, the update by one game, and
the state between games. How sure the ratings are, and everything else that can be learned from many
games at once, is in `analysis` and `effects`; these need numpy and scipy, which take a while to load,
and are imported where they are used. Where games come from and who shows the ratings belongs elsewhere:
nothing here knows the store, a file or a clock.
"""

from referee.ratings.trueskill import Point, Rating, Ratings, Settings, history, rate

__all__ = ["Point", "Rating", "Ratings", "Settings", "history", "rate"]
