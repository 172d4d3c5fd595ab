"""How strong the bots are, from the ranks of their games.

TrueSkill, free for all, for each ruleset apart. What belongs here: the settings of the rating, the
update by one game, and the state between games. Where games come from and who shows the ratings
belongs elsewhere: nothing here knows the store, a file or a clock.
"""

from referee.ratings.ratings import RankedGame, Ratings, rate
from referee.ratings.update import Rating, Settings

__all__ = ["RankedGame", "Rating", "Ratings", "Settings", "rate"]
