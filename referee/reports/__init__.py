"""What people and programs get to see: rows first, then tables, JSON and CSV made of them.

Rows are frozen values, made by pure functions from results, ratings, faults and records
(`standings`, `ratings`, `effects`, `faults`, `games`, `tournaments`, `plan`, `usage`). One mechanism shows them all (`columns`, with
`terminal` and `data` on top of it). A game itself is told as a playthrough or written as JSON
(`playthrough`, `record_json`). Nothing here reads the store or prints; the README beside this file
describes the data.
"""

from referee.reports.bot_rows import (
    BotRow,
    LogRow,
    UsageRow,
    bot_rows,
    log_rows,
    log_text,
    usage_row,
)
from referee.reports.checks import ProtectionRow, RefusalRow
from referee.reports.formats import csv_text, json_text, visible
from referee.reports.game_rows import (
    ChargeRow,
    GameHead,
    GameRow,
    SeatRow,
    action_json,
    charge_rows,
    game_head,
    game_rows,
    record_json,
    seat_rows,
)
from referee.reports.inputs import ChargedFault, FinishedGame, PlannedGame
from referee.reports.playthrough import Narrator, playthrough, table_view
from referee.reports.rating_rows import (
    HistoryRow,
    NeighbourRow,
    PairRow,
    RatingRow,
    comparison,
    history_rows,
    neighbour_rows,
    pair_rows,
    rating_rows,
)
from referee.reports.standings import StandingRow, Tally
from referee.reports.statistics import (
    CollusionRow,
    FaultRow,
    LuckRow,
    SeatWorthRow,
    collusion_rows,
    crosstable,
    fault_rows,
    luck_rows,
    seat_worth_rows,
)
from referee.reports.terminal import RowsTable, card, plot, stderr_tails
from referee.reports.tournament_rows import (
    GameKind,
    PlanRow,
    StatusRow,
    TournamentRow,
    game_times,
    plan_rows,
    status_rows,
    tournament_row,
)

__all__ = [
    "BotRow",
    "ChargeRow",
    "ChargedFault",
    "CollusionRow",
    "FaultRow",
    "FinishedGame",
    "GameHead",
    "GameKind",
    "GameRow",
    "HistoryRow",
    "LogRow",
    "LuckRow",
    "Narrator",
    "NeighbourRow",
    "PairRow",
    "PlanRow",
    "PlannedGame",
    "ProtectionRow",
    "RatingRow",
    "RefusalRow",
    "RowsTable",
    "SeatRow",
    "SeatWorthRow",
    "StandingRow",
    "StatusRow",
    "Tally",
    "TournamentRow",
    "UsageRow",
    "action_json",
    "bot_rows",
    "card",
    "charge_rows",
    "collusion_rows",
    "comparison",
    "crosstable",
    "csv_text",
    "fault_rows",
    "game_head",
    "game_rows",
    "game_times",
    "history_rows",
    "json_text",
    "log_rows",
    "log_text",
    "luck_rows",
    "neighbour_rows",
    "pair_rows",
    "plan_rows",
    "playthrough",
    "plot",
    "rating_rows",
    "record_json",
    "seat_rows",
    "seat_worth_rows",
    "status_rows",
    "stderr_tails",
    "table_view",
    "tournament_row",
    "usage_row",
    "visible",
]
