"""Change a stored tournament as a forger does, and make its terms and its commitment fit the change.

The terms are computed from the description in `proto/DEALS.md`, without the code of the referee. The tournament must not
have extensions.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

from referee.protocol import record as wire
from referee.roster.roster import Roster
from referee.roster.workshop import Workshop
from referee.store.league import League
from referee.tournament import archive_format
from referee.tournament.archive_writer import export_archive

TERMS = ("seed", "configuration", "bots", "schedule")
CUT = 12
"""Number of games that `cut_schedule` leaves in the tournament of `sample_league`: those of the first rounds."""


def digest_of(data):
    return sha256(data).hexdigest()


def canonical(values):
    """Return canonical JSON. Without floats such as 1.0 and strange keys, Python writes what RFC 8785 asks for."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def make_terms(digests):
    return "".join(f"{digests[name]}  {name}\n" for name in TERMS)


def read_terms(text):
    return {name: digest for digest, name in (line.split("  ") for line in text.splitlines())}


# Archives


def renew_archive(members, *, commitment=True):
    """Return the members of an archive with the terms, and perhaps the commitment, that fit the other members."""
    tournament = json.loads(members[archive_format.TOURNAMENT])
    assert tournament["extensions"] == []
    digests = read_terms(tournament["terms"])
    if tournament["seed"] is not None:
        digests["seed"] = digest_of(bytes.fromhex(tournament["seed"]))
    digests["configuration"] = digest_of(canonical(tournament["configuration"]))
    bots = [
        {
            "author": bot["manifest"]["author"],
            "bot": bot["bot"],
            "content_hash": bot["content_hash"],
        }
        for bot in json.loads(members[archive_format.BOTS])
    ]
    digests["bots"] = digest_of(canonical(bots))
    matches = tournament["planned_schedule"] or tournament["schedule"]
    digests["schedule"] = digest_of("".join(map(match_lines, matches)).encode())
    tournament["terms"] = make_terms(digests)
    if commitment:
        tournament["commitment"] = digest_of(tournament["terms"].encode())
    return members | {archive_format.TOURNAMENT: json.dumps(tournament).encode()}


def match_lines(match):
    """Return a line for each game of a match in an archive."""
    bots, lines = match["bots"], ""
    for seating, game in enumerate(match["games"]):
        place = f"{match['stage']} {match['round']} {match['lanes'][seating]}"
        seated = " ".join(bots[seating:] + bots[:seating])
        lines += f"{game} {match['deals'][seating]} {place} {seated}\n"
    return lines


# Databases


def change_config(database, change):
    """Change the stored configuration; `change` gets it as JSON values."""
    (text,) = database.execute("SELECT config FROM tournaments").fetchone()
    values = json.loads(text)
    change(values)
    database.execute("UPDATE tournaments SET config = ?", (canonical(values).decode(),))


def renew_database(database, *, commitment=True):
    """Store the terms, and perhaps the commitment, that fit the other tables.

    If the tournament has stopped early, the digest of the schedule stays.
    """
    row = "SELECT config, seed, terms, stopped_after FROM tournaments"
    text, seed, terms, stopped_after = database.execute(row).fetchone()
    config, digests = json.loads(text), read_terms(terms)
    digests["seed"] = digest_of(seed)
    digests["configuration"] = digest_of(canonical(config))
    rows = database.execute("SELECT name || '@' || version, content_hash, author FROM bots")
    bots = {bot: (content_hash, author) for bot, content_hash, author in rows}
    committed = [
        {"author": bots[bot][1], "bot": bot, "content_hash": bots[bot][0]}
        for bot in (entry["text"] for entry in config["bots"])
    ]
    digests["bots"] = digest_of(canonical(committed))
    if stopped_after is None:
        digests["schedule"] = digest_of("".join(schedule_lines(database)).encode())
    database.execute("UPDATE tournaments SET terms = ?", (make_terms(digests),))
    if commitment:
        new = digest_of(make_terms(digests).encode())
        database.execute("UPDATE tournaments SET commitment = ?", (new,))


def schedule_lines(database):
    """Return a line for each game of the database."""
    tables = {}
    for match, bot in database.execute(
        "SELECT match_id, name || '@' || version FROM match_bots JOIN bots ON bots.id = bot_id"
        " ORDER BY match_id, place"
    ).fetchall():
        tables.setdefault(match, []).append(bot)
    lines = []
    for match, seating, *values in database.execute(
        "SELECT matches.id, seating, name, coalesce(matches.deal_id, games.deal_id), stage, round, lane FROM games"
        " JOIN matches ON matches.id = match_id ORDER BY position"
    ):
        bots = tables[match]
        lines.append(" ".join(map(str, [*values, *bots[seating:], *bots[:seating]])) + "\n")
    return lines


# Changes of a database that fit each other


def cut_schedule(database):
    """Leave the second round out: its games, and the wish for it in the configuration."""
    for table in ("faults", "seats", "records", "results"):
        database.execute(f"DELETE FROM {table} WHERE game_id > ?", (CUT,))  # noqa: S608
    database.execute("DELETE FROM games WHERE id > ?", (CUT,))
    for table, key in (("match_bots", "match_id"), ("matches", "id")):
        unused = f"DELETE FROM {table} WHERE {key} NOT IN (SELECT match_id FROM games)"  # noqa: S608
        database.execute(unused)
    change_config(database, lambda config: config["stages"][0].update(matches=1))


def exchange_bots(database):
    """Exchange the first two bots in the configuration, in the schedule, in all records and in all results."""
    others = {"greedy@1.0": "random@1.0", "random@1.0": "greedy@1.0"}
    for table in ("match_bots", "seats"):
        database.execute(f"UPDATE {table} SET bot_id = 3 - bot_id WHERE bot_id < 3")  # noqa: S608
    for key, kept in database.execute("SELECT game_id, record FROM records").fetchall():
        record = wire.loads(zlib.decompress(kept))
        bots = {str(bot): bot for bot in record.seating}
        named = {
            name: replace(bots[name], name=others[name].split("@")[0])
            for name in bots.keys() & others
        }
        record = replace(record, seating=tuple(named.get(str(bot), bot) for bot in record.seating))
        changed = zlib.compress(wire.dumps(record))
        database.execute("UPDATE records SET record = ? WHERE game_id = ?", (changed, key))

    def swap(config):
        first, second, *rest = config["bots"]
        config["bots"] = [second, first, *rest]

    change_config(database, swap)


def add_until(database):
    """Let the tournament stop early, under a condition that its games do not reach."""
    until = {"confidence": 0.9999, "margin": 0.5}
    change_config(database, lambda config: config.update(until=until))


def change_author(database):
    database.execute("UPDATE bots SET author = 'Eve' WHERE name = 'greedy'")


def change_content_hash(database):
    database.execute("UPDATE bots SET content_hash = ? WHERE name = 'greedy'", ("0" * 64,))


# Forgeries


def forge(folder, change, *, terms=False, commitment=False):
    """Change a database, and perhaps make the terms and the commitment fit."""
    with closing(sqlite3.connect(folder / "league.db")) as database, database:
        change(database)
        if terms:
            renew_database(database, commitment=commitment)


def export(folder):
    """Return the members of the archive of the tournament."""
    with closing(League.open(folder, create=False)) as league:
        workshop = Workshop(league.folder, None, on_build=None)
        data = export_archive(league, Roster(league, workshop), "cup").data
    members = archive_format.unpack(folder / "cup.zip", data)
    return {name: members[name] for name in archive_format.MEMBERS}


def put(members, name, *path, value):
    """Put a value at the end of a path of keys of a JSON member."""
    values = place = json.loads(members[name])
    *way, last = path
    for key in way:
        place = place[key]
    place[last] = value
    return members | {name: json.dumps(values).encode()}


IN_ARCHIVES = {
    change_author: lambda members: put(
        members, archive_format.BOTS, 0, "manifest", "author", value="Eve"
    ),
    change_content_hash: lambda members: put(
        members, archive_format.BOTS, 0, "content_hash", value="0" * 64
    ),
}
"""Changes for which the archive is changed itself, because the bot's copy in the league does not change."""


def forge_archive(folder, change, *, terms=False, commitment=False):
    """Return the members of a forged archive."""
    if change not in IN_ARCHIVES:
        forge(folder, change, terms=terms, commitment=commitment)
        return export(folder)
    members = IN_ARCHIVES[change](export(folder))
    return renew_archive(members, commitment=commitment) if terms else members
