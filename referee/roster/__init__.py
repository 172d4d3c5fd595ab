"""Manage the bots of a league: their versions, and the copies of their files that can be played."""
