"""The bots of a league: their versions, and copies of their files that can be played."""
