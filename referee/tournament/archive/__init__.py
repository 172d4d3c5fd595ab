"""A tournament in one file, for who has no league: exported from one, checked without it.

A zip of five parts, none of them compressed by the zip:

    tournament.json   format, name, configuration, schedule, commitment; the seed once it is finished; the same of extensions
    bots.json         who played: name and version, SHA-256 of the content, manifest
    records.binpb.gz  the games played so far, in the order of the schedule (`record_stream`)
    ratings.json      what these games make of the bots
    SHA256SUMS        of the other parts

`layout` says what is in them, `zipped` how they are packed. The same state of a league makes the same
bytes.
"""

from referee.tournament.archive.archived import ArchivedTournament
from referee.tournament.archive.export import export

__all__ = ["ArchivedTournament", "export"]
