"""`referee tournament compare` and `referee bots challenge`: create a tournament without a tournament file, and play it.

`tournament compare` plays matches between two bots until one is surely better, or both are surely equal. `bots challenge` plays
a gauntlet of one bot against the other current bots of the league, to rate it.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from referee import toml_file
from referee.bots.manifest import load_manifest
from referee.cli.cluster import (
    AuthorityOption,
    CertificateOption,
    ClusterOption,
    KeyOption,
)
from referee.cli.isolation import (
    NewTournamentIsolationOption,
    RequireOption,
    roster_of,
)
from referee.cli.options import (
    DEFAULT_LEAGUE,
    NOT_KNOWN,
    DbOption,
    FinalJsonOption,
    LeagueOption,
    LogsOption,
    MessagesOption,
    PlayedRulesetOption,
    PlayedSeatsOption,
    notes,
)
from referee.cli.playing import (
    choose_settings,
    league_options,
    open_new_tournament,
    play_to_end,
    submit_command,
)
from referee.cli.tournament import BOTS_TO_COMPARE
from referee.errors import UserError
from referee.ratings.stopping import CONFIDENCE, MARGIN, MAX_CONFIDENCE, MAX_MARGIN, MIN_CONFIDENCE
from referee.records import BotId
from referee.roster import find_bot
from referee.roster.roster import SAMPLE_BOTS
from referee.rules.ruleset import RULESETS
from referee.sandbox import DEFAULT_LIMITS
from referee.store.league import League
from referee.tournament.config import BotEntry, TournamentConfig
from referee.tournament.config_file import MAX_GAMES, TournamentFile
from referee.tournament.config_reader import make_config

app = typer.Typer()

MAX_COMPARED_GAMES = 2000
"""The default of `--max-games`. `tests/bench/bench_compare.py` measures how often a verdict is known after at most this many games."""
_COMMAND = Path("tournament compare")
"""Used instead of the path of a tournament file, in messages and in the stored configuration."""
CHALLENGE_GAMES = 400
"""The default of `--budget` in `bots challenge`."""
_CHALLENGE = Path("bots challenge")
"""Used instead of the path of a tournament file, in messages and in the stored configuration."""
_NAME_LENGTH = 14
"""Names of bots are cut to this length in the name of the tournament. With `-vs-`, two names make 32 characters, the maximum."""
_CHALLENGER_LENGTH = 22
"""The name of the challenger is cut to this length in the name of the tournament. With `-challenge`, it makes 32 characters."""


@app.command()
def compare(
    ctx: typer.Context,
    bot: Annotated[
        str,
        typer.Argument(
            help="A bot: the path of its folder, with a slash (./my_bot), or a bot of the league: NAME (its newest version) or NAME@VERSION."
        ),
    ],
    other: Annotated[str, typer.Argument(help="The bot to compare BOT with.")],
    ruleset: PlayedRulesetOption = "basic",
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            min=MIN_CONFIDENCE,
            max=MAX_CONFIDENCE,
            help="The probability that the verdict is right.",
        ),
    ] = CONFIDENCE,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            min=0,
            max=MAX_MARGIN,
            help="The bots count as equal if their skills (the column fit of `referee ratings`) surely differ by less than this. With 0 they never count as equal.",
        ),
    ] = MARGIN,
    max_games: Annotated[
        int,
        typer.Option(
            "--max-games",
            min=2 * BOTS_TO_COMPARE,
            max=MAX_GAMES,
            help="The maximum number of games. If they bring no verdict, the command says so. A match has two games, so an odd number is rounded down.",
        ),
    ] = MAX_COMPARED_GAMES,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: NewTournamentIsolationOption = None,
    require: RequireOption = None,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
    as_json: FinalJsonOption = False,
) -> None:
    """Play matches between two bots until it is known whether one is better or both are equal.

    The command plays a tournament that stops early (key `until`), and stores it in the league under a name such as `greedy-vs-bait`. After Ctrl-C,
    `referee tournament resume` continues it. The last line is the verdict. The exit code is 0 if there is a verdict, and 1 if
    there is none after the last game.

    Example: referee tournament compare ./my_bot sample_bots/greedy --ruleset duel
    """
    config = _make_config((bot, other), ruleset, confidence, margin, max_games)
    settings = choose_settings(
        cluster, tls_ca, tls_cert, tls_key, logs, messages=messages, as_json=as_json
    )
    with open_new_tournament(
        ctx,
        config,
        league,
        db,
        isolation=isolation,
        require=require,
        settings=settings,
    ) as (store, tournament, under, interrupts):
        is_known = play_to_end(store, tournament, under, interrupts, settings)
    if not is_known:
        raise typer.Exit(NOT_KNOWN)


def _make_config(
    bots: tuple[str, str], ruleset: str, confidence: float, margin: float, max_games: int
) -> TournamentConfig:
    """Return the configuration of the tournament. Raises UserError if a value or a bot is wrong."""
    content = {
        "name": "compare",
        "bots": bots,
        "ruleset": ruleset,
        "seats": BOTS_TO_COMPARE,
        "matches": max_games // BOTS_TO_COMPARE,
        "until": {"confidence": confidence, "margin": margin},
    }
    file = toml_file.check(content, TournamentFile, _COMMAND)
    config = make_config(_COMMAND, file, bot_keys=("BOT", "OTHER"))
    name = "-vs-".join(_find_name(entry)[:_NAME_LENGTH] for entry in config.bots)
    return replace(config, name=name, file=_COMMAND)


def _find_name(entry: BotEntry) -> str:
    """Return the name of a bot. Raises UserError if the manifest in its folder is missing or wrong."""
    if entry.folder is None:
        return BotId.parse(entry.text).name
    return load_manifest(entry.folder).name


@app.command()
def challenge(
    ctx: typer.Context,
    bot: Annotated[
        str, typer.Argument(help="A bot of the league: NAME (its newest version) or NAME@VERSION.")
    ],
    ruleset: PlayedRulesetOption = "basic",
    seats: PlayedSeatsOption = 2,
    budget: Annotated[
        int, typer.Option("--budget", metavar="GAMES", help="The maximum number of games.")
    ] = CHALLENGE_GAMES,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: NewTournamentIsolationOption = None,
    require: RequireOption = None,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    logs: LogsOption = None,
    messages: MessagesOption = False,
    as_json: FinalJsonOption = False,
) -> None:
    """Rate a bot: play a gauntlet of it against the other current bots of the league.

    The field consists of the other bots, each with its newest version that is not retired. A bot is left out, with a
    message, if this version does not play the ruleset or asks for more than the default limits. The gauntlet is a
    tournament, stored in the league under a name such as `my_bot-challenge`. After Ctrl-C, `referee tournament resume`
    continues it.

    Example: referee bots challenge my_bot --ruleset duel
    """
    if "/" in bot:
        raise UserError(
            f"BOT: {bot!r} is a folder; to add it to the league: {submit_command(bot, league, db)}"
        )
    with League.open(league, create=False, db=db) as store:
        challenger = find_bot(store, bot).bot
        field = find_field(store, ruleset, challenger)
    if not field.bots:
        raise UserError(
            f"{store.where}: no other bot can play against {challenger}; to add one, such as a sample bot:"
            f" {submit_command(SAMPLE_BOTS / 'greedy', store.folder, store.db)}",
            *field.left_out,
        )
    for other in field.left_out:
        notes.print(other, soft_wrap=True)
    config = _make_gauntlet(challenger, field.bots, ruleset, seats, budget)
    settings = choose_settings(
        cluster, tls_ca, tls_cert, tls_key, logs, messages=messages, as_json=as_json
    )
    with open_new_tournament(
        ctx,
        config,
        league,
        db,
        isolation=isolation,
        require=require,
        settings=settings,
    ) as (store, tournament, under, interrupts):
        play_to_end(store, tournament, under, interrupts, settings)
        options = league_options(store.folder, store.db)
        again = shlex.join(["referee", "ratings", "--ruleset", ruleset, *options])
        settings.out.print(f"To see the bot among all bots of the league: {again}", soft_wrap=True)


class Field(NamedTuple):
    """The current bots of a league: those that can play a ruleset within the default limits, and those that cannot."""

    bots: tuple[str, ...]
    """`name@version` of each."""
    left_out: tuple[str, ...]
    """A sentence about each current bot that cannot play, with the reason."""


def find_field(store: League, ruleset: str, challenger: BotId | None = None) -> Field:
    """Return which current bots can play a ruleset within the default limits, and which cannot. Skip all versions of the challenger.

    The current version of a bot is its newest one that is not retired. If the ruleset is unknown, only the limits decide.
    Raises UserError if the league's copy of a bot is gone.
    """
    active = {row.name: row for row in store.bots() if row.retired_at_us is None}
    roster = roster_of(store)
    bots, left_out = [], []
    for row in active.values():
        if challenger is not None and row.name == challenger.name:
            continue
        manifest = roster.manifest(row.bot)
        limits = manifest.limits.explicit.items()
        if ruleset in RULESETS and ruleset not in manifest.rulesets:
            left_out.append(f"{row.bot} is left out: it does not play {ruleset}.")
        elif any(wanted > getattr(DEFAULT_LIMITS, key) for key, wanted in limits):
            left_out.append(f"{row.bot} is left out: it asks for more than the default limits.")
        else:
            bots.append(str(row.bot))
    return Field(tuple(bots), tuple(left_out))


def _make_gauntlet(
    challenger: BotId, field: tuple[str, ...], ruleset: str, seats: int, budget: int
) -> TournamentConfig:
    """Return the configuration of the tournament. Raises UserError if a value is wrong."""
    content = {
        "name": f"{challenger.name[:_CHALLENGER_LENGTH]}-challenge",
        "format": "gauntlet",
        "challengers": (str(challenger),),
        "bots": field,
        "ruleset": ruleset,
        "seats": seats,
        "budget": budget,
    }
    config = make_config(_CHALLENGE, toml_file.check(content, TournamentFile, _CHALLENGE))
    return replace(config, file=_CHALLENGE)
