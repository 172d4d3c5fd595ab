"""`referee ladder run`: play the matches that tell most about the order of the league's bots."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from referee import toml_file
from referee.cli.cluster import (
    AuthorityOption,
    CertificateOption,
    ClusterOption,
    KeyOption,
)
from referee.cli.compare import find_field
from referee.cli.isolation import NewTournamentIsolationOption, RequireOption
from referee.cli.options import (
    DEFAULT_LEAGUE,
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
from referee.errors import UserError
from referee.reports.selection import GameFilter
from referee.roster.roster import SAMPLE_BOTS
from referee.schedule.extension import LADDER
from referee.store.league import League
from referee.tournament.config import LadderStart, TournamentConfig
from referee.tournament.config_file import MAX_GAMES, TournamentFile
from referee.tournament.config_reader import make_config

app = typer.Typer()

LADDER_MINUTES = 10.0
"""The default of `--minutes`."""
LADDER_GAMES = 2000
"""The default of `--games`."""
_LADDER = Path("ladder run")
"""Replaces the tournament file in messages and in the stored configuration."""


@app.command()
def run(
    ctx: typer.Context,
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes",
            metavar="N",
            help="After N minutes, choose no further matches; those that are chosen are played to the end.",
        ),
    ] = LADDER_MINUTES,
    ruleset: PlayedRulesetOption = "basic",
    seats: PlayedSeatsOption = 2,
    games: Annotated[
        int,
        typer.Option(
            "--games", metavar="N", help="The maximum number of games.", min=1, max=MAX_GAMES
        ),
    ] = LADDER_GAMES,
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
    """Play, for some minutes, the matches that tell most about the order of the league's bots.

    Of each bot, the newest version that is not retired takes part. It is left out, with a message, if it does not play
    the ruleset or asks for more than the default limits. New bots play first, then bots that are near each other
    in the order. Earlier games of the league count. The matches are a tournament, stored in the league under a name such as
    `ladder-duel`. After Ctrl-C, `referee tournament resume` continues it.

    Example: referee ladder run --ruleset duel --minutes 5
    """
    with League.open(league, create=False, db=db) as store:
        field = find_field(store, ruleset)
        for other in field.left_out:
            notes.print(other, soft_wrap=True)
        config = make_ladder(store, field.bots, ruleset, seats, games, minutes)
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


def make_ladder(
    store: League, bots: tuple[str, ...], ruleset: str, seats: int, games: int, minutes: float
) -> TournamentConfig:
    """Return the configuration of a ladder.

    Args:
        store: the league, whose earlier games the ladder starts with.
        bots: `name@version` of each bot.
        ruleset: the name of the ruleset.
        seats: the number of seats of a table.
        games: the maximum number of games.
        minutes: see `LadderStart.minutes`.

    Raises UserError if a value is wrong, or if there are too few or too many bots.
    """
    from referee.ratings.information import PairSums  # noqa: PLC0415 - numpy loads slowly

    if not 0 < minutes < math.inf:
        raise UserError("--minutes: it must be a number above 0")
    content = {
        "name": "ladder",  # name and budget, which the user did not give, are replaced below
        "bots": bots,
        "ruleset": ruleset,
        "seats": seats,
        "budget": min(max(1, seats * len(bots)), MAX_GAMES),
    }
    file = toml_file.check(content, TournamentFile, _LADDER)
    _check_number(store, len(bots), ruleset)
    config = make_config(_LADDER, file)
    if games < seats:
        raise UserError(
            f"--games: {games} is not enough; a match at a table of {seats} has {seats} games"
        )
    played = GameFilter(ruleset=ruleset).columns(store).by_ruleset().get(ruleset)
    earlier = () if played is None else PairSums.from_results(bots, played).list_meetings()
    stage = replace(config.stages[0], balanced=True, matches=games // seats)
    return replace(
        config,
        file=_LADDER,
        name=f"ladder-{ruleset}",
        budget=None,
        stages=(stage,),
        schedule=LADDER,
        ladder=LadderStart(earlier=earlier, minutes=minutes),
    )


def _check_number(store: League, bots: int, ruleset: str) -> None:
    """Raise UserError if a ladder cannot have this number of bots."""
    from referee.tournament.ladder import MAX_LADDER_BOTS  # noqa: PLC0415 - numpy loads slowly

    if bots < 2:  # noqa: PLR2004 - a match
        raise UserError(
            f"{store.where}: a ladder needs at least two bots that play {ruleset}, and has {bots};"
            f" to add one, such as a sample bot: {submit_command(SAMPLE_BOTS / 'greedy', store.folder, store.db)}"
        )
    if bots > MAX_LADDER_BOTS:
        options = league_options(store.folder, store.db)
        raise UserError(
            f"{store.where}: a ladder has at most {MAX_LADDER_BOTS} bots, and {bots} play {ruleset};"
            f" to take some out: referee bots retire NAME {shlex.join(options)}"
        )
