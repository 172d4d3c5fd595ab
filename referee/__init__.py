"""A referee for external bots that play the card game LINKO!/Abluxxen.

Nothing is imported here, so that `referee.sdk` stays light: a bot that imports it gets none of the
referee's own parts.
"""
