"""Make the page of a bot, the page of its rating history, and the page of two bots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from referee.errors import NotFoundError
from referee.ratings.analysis import Analysis
from referee.records import BotId
from referee.reports.bot_rows import (
    FaultRow,
    LatencyRow,
    LogRow,
    SeatResultRow,
    log_rows,
    seat_result_rows,
)
from referee.reports.game_rows import GameRow, game_rows
from referee.reports.rating_rows import HistoryRow, RatingRow
from referee.reports.selection import GameFilter
from referee.reports.statistics import PairRow, pair_rows
from referee.roster import PERSON, look_up_bot
from referee.roster.roster import Roster
from referee.store import GameChoice, StoredBot
from referee.web.charts import history, latencies
from referee.web.tables import Table, details, tables
from referee.web.templates import Links, Page
from referee.web.views import MEASURED, STDERR_HIDDEN, LeagueViews, hide_detail

_MET = 10
"""Maximum number of games on the page of two bots."""
_EVIDENCE = 20
"""The page of a bot shows the evidence of at most this number of faults. They are the faults that were stored last."""
_QUICK = 500
"""With more games, the rating history takes more than a third of a second. Then it has a page of its own."""


def bot_page(views: LeagueViews, links: Links, bot: str) -> Page:
    """Return the page of a version of a bot.

    On a server, all figures are those of the league. In a report, ratings, results, faults and times of decisions are those of the
    tournament. But `about`, `versions` and `usage` are those of the league in a report too.

    Args:
        views: the league.
        links: the addresses of the page.
        bot: `name@version`, or a name, which means its newest version.

    Raises NotFoundError if the league has no such bot.
    """
    found = look_up_bot(views.league, bot)
    name, choice = str(found.bot), GameFilter(tournament=links.report)
    return Page(
        "bot.html",
        name,
        {
            "bot": name,
            "is_person": found.language == PERSON,
            "check": json.loads(found.check_report) if found.check_report else None,
            "build_log": _build_log(views, found),
            **_describe_versions(views, links, found),
            **_describe_results(views, links, choice, name),
            **_describe_faults(views, links, choice, name),
            **_describe_resources(views, links, choice, name),
            # last, because this starts the computation of ratings, which slows down all other threads
            **_describe_ratings(views, links, choice, name),
        },
    )


def _describe_versions(views: LeagueViews, links: Links, bot: StoredBot) -> dict[str, Any]:
    name = str(bot.bot)
    versions = [row for row in views.bots(having=name) if BotId.parse(row.bot).name == bot.name]
    (own,) = (row for row in versions if row.bot == name)
    return {
        "versions": versions,
        "about": details(replace(own, folder=Path(own.folder).name), links),
    }


def _describe_results(
    views: LeagueViews, links: Links, choice: GameFilter, bot: str
) -> dict[str, Any]:
    rows = seat_result_rows(bot, views.analyses(choice))
    return {"seats": tables(SeatResultRow, rows, links, "Results")}


def _describe_faults(
    views: LeagueViews, links: Links, choice: GameFilter, bot: str
) -> dict[str, Any]:
    faults = views.fault_counts(tournament=choice.tournament, bot=bot)
    last_faults = views.last_faults(tournament=choice.tournament, bot=bot, limit=_EVIDENCE)
    games = {each.game_id for each in last_faults}
    spoilers = {game_id for game_id in games if views.is_spoiler(game_id)}
    evidence = log_rows(last_faults[::-1])
    return {
        "faults": tables(FaultRow, faults, links, "Faults"),
        "evidence": [
            (fault_id, hide_detail(row) if row.game_id in spoilers else row)
            for fault_id, row in zip(_fault_ids(evidence), evidence, strict=True)
        ],
        "spoilers": spoilers,
        "stderr_hidden": STDERR_HIDDEN,
        "fault_count": sum(row.strikes + row.forfeits for row in faults),
    }


def _fault_ids(rows: Iterable[LogRow]) -> Iterator[str]:
    """Yield an id for each fault, so that an update of the page recognises it: its game, and its number in the game.

    Args:
        rows: the faults. Those of one game are in order from the last to the first, and are numbered in this order.
            All faults of a game are stored at once, so these numbers do not change later.
    """
    numbers: Counter[str] = Counter()
    for row in rows:
        numbers[row.game_id] += 1
        yield quote(f"fault {row.game_id} {numbers[row.game_id]}")


def _describe_resources(
    views: LeagueViews, links: Links, choice: GameFilter, bot: str
) -> dict[str, Any]:
    usage, spent = views.usage(bot), views.latencies(choice, bot)
    return {
        "usage": None if usage is None else details(usage, links),
        "latencies": tables(LatencyRow, spent, links, "Time of decisions"),
        "latency_chart": latencies(spent),
        "measured": MEASURED,
    }


def _describe_ratings(
    views: LeagueViews, links: Links, choice: GameFilter, bot: str
) -> dict[str, Any]:
    ratings = views.ratings(choice)
    is_quick = len(views.columns(choice)) <= _QUICK
    return {
        "ratings": None
        if ratings is None
        else tables(RatingRow, [row for row in ratings.rows if row.bot == bot], links, "Ratings"),
        "opponents": None if ratings is None else _opponents(ratings.analysed, links, bot),
        "history": _history(views, links, choice, bot) if is_quick else None,
    }


def _opponents(analysed: Mapping[str, Analysis], links: Links, bot: str) -> list[Table]:
    pairs = [
        row
        for ruleset, analysis in analysed.items()
        if bot in (bots := analysis.results.bots)
        for row in pair_rows(ruleset, (analysis.pair(bot, other) for other in bots if other != bot))
    ]
    to_pair = {"other": lambda other: links.pair(bot, other)}
    return tables(PairRow, pairs, links, "Opponents", data=True, addresses=to_pair)


def history_page(views: LeagueViews, links: Links, bot: str) -> Page:
    """Return the page of the rating history of a bot. Raises NotFoundError if the league has no such bot.

    If there is still no history after `views.patience_s` seconds, the page shows how far the computation is.
    """
    name, choice = str(look_up_bot(views.league, bot).bot), GameFilter(tournament=links.report)
    return Page(
        "history.html",
        f"Rating history of {name}",
        {
            "bot": name,
            "history": _history(views, links, choice, name, patience_s=views.patience_s),
            "share": views.history_share(choice),
        },
    )


def pair_page(views: LeagueViews, links: Links, bot: str, other: str) -> Page:
    """Return the page that compares two bots. Raises NotFoundError if the league lacks one of them, or if both are the same."""
    first, second = (str(look_up_bot(views.league, text).bot) for text in (bot, other))
    if first == second:
        raise NotFoundError(f"{bot} and {other} are the same bot")
    choice = GameFilter(tournament=links.report)
    games, total = views.league.find_games(
        GameChoice(tournament=links.report, bot=first, other=second), offset=0, limit=_MET
    )
    return Page(
        "pair.html",
        f"{first} against {second}",
        {
            "first": first,
            "second": second,
            "rulesets": _compare(views, links, choice, first, second),
            "games": tables(GameRow, game_rows(game.result for game in games), links, "Games"),
            "total": total,
        },
    )


def _compare(
    views: LeagueViews, links: Links, choice: GameFilter, first: str, second: str
) -> list[dict[str, Any]] | None:
    """Return the comparison of two bots in each ruleset. Return None if the ratings are still being computed."""
    ratings, judged = views.ratings(choice), views.judge(choice)
    if ratings is None or judged is None:
        return None
    sentences = {name: each.sentence() for name, each in judged.compare(first, second).items()}
    figures = {
        ruleset: analysis.pair(first, second)
        for ruleset, analysis in ratings.analysed.items()
        if {first, second} <= set(analysis.results.bots)
    }
    return [
        {
            "ruleset": ruleset,
            "sentence": f"{sentences.get(ruleset, '')} {judged.basis((ruleset,), (first, second), on_page=True)}".strip(),
            "pair": pair,
            "about": details(pair_rows(ruleset, [pair])[0], links),
        }
        for ruleset, pair in figures.items()
    ]


def _history(
    views: LeagueViews,
    links: Links,
    choice: GameFilter,
    bot: str,
    *,
    patience_s: float | None = None,
) -> list[dict[str, Any]] | None:
    """Return the name of each ruleset with a chart and a table. Return None if there is no history after `patience_s` seconds."""
    rows = views.history(choice, bot, patience_s=patience_s)
    if rows is None:
        return None
    found = []
    for ruleset in dict.fromkeys(row.ruleset for row in rows):
        own = [row for row in rows if row.ruleset == ruleset]
        table = tables(HistoryRow, own, links, "Rating history")
        found.append({"ruleset": ruleset, "chart": history(own), "tables": table})
    return found


def _build_log(views: LeagueViews, bot: StoredBot) -> str:
    """Return the output of the bot's build; empty if there is none, or if this process cannot read its file."""
    try:
        return Roster.for_reading(views.league).build_log(bot.bot)
    except OSError:
        return ""
