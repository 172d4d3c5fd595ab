"""`referee tournament compare`: play matches between two bots until one is surely better, or both are surely equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from referee import toml_file
from referee.bots.manifest import load_manifest
from referee.cli.cluster import (
    AuthorityOption,
    CertificateOption,
    ClusterOption,
    KeyOption,
    choose_cluster,
)
from referee.cli.isolation import NetworkOption, NewTournamentIsolationOption, RequireOption
from referee.cli.options import DEFAULT_LEAGUE, NOT_KNOWN, DbOption, LeagueOption
from referee.cli.run import open_new_tournament, play_to_end
from referee.cli.tournament import BOTS_TO_COMPARE, announce_verdict
from referee.ratings.stopping import CONFIDENCE, MARGIN, MAX_CONFIDENCE, MAX_MARGIN, MIN_CONFIDENCE
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.tournament.config import BotEntry, TournamentConfig
from referee.tournament.config_file import MAX_GAMES, TournamentFile
from referee.tournament.config_reader import make_config

app = typer.Typer()

MAX_COMPARED_GAMES = 2000
"""The default of `--max-games`. `tests/bench/bench_compare.py` measures how often a verdict is known by then."""
_COMMAND = Path("tournament compare")
"""Stands for the tournament file in messages."""
_NAME_LENGTH = 14
"""Two names of bots of this length and `-vs-` make 32 characters, the most that the name of a tournament may have."""


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
    ruleset: Annotated[
        str, typer.Option("--ruleset", help=f"One of {', '.join(RULESETS)}.")
    ] = "basic",
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
            help="The bots are equal if their fits surely differ by less than this.",
        ),
    ] = MARGIN,
    max_games: Annotated[
        int,
        typer.Option(
            "--max-games",
            min=2 * BOTS_TO_COMPARE,
            max=MAX_GAMES,
            help="Give up after this number of games.",
        ),
    ] = MAX_COMPARED_GAMES,
    league: LeagueOption = DEFAULT_LEAGUE,
    db: DbOption = None,
    isolation: NewTournamentIsolationOption = None,
    require: RequireOption = None,
    network: NetworkOption = False,
    cluster: ClusterOption = None,
    tls_ca: AuthorityOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
) -> None:
    """Play matches between two bots until it is known whether one is better or both are equal.

    The command plays a tournament that stops early (key `until`), and stores it in the league under a name such as `greedy-vs-bait`. After Ctrl-C,
    `referee tournament resume` continues it. The last line is the verdict. The exit code is 0 if there is a verdict, and 1 if
    there is none after the last game.

    Example: referee tournament compare ./my_bot sample_bots/greedy --ruleset duel
    """
    place = choose_cluster(cluster, tls_ca, tls_cert, tls_key)
    config = _make_config((bot, other), ruleset, confidence, margin, max_games)
    with open_new_tournament(
        ctx,
        config,
        league,
        db,
        isolation=isolation,
        require=require,
        network=network,
        place=place,
    ) as (store, tournament, under, interrupts):
        play_to_end(store, tournament, under, interrupts, place)
        is_known = announce_verdict(store, tournament.name)
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
    config = make_config(_COMMAND, toml_file.check(content, TournamentFile, _COMMAND))
    name = "-vs-".join(_find_name(entry)[:_NAME_LENGTH] for entry in config.bots)
    return replace(config, name=name, file=_COMMAND)


def _find_name(entry: BotEntry) -> str:
    """Return the name of a bot. Raises UserError if the manifest in its folder is missing or wrong."""
    if entry.folder is None:
        return BotId.parse(entry.text).name
    return load_manifest(entry.folder).name
