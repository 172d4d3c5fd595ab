"""`referee play`: one game between bots, without a tournament."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from referee import deals
from referee.bots import ProcessGroupLauncher
from referee.bots.manifest import BotSpec, load_bot
from referee.cli.game import show_record
from referee.cli.options import DEFAULT_LEAGUE, JsonOption, LeagueOption
from referee.cli.output import console, write
from referee.clocks import Clocks
from referee.errors import UserError
from referee.match import Fixture
from referee.match.play import Watcher
from referee.records import GameRecord
from referee.reports import Narrator, json_text, record_json
from referee.rules.ruleset import RULESETS, Ruleset
from referee.store import League
from referee.tournament.conduct import bot_row, league_bot
from referee.tournament.orders import Assignment, GameOrder, WorkerSettings
from referee.tournament.run_folder import run_folder
from referee.tournament.worker import GamePlayer

MAX_STRIKES = 3


def play(
    bots: Annotated[
        list[str], typer.Argument(help="Bot folders, or names of bots in the league; seat 0 first.")
    ],
    ruleset: Annotated[str, typer.Option("--ruleset", help=f"{', '.join(RULESETS)}.")] = "basic",
    seed: Annotated[
        str | None,
        typer.Option("--seed", help="Any text; the same text deals the same cards."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Tell what happens as it does.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Store the game in the league.")] = False,
    league: LeagueOption = DEFAULT_LEAGUE,
    as_json: JsonOption = False,
) -> None:
    """Play one game between bots; the first one starts.

    Example: referee play sample_bots/greedy sample_bots/random --ruleset duel --watch
    """
    if watch and as_json:
        raise UserError("--watch, --json: choose one of them")
    rules = _rules(ruleset, len(bots))
    text = secrets.token_hex(8) if seed is None else seed
    specs = [_spec(bot, league) for bot in bots]
    order = _order(specs, rules, text)
    watcher = _watcher(specs) if watch else None
    with League.open(league, create=True) if keep else nullcontext() as store:
        record = uvloop.run(_play(order, watcher))
        if store is not None:
            _keep(record, specs, store)
    if as_json:
        write(json_text(record_json(record)))
        return
    show_record(record)
    console.print(f"To deal the same cards: --seed {text}", soft_wrap=True)


def _rules(name: str, players: int) -> Ruleset:
    rules = RULESETS.get(name)
    if rules is None:
        raise UserError(f"--ruleset: unknown ruleset {name!r}; there are {', '.join(RULESETS)}")
    if not rules.min_players <= players <= rules.max_players:
        raise UserError(
            f"BOTS: {name} is for {rules.min_players} to {rules.max_players} players, not {players}"
        )
    return rules


def _spec(bot: str, league: Path) -> BotSpec:
    folder = Path(bot)
    if folder.is_dir() or "/" in bot or bot.startswith("."):
        return load_bot(folder)
    if League.is_at(league):
        with League.open(league, create=False) as store:
            return league_bot(store, bot)
    raise UserError(f"BOTS: {bot!r} is neither a folder nor a bot of the league {league}")


def _order(specs: list[BotSpec], rules: Ruleset, text: str) -> GameOrder:
    seed = hashlib.sha256(text.encode()).digest()
    game_id = f"play-{hashlib.sha256(seed).hexdigest()[:6]}-{secrets.token_hex(3)}"
    names = [spec.bot.name for spec in specs]
    twins = {name for name in names if names.count(name) > 1}
    if twins:
        raise UserError(f"BOTS: {', '.join(sorted(twins))} is there twice")
    return GameOrder(
        fixture=Fixture(
            game_id=game_id,
            ruleset=rules,
            seating=tuple(spec.bot for spec in specs),
            deck=deals.deck(seed, "play", rules),
            clocks=Clocks(),
            max_strikes=MAX_STRIKES,
            isolation=ProcessGroupLauncher.rung,
        ),
        bots=tuple(specs),
        opaque_id=deals.opaque_id(seed, "play"),
        seeds=tuple(deals.bot_seed(seed, "play", seat) for seat in range(len(specs))),
        names=(),
        suspended=frozenset(),
    )


async def _play(order: GameOrder, watch: Watcher | None) -> GameRecord:
    with run_folder() as folder:
        player = GamePlayer(
            WorkerSettings(
                cores=frozenset(),
                clocks=order.fixture.clocks,
                max_processes=len(order.bots),
                folder=folder,
                parent_pid=os.getpid(),
            )
        )
        try:
            report = await player.play(Assignment(0, (order,)), watch)
        finally:
            await player.close()
    return report.records[0]


def _watcher(specs: list[BotSpec]) -> Watcher:
    narrator = Narrator([spec.bot.name for spec in specs])
    return lambda event: console.print(narrator.line(event))


def _keep(record: GameRecord, specs: list[BotSpec], store: League) -> None:
    for spec in specs:
        store.add_bot(bot_row(spec.folder))
    store.add_game(record)
