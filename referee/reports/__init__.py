"""What people and programs get to see: rows first, then tables, JSON and CSV made of them.

Rows are frozen values, made by pure functions from results, ratings, faults and records
(`standings`, `ratings`, `effects`, `faults`, `games`, `tournaments`, `plan`, `usage`). One mechanism shows them all (`columns`, with
`terminal` and `data` on top of it). A game itself is told as a playthrough or written as JSON
(`playthrough`, `record_json`). Nothing here reads the store or prints; the README beside this file
describes the data.
"""

from referee.reports.bots import BotRow, LogRow, bot_rows, log_rows, log_text
from referee.reports.crosstable import crosstable
from referee.reports.data import csv_text, json_text
from referee.reports.effects import (
    CompanyRow,
    LuckRow,
    SeatWorthRow,
    company_rows,
    luck_rows,
    seat_worth_rows,
)
from referee.reports.faults import FaultRow, fault_rows
from referee.reports.games import (
    ChargeRow,
    GameHead,
    GameRow,
    SeatRow,
    charge_rows,
    game_head,
    game_rows,
    seat_rows,
)
from referee.reports.inputs import ChargedFault, FinishedGame, PlannedGame
from referee.reports.isolation import ProtectionRow, RefusalRow
from referee.reports.plan import GameKind, PlanRow, game_times, plan_rows
from referee.reports.playthrough import Narrator, playthrough
from referee.reports.plot import plot
from referee.reports.ratings import (
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
from referee.reports.record_json import action_json, record_json
from referee.reports.show import visible
from referee.reports.standings import StandingRow, Tally
from referee.reports.table_view import table_view
from referee.reports.terminal import RowsTable, card, stderr_tails
from referee.reports.tournaments import StatusRow, TournamentRow, status_rows, tournament_row
from referee.reports.usage import UsageRow, usage_row

__all__ = [
    "BotRow",
    "ChargeRow",
    "ChargedFault",
    "CompanyRow",
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
    "company_rows",
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
