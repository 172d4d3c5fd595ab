import json
from dataclasses import replace
from pathlib import Path

import pytest

from referee.bots.limits import Limits
from referee.clocks import Clocks
from referee.errors import UserError
from referee.ratings.until import Until
from referee.rules.ruleset import RULESETS, EndOn
from referee.schedule import Stage, balanced, round_robin
from referee.tournament.budget import Budget, Unit
from referee.tournament.config import (
    BotEntry,
    FaultPolicy,
    TournamentConfig,
    canonical_json,
    from_canonical_json,
)
from referee.tournament.entries import check_bots
from referee.tournament.reading import load_tournament

TOURNAMENTS = Path(__file__).parents[2] / "tournaments"
FIRST = Path(__file__).parent / "golden" / "config-1.json"
GAUNTLETS = FIRST.with_name("config-2-gauntlet.json")
BASIC = RULESETS["basic"]
HEAD = 'name = "cup"\n'
BOTS = 'bots = ["./ann", "./bob", "./cy", "./dee"]\n'
GOOD = HEAD + BOTS + 'ruleset = "basic"\nseats = 3\nmatches = 2\n'


GAUNTLET = GOOD.replace(', "./dee"]', "]") + 'format = "gauntlet"\nchallengers = ["./dee", "zoe"]\n'


class FakePace:
    """What games last, in microseconds, by ruleset and seats."""

    def __init__(self, known, cores=1):
        self.cores = cores
        self._known = known

    def game_us(self, ruleset, seats):
        return self._known.get((ruleset, seats))


@pytest.fixture
def folder(tmp_path):
    """A folder with some bots."""
    for name in ("ann", "bob", "cy", "dee"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bot.toml").write_text(
            f'name = "{name}"\nversion = "1"\nauthor = "x"\nlanguage = "python"\n'
            '[run]\ncommand = ["./bot"]\n'
        )
    return tmp_path


def write(folder, text):
    path = folder / "cup.toml"
    path.write_text(text)
    return path


def error_of(folder, text):
    with pytest.raises(UserError) as caught:
        load_tournament(write(folder, text))
    return str(caught.value)


def test_the_common_case(folder):
    config = load_tournament(write(folder, GOOD))
    assert config.name == "cup"
    assert config.stages == (Stage(BASIC, 3, 2),)
    assert config.bots[1] == BotEntry("./bob", (folder / "bob").resolve())
    assert config.games == 4 * 3 * 2
    assert config.lanes is None
    assert config.clocks == Clocks()
    assert config.faults == FaultPolicy(max_strikes=3, suspend_after=5)
    assert (config.workers, config.cores_per_game, config.max_processes) == (None, 1, 64)
    assert config.limits == Limits()
    assert not config.show_names
    assert config.seed is None
    assert config.file == (folder / "cup.toml").resolve()


def test_everything_said(folder):
    text = GOOD + (
        'end_on = "deck"\nmax_turns = 90\n'
        f'seed = "{"0F" * 32}"\nshow_names = true\n'
        "lanes = 6\nworkers = 3\ncores_per_game = 2\nmax_processes = 20\n"
        '[clocks]\nstart_up = 1\ngame_start = 2.5\ndecision = 0.25\nbank = "60+0.1"\n'
        "[faults]\nmax_strikes = 1\nsuspend_after = 0\n"
        "[limits]\nmemory_mib = 300\nprocesses = 5\nopen_files = 99\n"
    )
    config = load_tournament(write(folder, text))
    ruleset = BASIC.with_options(end_on=EndOn.DECK, max_turns=90)
    assert config.stages == (Stage(ruleset, 3, 2),)
    assert config.seed == b"\x0f" * 32
    assert config.show_names
    assert (config.lanes, config.workers) == (6, 3)
    assert (config.cores_per_game, config.max_processes) == (2, 20)
    assert config.clocks == Clocks(
        start_up_us=1_000_000,
        game_start_us=2_500_000,
        decision_us=250_000,
        bank_us=60_000_000,
        increment_us=100_000,
    )
    assert config.faults == FaultPolicy(max_strikes=1, suspend_after=0)
    assert config.limits == Limits(memory_mib=300, processes=5, cpus=2.0, open_files=99)
    assert from_canonical_json(canonical_json(config)).limits == config.limits


def test_stages_say_what_the_top_does_not(folder):
    text = (
        HEAD
        + BOTS
        + (
            "seats = 3\nmatches = 2\nmax_turns = 90\n"
            '[[stage]]\nruleset = "expert"\n'
            '[[stage]]\nruleset = "duel"\nseats = 2\nmatches = 5\nend_on = "deck"\nmax_turns = 80\n'
        )
    )
    assert load_tournament(write(folder, text)).stages == (
        Stage(RULESETS["expert"].with_options(max_turns=90), 3, 2),
        Stage(RULESETS["duel"].with_options(end_on=EndOn.DECK, max_turns=80), 2, 5),
    )


def test_a_budget_buys_whole_rounds_of_all_stages(folder):
    text = (
        HEAD
        + BOTS
        + (
            "budget = 100\n"
            '[[stage]]\nruleset = "basic"\nseats = 3\n'  # 12 games a round
            '[[stage]]\nruleset = "duel"\nseats = 2\n'  # 12 games a round
        )
    )
    config = load_tournament(write(folder, text))
    assert [stage.matches for stage in config.stages] == [4, 4]
    assert config.games == 96


def test_a_budget_too_small_for_all_tables_buys_a_balanced_choice(folder):
    text = (
        HEAD
        + BOTS
        + 'budget = 23\n[[stage]]\nruleset = "basic"\nseats = 3\n[[stage]]\nruleset = "duel"\nseats = 2\n'
    )
    config = load_tournament(write(folder, text))
    assert config.stages == (
        Stage(BASIC, 3, 4, balanced=True),
        Stage(RULESETS["duel"], 2, 5, balanced=True),
    )
    assert config.schedule == "balanced-1"
    assert config.games == 22
    games = balanced("cup", ["a", "b", "c", "d"], config.stages, lanes=4)
    assert len(games) == config.games
    assert from_canonical_json(canonical_json(config)) == config


def test_a_budget_that_is_a_number_is_one_of_games(folder):
    config = load_tournament(write(folder, GOOD.replace("matches = 2", "budget = 100")))
    assert config.budget == Budget(Unit.GAMES, 100)
    said = GOOD.replace("matches = 2", "budget = { games = 100 }")
    assert load_tournament(write(folder, said)) == config
    assert from_canonical_json(canonical_json(config)) == config


def test_a_budget_of_games_of_a_bot(folder):
    text = GOOD.replace("matches = 2", "budget = { games_per_bot = 20 }")
    assert load_tournament(write(folder, text)).stages == (Stage(BASIC, 3, 2),)  # 9 a round
    text = GOOD.replace("matches = 2", "budget = { games_per_bot = 8 }")
    assert load_tournament(write(folder, text)).stages == (Stage(BASIC, 3, 2, balanced=True),)


def test_minutes_buy_what_games_of_the_league_make_likely(folder):
    text = GOOD.replace("matches = 2", "budget = { minutes = 0.5 }\nworkers = 2")
    config = load_tournament(write(folder, text), FakePace({("basic", 3): 1_000_000}))
    assert config.stages == (Stage(BASIC, 3, 5),)  # 60 games of a second, two at a time
    assert config.budget == Budget(Unit.MINUTES, 0.5)
    text = text.replace("workers = 2", "")
    config = load_tournament(write(folder, text), FakePace({("basic", 3): 1_000_000}, cores=4))
    assert config.stages == (Stage(BASIC, 3, 10),)
    config = load_tournament(write(folder, text), FakePace({("basic", 3): 12_000_000}, cores=4))
    assert config.stages == (Stage(BASIC, 3, 3, balanced=True),)


def test_a_gauntlet_has_challengers_and_a_field(folder):
    config = load_tournament(write(folder, GAUNTLET))
    assert [entry.text for entry in config.bots] == ["./dee", "zoe", "./ann", "./bob", "./cy"]
    assert config.stages == (Stage(BASIC, 3, 2, challengers=2),)
    assert config.challengers == 2
    assert [config.key(number) for number in (1, 2)] == ["challengers[1]", "bots[0]"]
    assert config.schedule == "gauntlet-1"
    assert config.games == 2 * 3 * 2 * 3
    assert from_canonical_json(canonical_json(config)) == config


def test_a_budget_buys_rounds_of_a_gauntlet_or_a_balanced_choice(folder):
    whole = load_tournament(write(folder, GAUNTLET.replace("matches = 2", "budget = 40")))
    assert whole.stages == (Stage(BASIC, 3, 2, challengers=2),)
    chosen = load_tournament(write(folder, GAUNTLET.replace("matches = 2", "budget = 17")))
    assert chosen.stages == (Stage(BASIC, 3, 5, balanced=True, challengers=2),)
    assert chosen.schedule == "gauntlet-1"
    assert chosen.games == 15


def test_the_field_of_a_gauntlet_may_have_fewer_bots_than_a_table_seats(folder):
    text = GAUNTLET.replace(', "./cy"]', "]")
    assert load_tournament(write(folder, text)).games == 2 * 1 * 2 * 3


def test_tables_of_several_sizes_are_stages_of_the_same_rules(folder):
    config = load_tournament(write(folder, GOOD.replace("seats = 3", "tables = [4, 2, 3]")))
    assert config.stages == (Stage(BASIC, 4, 2), Stage(BASIC, 2, 2), Stage(BASIC, 3, 2))
    assert config.games == 2 * (4 + 6 * 2 + 4 * 3)
    assert config.schedule == "round-robin-1"


def test_sizes_of_a_stage_replace_those_of_the_top_whichever_way_they_are_said(folder):
    text = GOOD.replace("seats = 3", "tables = [3, 4]") + (
        '[[stage]]\n[[stage]]\nruleset = "duel"\nseats = 2\n'
    )
    sizes = [stage.seats for stage in load_tournament(write(folder, text)).stages]
    assert sizes == [3, 4, 2]
    text = GOOD + "[[stage]]\ntables = [2, 4]\n[[stage]]\n"
    sizes = [stage.seats for stage in load_tournament(write(folder, text)).stages]
    assert sizes == [2, 4, 3]


def test_tables_of_several_sizes_share_a_budget(folder):
    text = GOOD.replace("seats = 3\nmatches = 2", "tables = [2, 3]\nbudget = 20")
    assert load_tournament(write(folder, text)).stages == (
        Stage(BASIC, 2, 5, balanced=True),
        Stage(BASIC, 3, 3, balanced=True),
    )


def test_the_number_of_games_is_that_of_the_schedule(folder):
    text = (
        HEAD
        + BOTS
        + (
            'ruleset = "basic"\n[[stage]]\nseats = 3\nmatches = 2\n[[stage]]\nseats = 4\nmatches = 3\n'
        )
    )
    config = load_tournament(write(folder, text))
    games = round_robin("cup", ["a", "b", "c", "d"], config.stages, lanes=4)
    assert config.games == len(games)


BAD = {
    "until without a confidence": (
        GOOD + "[until]\nmargin = 1.0\n",
        "until.confidence: missing",
    ),
    "sure by a coin": (
        GOOD + "[until]\nconfidence = 0.5\n",
        "until.confidence: must be more than 0.5",
    ),
    "certainty": (
        GOOD + "[until]\nconfidence = 1.0\n",
        "until.confidence: must be at most 0.9999",
    ),
    "no number": (
        GOOD + "[until]\nconfidence = nan\n",
        "until.confidence: must be a finite number",
    ),
    "a margin below nothing": (
        GOOD + "[until]\nconfidence = 0.9\nmargin = -0.1\n",
        "until.margin: must be at least 0",
    ),
    "a margin that makes all equal": (
        GOOD + "[until]\nconfidence = 0.9\nmargin = 26.0\n",
        "until.margin: must be at most 25",
    ),
    "until as a number": (GOOD + "until = 0.95\n", "until: must be a table"),
    "until in a balanced choice": (
        GOOD.replace("matches = 2", "budget = 6") + "[until]\nconfidence = 0.9\n",
        "until: it stops after whole rounds, and the budget is less than one round of all tables",
    ),
    "unknown key": (GOOD + "colour = 3\n", "colour: unknown key"),
    "unknown key in a table": (GOOD + "[clocks]\nblitz = 3\n", "clocks.blitz: unknown key"),
    "unknown key in a stage": (
        GOOD + '[[stage]]\n[[stage]]\nruleste = "duel"\n',
        "stage[1].ruleste: unknown key",
    ),
    "a limit below the least": (
        GOOD + "[limits]\nmemory_mib = 1\n",
        "limits.memory_mib: must be at least 16",
    ),
    "misspelt key": (GOOD.replace("name", "nmae"), "nmae: unknown key (and 1 more)"),
    "no name": (GOOD.replace(HEAD, ""), "name: missing"),
    "bad name": (
        GOOD.replace('"cup"', '"my/cup"'),
        "name: 'my/cup' is no name: 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit",
    ),
    "no bots": (GOOD.replace(BOTS, ""), "bots: missing"),
    "bots in one string": (GOOD.replace(BOTS, 'bots = "./ann"\n'), "bots: must be a list"),
    "a bot that is a number": (GOOD.replace('"./bob"', "7"), "bots[1]: must be a string"),
    "missing path": (
        GOOD.replace("./bob", "../nobody\\n"),
        "bots[1]: '../nobody\\n': no such folder",
    ),
    "a path too long for any system": (
        GOOD.replace("./bob", "./" + "b" * 300),
        f"bots[1]: './{'b' * 300}': no such folder",
    ),
    "fewer bots than seats": (
        GOOD.replace(BOTS, 'bots = ["./ann", "./bob"]\n'),
        "bots: 2 do not fill the 3 seats of a table",
    ),
    "no bots at all": (
        GOOD.replace(BOTS, "bots = []\n"),
        "bots: 0 do not fill the 3 seats of a table",
    ),
    "unknown ruleset": (
        GOOD.replace('"basic"', '"bassic"'),
        "ruleset: unknown ruleset 'bassic'; there are classic, basic, advanced, expert, expert-jokers, duel",
    ),
    "no ruleset": (GOOD.replace('ruleset = "basic"\n', ""), "ruleset: missing"),
    "no seats": (GOOD.replace("seats = 3\n", ""), "seats: missing"),
    "no ruleset in a stage": (
        HEAD + BOTS + "matches = 1\nseats = 2\n[[stage]]\n",
        "stage[0].ruleset: missing",
    ),
    "no stage in the list": (GOOD + "stage = []\n", "stage: must not be empty"),
    "table too large": (
        GOOD.replace("seats = 3", "seats = 6"),
        "seats: basic is played by 2 to 5, not 6",
    ),
    "no seats at a table": (
        GOOD.replace("seats = 3", "seats = 0"),
        "seats: basic is played by 2 to 5, not 0",
    ),
    "seats and tables": (
        GOOD + "tables = [3, 4]\n",
        "tables: there are seats too; one of them must go",
    ),
    "seats and tables in a stage": (
        GOOD + "[[stage]]\nseats = 3\ntables = [3, 4]\n",
        "stage[0].tables: there are seats too; one of them must go",
    ),
    "no tables": (GOOD.replace("seats = 3", "tables = []"), "tables: must not be empty"),
    "tables that are no list": (GOOD.replace("seats = 3", "tables = 3"), "tables: must be a list"),
    "half a seat": (
        GOOD.replace("seats = 3", "tables = [2.5]"),
        "tables[0]: must be a whole number",
    ),
    "tables of one size twice": (
        GOOD.replace("seats = 3", "tables = [3, 2, 3]"),
        "tables: a size is there twice",
    ),
    "one of the tables too large": (
        GOOD.replace("seats = 3", "tables = [3, 6]"),
        "tables[1]: basic is played by 2 to 5, not 6",
    ),
    "fewer bots than seats of one of the tables": (
        GOOD.replace("seats = 3", "tables = [3, 5]"),
        "bots: 4 do not fill the 5 seats of a table",
    ),
    "a duel of three": (
        GOOD.replace('"basic"', '"duel"'),
        "seats: duel is played by 2, not 3",
    ),
    "a duel of three in a stage": (
        GOOD + '[[stage]]\n[[stage]]\nruleset = "duel"\n',
        "stage[1].seats: duel is played by 2, not 3",
    ),
    "no matches": (
        GOOD.replace("matches = 2\n", ""),
        "matches: missing, and there is no budget (games in all) instead",
    ),
    "no matches in a stage": (
        GOOD.replace("matches = 2\n", "[[stage]]\nmatches = 2\n[[stage]]\n"),
        "stage[1].matches: missing, and there is no budget (games in all) instead",
    ),
    "matches and budget": (
        GOOD + "budget = 100\n",
        "matches: there is a budget too; one of them must go",
    ),
    "budget too small": (
        GOOD.replace("matches = 2", "budget = 5"),
        "budget: 5 games are less than one round, in which every bot plays: it has 6",
    ),
    "unknown format": (
        GOOD + 'format = "swiss"\n',
        "format: must be 'round-robin' or 'gauntlet'",
    ),
    "a gauntlet without challengers": (
        GOOD + 'format = "gauntlet"\n',
        "challengers: missing: they are who runs the gauntlet",
    ),
    "no challenger in the list": (
        GOOD + 'format = "gauntlet"\nchallengers = []\n',
        "challengers: must not be empty",
    ),
    "challengers of a round robin": (
        GOOD + 'challengers = ["zoe"]\n',
        'challengers: only format = "gauntlet" has them',
    ),
    "a challenger that is not there": (
        GAUNTLET.replace('"zoe"', '"./zoe"'),
        "challengers[1]: './zoe': no such folder",
    ),
    "a challenger that is in the field": (
        GAUNTLET.replace('"zoe"', '"./ann/../bob"'),
        "challengers[1]: it is in the field too, bots[1]",
    ),
    "a challenger by name that is in the field": (
        GAUNTLET.replace('"./bob"', '"zoe"'),
        "challengers[1]: it is in the field too, bots[1]",
    ),
    "a field too small": (
        GAUNTLET.replace('"./ann", "./bob", ', ""),
        "bots: 1 do not fill the 2 other seats of a table",
    ),
    "budget too small for a gauntlet": (
        GAUNTLET.replace("matches = 2", "budget = 5"),
        "budget: 5 games are less than one round, in which every bot plays: it has 6",
    ),
    "matches and another budget": (
        GOOD + "budget = { minutes = 3 }\n",
        "matches: there is a budget too; one of them must go",
    ),
    "half a game": (
        GOOD.replace("matches = 2", "budget = 9.5"),
        "budget: must be a whole number (of games), or a table",
    ),
    "yes for a budget": (
        GOOD.replace("matches = 2", "budget = true"),
        "budget: must be a whole number (of games), or a table",
    ),
    "no games": (GOOD.replace("matches = 2", "budget = 0"), "budget: must be at least 1"),
    "a budget of nothing": (
        GOOD.replace("matches = 2", "budget = {}"),
        "budget: must say one of games, games_per_bot, minutes",
    ),
    "two budgets": (
        GOOD.replace("matches = 2", "budget = { games = 9, minutes = 2 }"),
        "budget: must say one of games, games_per_bot, minutes",
    ),
    "a budget of hours": (
        GOOD.replace("matches = 2", "budget = { hours = 2 }"),
        "budget.hours: unknown key",
    ),
    "no minutes": (
        GOOD.replace("matches = 2", "budget = { minutes = 0 }"),
        "budget.minutes: must be more than 0",
    ),
    "endless minutes": (
        GOOD.replace("matches = 2", "budget = { minutes = inf }"),
        "budget.minutes: must be a finite number",
    ),
    "too few games of a bot": (
        GOOD.replace("matches = 2", "budget = { games_per_bot = 5 }"),
        "budget: 5 games of a bot are less than one round, in which every bot plays: one of them has 6",
    ),
    "too many games of a bot": (
        GOOD.replace("matches = 2", "budget = { games_per_bot = 1000000 }"),
        "budget: 1000000 games of a bot buy more than 1000000 games, the limit",
    ),
    "minutes of games that nobody knows": (
        GOOD.replace("matches = 2", "budget = { minutes = 3 }"),
        "budget: how long games of basic at a table of 3 last is not known: the league has none; play a short tournament of them first, or give games",
    ),
    "zero matches": (GOOD.replace("matches = 2", "matches = 0"), "matches: must be at least 1"),
    "negative matches": (
        GOOD.replace("matches = 2", "matches = -5"),
        "matches: must be at least 1",
    ),
    "huge matches": (
        GOOD.replace("matches = 2", f"matches = {10**30}"),
        "matches: must be at most 1000000",
    ),
    "too many games": (
        GOOD.replace("matches = 2", "matches = 100000"),
        "matches: make 1200000 games in all; 1000000 are the limit",
    ),
    "huge budget": (
        GOOD.replace("matches = 2", "budget = 1000001"),
        "budget: must be at most 1000000",
    ),
    "half a match": (
        GOOD.replace("matches = 2", "matches = 2.5"),
        "matches: must be a whole number",
    ),
    "a number in quotes": (
        GOOD.replace("matches = 2", 'matches = "2"'),
        "matches: must be a whole number",
    ),
    "yes for true": (GOOD + 'show_names = "yes"\n', "show_names: must be true or false"),
    "unknown end": (
        GOOD + 'end_on = "display"\n',
        "end_on: must be 'deck-and-display' or 'deck'",
    ),
    "no turns": (GOOD + "max_turns = 0\n", "max_turns: must be at least 1"),
    "short seed": (GOOD + 'seed = "abc"\n', "seed: must be 64 hexadecimal digits"),
    "seed with a wrong digit": (
        GOOD + f'seed = "{"0" * 63}g"\n',
        "seed: must be 64 hexadecimal digits",
    ),
    "bad bank": (
        GOOD + '[clocks]\nbank = "a minute"\n',
        "clocks.bank: 'a minute' is not SECONDS or SECONDS+INCREMENT, such as 30+0.1",
    ),
    "astronomical bank": (
        GOOD + f'[clocks]\nbank = "{"9" * 12}"\n',
        f"clocks.bank: '{'9' * 12}' is not SECONDS or SECONDS+INCREMENT, such as 30+0.1",
    ),
    "huge bank": (
        GOOD + '[clocks]\nbank = "90000"\n',
        "clocks.bank: must be more than 0 and at most 86400 seconds",
    ),
    "empty bank": (
        GOOD + '[clocks]\nbank = "0+1"\n',
        "clocks.bank: must be more than 0 and at most 86400 seconds",
    ),
    "bank that is a number": (GOOD + "[clocks]\nbank = 60\n", "clocks.bank: must be a string"),
    "no time to decide": (
        GOOD + "[clocks]\ndecision = 0\n",
        "clocks.decision: must be at least 0.001",
    ),
    "endless time": (
        GOOD + "[clocks]\ndecision = inf\n",
        "clocks.decision: must be a finite number",
    ),
    "huge time": (GOOD + "[clocks]\nstart_up = 1e9\n", "clocks.start_up: must be at most 86400"),
    "time in words": (
        GOOD + '[clocks]\ngame_start = "10s"\n',
        "clocks.game_start: must be a number",
    ),
    "clocks that are no table": (GOOD + "clocks = 5\n", "clocks: must be a table"),
    "no strikes": (GOOD + "[faults]\nmax_strikes = 0\n", "faults.max_strikes: must be at least 1"),
    "negative forfeits": (
        GOOD + "[faults]\nsuspend_after = -1\n",
        "faults.suspend_after: must be at least 0",
    ),
    "no workers": (GOOD + "workers = 0\n", "workers: must be at least 1"),
    "more workers than lanes": (
        GOOD + "workers = 8\nlanes = 4\n",
        "workers: 8 cannot share 4 lanes",
    ),
    "fewer lanes than seats": (
        GOOD + "lanes = 2\n",
        "lanes: must be at least 3, the seats of a table",
    ),
    "fewer processes than seats": (
        GOOD + "max_processes = 2\n",
        "max_processes: must be at least 3, the seats of a table",
    ),
    "no cores": (GOOD + "cores_per_game = 0\n", "cores_per_game: must be at least 1"),
    "several errors": (
        GOOD + "workers = 0\nlanes = 0\ncores_per_game = 0\n",
        "lanes: must be at least 1 (and 2 more)",
    ),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_said_in_one_line(folder, text, reason):
    assert error_of(folder, text) == f"{folder}/cup.toml: {reason}"


def test_minutes_that_are_too_few_or_too_many(folder):
    text = GOOD.replace("matches = 2", "budget = { minutes = 1 }")
    for lasting_us, reason in (
        (
            30_000_000,
            "1 minutes are less than one round, in which every bot plays: its 6 games should take 3",
        ),
        (1, "1 minutes buy more than 1000000 games, the limit"),
    ):
        with pytest.raises(UserError) as caught:
            load_tournament(write(folder, text), FakePace({("basic", 3): lasting_us}))
        assert str(caught.value) == f"{folder}/cup.toml: budget: {reason}"


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError) as caught:
        load_tournament(tmp_path / "cup.toml")
    assert str(caught.value) == f"{tmp_path}/cup.toml: no such file"


def test_a_syntax_error_names_its_line(folder):
    assert error_of(folder, GOOD + "workers =\n") == f"{folder}/cup.toml: line 6: Invalid value"


def test_paths_count_from_the_folder_of_the_file(folder, monkeypatch):
    (folder / "cups").mkdir()
    path = folder / "cups" / "cup.toml"
    path.write_text(GOOD.replace("./", "../"))
    monkeypatch.chdir(folder)
    config = load_tournament(Path("cups/cup.toml"))
    assert [entry.folder for entry in config.bots] == [
        (folder / name).resolve() for name in ("ann", "bob", "cy", "dee")
    ]


def test_until(folder):
    given = load_tournament(write(folder, GOOD + "[until]\nconfidence = 0.9\nmargin = 0\n"))
    assert given.until == Until(confidence=0.9, margin=0)
    assert from_canonical_json(canonical_json(given)) == given
    default = load_tournament(write(folder, GOOD + "until = { confidence = 0.95 }\n"))
    assert default.until == Until(confidence=0.95, margin=1)
    assert load_tournament(write(folder, GOOD)).until is None


def test_json_gives_the_configuration_back_but_for_the_seed(folder):
    text = GOOD.replace('"./bob"', '"zoe"') + (
        f'end_on = "deck"\nworkers = 2\nseed = "{"ab" * 32}"\n[clocks]\nbank = "60+0.1"\n'
    )
    config = load_tournament(write(folder, text))
    stored = canonical_json(config)
    assert from_canonical_json(stored) == replace(config, seed=None)
    assert canonical_json(from_canonical_json(stored)) == stored
    assert "ab" * 32 not in stored
    assert "seed" not in json.loads(stored)


def test_what_the_first_release_stored_can_be_read_for_ever():
    """The file is never changed: add another beside it when configurations have more to say."""
    stages = (
        Stage(BASIC.with_options(end_on=EndOn.DECK, max_turns=300), 4, 10),
        Stage(RULESETS["duel"], 2, 5),
    )
    assert from_canonical_json(FIRST.read_text()) == TournamentConfig(
        file=Path("cups/spring.toml"),
        name="spring-2",
        stages=stages,
        bots=(BotEntry("ann@1.0", None), BotEntry("bob@2.1+2", None)),
        lanes=6,
        games_in_flight=4,
        clocks=Clocks(
            start_up_us=20_000_000,
            game_start_us=10_000_000,
            decision_us=2_000_000,
            bank_us=30_000_000,
            increment_us=100_000,
        ),
        faults=FaultPolicy(max_strikes=2, suspend_after=7),
        show_names=True,
        workers=3,
        cores_per_game=2,
        max_processes=50,
        schedule="round-robin-1",
        seed=None,
    )


def test_what_was_stored_since_there_are_gauntlets_can_be_read_for_ever():
    config = from_canonical_json(GAUNTLETS.read_text())
    assert config.stages == (Stage(BASIC, 3, 4, balanced=True, challengers=1),)
    assert config.challengers == 1
    assert config.budget == Budget(Unit.GAMES, 14)
    assert config.schedule == "gauntlet-1"


def test_json_does_not_depend_on_how_the_file_is_written(folder):
    other = "\n".join(reversed(GOOD.strip().split("\n"))) + "\nshow_names = false # as ever\n"
    first = canonical_json(load_tournament(write(folder, GOOD)))
    assert canonical_json(load_tournament(write(folder, other))) == first


@pytest.mark.parametrize("text", ["", "{}", '{"name": "cup"}', "[]"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="validation error"):
        from_canonical_json(text)


@pytest.mark.parametrize(
    ("name", "rulesets", "games"),
    [
        ("demo", ["basic"], 240),
        ("duel", ["duel"], 300),
        ("classic", ["classic"], 300),
        ("all-rulesets", list(RULESETS), 288),
        ("languages", ["basic", "duel"], 120),
    ],
)
def test_the_tournaments_that_come_along(name, rulesets, games):
    config = load_tournament(TOURNAMENTS / f"{name}.toml")
    assert config.name == name
    assert [stage.ruleset.name for stage in config.stages] == rulesets
    assert config.games == games
    assert config.seed is None
    check_bots(config, None)


def test_all_tournaments_that_come_along_are_tried_here():
    assert {path.stem for path in TOURNAMENTS.glob("*.toml")} == {
        "demo",
        "duel",
        "classic",
        "all-rulesets",
        "languages",
    }
