"""The isolation that this machine gives, probed once in a process."""

import asyncio
from functools import cache

from referee.bots.isolation import settle


@cache
def strongest():
    return asyncio.run(settle())
