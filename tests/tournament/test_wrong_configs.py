"""A wrong tournament file gives one line with the file, the key and the reason."""

import pytest
from config_files import BOTS, GAUNTLET, GOOD, HEAD, FakePace, error_of, with_bots, write

from referee.errors import UserError
from referee.tournament.config_reader import load_tournament


@pytest.fixture
def folder(tmp_path):
    return with_bots(tmp_path)


BAD = {
    "sure by a coin": (
        GOOD + "[until]\nconfidence = 0.49\n",
        "until.confidence: must be at least 0.5",
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
    "until as a number": (
        GOOD + "until = 0.95\n",
        "until: must be a table, such as { margin = 1.0 }",
    ),
    "until in a balanced choice": (
        GOOD.replace("matches = 2", "budget = 6") + "[until]\nconfidence = 0.9\n",
        "until: needs whole rounds, but the budget is less than one round of all tables",
    ),
    "unknown key": (GOOD + "colour = 3\n", "colour: unknown key"),
    "unknown key of a bot": (
        GOOD.replace('"./ann"', '{ pth = "./ann" }'),
        "bots[0].pth: unknown key (did you mean 'path'?)",
    ),
    "unknown key in the only stage": (
        GOOD + "[[stage]]\nsets = 2\n",
        "stage[0].sets: unknown key (did you mean 'seats'?)",
    ),
    "unknown key in a table": (GOOD + "[clocks]\nblitz = 3\n", "clocks.blitz: unknown key"),
    "unknown key in a stage": (
        GOOD + '[[stage]]\n[[stage]]\nruleste = "duel"\n',
        "stage[1].ruleste: unknown key (did you mean 'ruleset'?)",
    ),
    "bots below a table": (
        GOOD.replace(BOTS, "") + "[limits]\n" + BOTS,
        "limits.bots: unknown key (write 'bots' above the first [table])",
    ),
    "a key in an unknown table with the name of a key": (
        GOOD + "[clocks.limits]\n",
        "clocks.limits: unknown key",
    ),
    "a limit below the least": (
        GOOD + "[limits]\nmemory_mib = 1\n",
        "limits.memory_mib: must be at least 16",
    ),
    "misspelt key": (GOOD.replace("name", "nmae"), "nmae: unknown key (did you mean 'name'?)"),
    "no name": (GOOD.replace(HEAD, ""), "name: missing"),
    "bad name": (
        GOOD.replace('"cup"', '"my/cup"'),
        "name: 'my/cup' is not a valid name: use 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit",
    ),
    "a name that is far too long": (
        GOOD.replace('"cup"', f'"{"c" * 10_000}"'),
        f"name: '{'c' * 149}…{'c' * 61}' is not a valid name: use 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit",
    ),
    "no bots": (GOOD.replace(BOTS, ""), "bots: missing"),
    "bots in one string": (GOOD.replace(BOTS, 'bots = "./ann"\n'), "bots: must be a list"),
    "a bot that is a number": (
        GOOD.replace('"./bob"', "7"),
        "bots[1]: must be a string, or a table with path, name and args",
    ),
    "arguments without a name": (
        GOOD.replace('"./bob"', '{ path = "./bob", args = ["-x"] }'),
        "bots[1].name: missing; a bot with args needs a name of its own",
    ),
    "a bot without a path": (
        GOOD.replace('"./bob"', '{ name = "bo" }'),
        "bots[1].path: missing",
    ),
    "an argument with a NUL character": (
        GOOD.replace('"./bob"', '{ path = "./bob", name = "bo", args = ["a\\u0000"] }'),
        "bots[1].args[0]: a NUL character cannot be passed to a program",
    ),
    "a long argument": (
        GOOD.replace('"./bob"', f'{{ path = "./bob", name = "bo", args = ["{"a" * 1001}"] }}'),
        "bots[1].args[0]: must have at most 1000 characters",
    ),
    "missing path": (
        GOOD.replace("./bob", "../nobody\\n"),
        "bots[1]: '../nobody\\n': no such folder",
    ),
    "a file instead of a folder": (
        GOOD.replace("./bob", "./cup.toml"),
        "bots[1]: './cup.toml': is a file; name its folder",
    ),
    "a path too long for any system": (
        GOOD.replace("./bob", "./" + "b" * 300),
        f"bots[1]: './{'b' * 300}': no such folder",
    ),
    "fewer bots than seats": (
        GOOD.replace(BOTS, 'bots = ["./ann", "./bob"]\n'),
        "bots: 2 cannot fill the 3 seats of a table",
    ),
    "no bots at all": (
        GOOD.replace(BOTS, "bots = []\n"),
        "bots: 0 cannot fill the 3 seats of a table",
    ),
    "unknown ruleset": (
        GOOD.replace('"basic"', '"bassic"'),
        "ruleset: unknown ruleset 'bassic' (did you mean 'basic'?); choose one of classic, basic, advanced, expert, expert-jokers, duel",
    ),
    "no ruleset": (GOOD.replace('ruleset = "basic"\n', ""), "ruleset: missing"),
    "no seats": (GOOD.replace("seats = 3\n", ""), "seats: missing"),
    "no ruleset in a stage": (
        HEAD + BOTS + "matches = 1\nseats = 2\n[[stage]]\n",
        "stage[0].ruleset: missing",
    ),
    "no stage in the list": (GOOD + "stage = []\n", "stage: must not be empty"),
    "one stage as a table": (
        GOOD + "[stage]\nseats = 2\n",
        "stage: must be a list of tables: write [[stage]] instead of [stage]",
    ),
    "a stage that is no table": (GOOD + "stage = 1\n", "stage: must be a list"),
    "table too large": (
        GOOD.replace("seats = 3", "seats = 6"),
        "seats: basic has 2 to 5 players, not 6",
    ),
    "no seats at a table": (
        GOOD.replace("seats = 3", "seats = 0"),
        "seats: basic has 2 to 5 players, not 0",
    ),
    "seats and tables": (
        GOOD + "tables = [3, 4]\n",
        "tables: give either seats or tables, not both",
    ),
    "seats and tables in a stage": (
        GOOD + "[[stage]]\nseats = 3\ntables = [3, 4]\n",
        "stage[0].tables: give either seats or tables, not both",
    ),
    "no tables": (GOOD.replace("seats = 3", "tables = []"), "tables: must not be empty"),
    "tables that are no list": (GOOD.replace("seats = 3", "tables = 3"), "tables: must be a list"),
    "half a seat": (
        GOOD.replace("seats = 3", "tables = [2.5]"),
        "tables[0]: must be a whole number",
    ),
    "tables of one size twice": (
        GOOD.replace("seats = 3", "tables = [3, 2, 3]"),
        "tables: the same table size occurs twice",
    ),
    "one of the tables too large": (
        GOOD.replace("seats = 3", "tables = [3, 6]"),
        "tables[1]: basic has 2 to 5 players, not 6",
    ),
    "fewer bots than seats of one of the tables": (
        GOOD.replace("seats = 3", "tables = [3, 5]"),
        "bots: 4 cannot fill the 5 seats of a table",
    ),
    "a duel of three": (
        GOOD.replace('"basic"', '"duel"'),
        "seats: duel has 2 players, not 3",
    ),
    "a duel of three in a stage": (
        GOOD + '[[stage]]\n[[stage]]\nruleset = "duel"\n',
        "seats: duel (stage[1]) has 2 players, not 3",
    ),
    "no matches": (
        GOOD.replace("matches = 2\n", ""),
        "matches: missing; give matches or a budget",
    ),
    "no matches in a stage": (
        GOOD.replace("matches = 2\n", "[[stage]]\nmatches = 2\n[[stage]]\n"),
        "stage[1].matches: missing; give matches or a budget",
    ),
    "matches and budget": (
        GOOD + "budget = 100\n",
        "matches: give either matches or a budget, not both",
    ),
    "budget too small": (
        GOOD.replace("matches = 2", "budget = 5"),
        "budget: 5 games are not enough: to let every bot play in every stage, the tournament needs 6 games",
    ),
    "unknown format": (
        GOOD + 'format = "swiss"\n',
        "format: must be 'round-robin' or 'gauntlet'",
    ),
    "a gauntlet without challengers": (
        GOOD + 'format = "gauntlet"\n',
        "challengers: missing; a gauntlet needs at least one",
    ),
    "no challenger in the list": (
        GOOD + 'format = "gauntlet"\nchallengers = []\n',
        "challengers: must not be empty",
    ),
    "challengers of a round robin": (
        GOOD + 'challengers = ["zoe"]\n',
        'challengers: only allowed with format = "gauntlet"',
    ),
    "a challenger that is not there": (
        GAUNTLET.replace('"zoe"', '"./zoe"'),
        "challengers[1]: './zoe': no such folder",
    ),
    "a challenger that is in the field": (
        GAUNTLET.replace('"zoe"', '"./ann/../bob"'),
        "challengers[1]: is also in the field, as bots[1]",
    ),
    "a challenger by name that is in the field": (
        GAUNTLET.replace('"./bob"', '"zoe"'),
        "challengers[1]: is also in the field, as bots[1]",
    ),
    "a field too small": (
        GAUNTLET.replace('"./ann", "./bob", ', ""),
        "bots: 1 cannot fill the 2 other seats of a table",
    ),
    "budget too small for a gauntlet": (
        GAUNTLET.replace("matches = 2", "budget = 5"),
        "budget: 5 games are not enough: to let every bot play in every stage, the tournament needs 6 games",
    ),
    "matches and another budget": (
        GOOD + "budget = { minutes = 3 }\n",
        "matches: give either matches or a budget, not both",
    ),
    "half a game": (
        GOOD.replace("matches = 2", "budget = 9.5"),
        "budget: must be a whole number of games, or a table, such as { minutes = 10 }",
    ),
    "yes for a budget": (
        GOOD.replace("matches = 2", "budget = true"),
        "budget: must be a whole number of games, or a table, such as { minutes = 10 }",
    ),
    "no games": (GOOD.replace("matches = 2", "budget = 0"), "budget: must be at least 1"),
    "a budget of nothing": (
        GOOD.replace("matches = 2", "budget = {}"),
        "budget: must have exactly one of the keys games, games_per_bot, minutes",
    ),
    "two budgets": (
        GOOD.replace("matches = 2", "budget = { games = 9, minutes = 2 }"),
        "budget: must have exactly one of the keys games, games_per_bot, minutes",
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
        "budget: 5 games of a bot are not enough: to let every bot play in every stage, the tournament needs 6 games of one bot",
    ),
    "too many games of a bot": (
        GOOD.replace("matches = 2", "budget = { games_per_bot = 1000000 }"),
        "budget: allows more than 1000000 games; the limit is 1000000",
    ),
    "minutes of games that nobody knows": (
        GOOD.replace("matches = 2", "budget = { minutes = 3 }"),
        "budget: the league has no games of basic at a table of 3, so their duration is unknown; play a short tournament first, or give a number of games",
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
        "matches: allows 1200000 games; the limit is 1000000",
    ),
    "too many games of a stage": (
        HEAD + BOTS + '[[stage]]\nruleset = "basic"\nseats = 3\nmatches = 100000\n',
        "stage[0].matches: allows 1200000 games; the limit is 1000000",
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
    "unknown kind of deals": (
        GOOD + '[[stage]]\n[[stage]]\ndeals = "new"\n',
        "stage[1].deals: must be 'same' or 'fresh'",
    ),
    "unknown start of the ghost": (
        GOOD + 'ghost_start = "12"\n',
        "ghost_start: must be 'thirteen' or 'as-dealt'",
    ),
    "unknown snatch from the ghost": (
        GOOD + "ghost_snatch = true\n",
        "ghost_snatch: must be 'compulsory' or 'optional'",
    ),
    "unknown overflow of the ghost": (
        GOOD + 'ghost_overflow = "highest"\n',
        "ghost_overflow: must be 'single' or 'lowest'",
    ),
    "start of a ghost that is not there": (
        GOOD + 'ghost_start = "thirteen"\n',
        "ghost_start: basic has no ghost; only a duel has this option",
    ),
    "overflow of a ghost that is not there": (
        GOOD + 'ghost_overflow = "lowest"\n',
        "ghost_overflow: basic has no ghost; only a duel has this option",
    ),
    "snatch from a ghost that one stage does not have": (
        GOOD
        + 'ghost_snatch = "optional"\n[[stage]]\nruleset = "duel"\nseats = 2\n'
        + '[[stage]]\nruleset = "expert"\n',
        "ghost_snatch: expert (stage[1]) has no ghost; only a duel has this option",
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
    "clocks that are no table": (
        GOOD + "clocks = 5\n",
        "clocks: must be a table, such as { decision = 2 }",
    ),
    "several clocks": (
        GOOD + "[[clocks]]\ndecision = 1\n",
        "clocks: must be a table, such as { decision = 2 }",
    ),
    "several faults": (
        GOOD + "[[faults]]\n",
        "faults: must be a table, such as { max_strikes = 5 }",
    ),
    "several limits": (
        GOOD + "[[limits]]\n",
        "limits: must be a table, such as { memory_mib = 512 }",
    ),
    "no strikes": (GOOD + "[faults]\nmax_strikes = 0\n", "faults.max_strikes: must be at least 1"),
    "negative forfeits": (
        GOOD + "[faults]\nsuspend_after = -1\n",
        "faults.suspend_after: must be at least 0",
    ),
    "no workers": (GOOD + "workers = 0\n", "workers: must be at least 1"),
    "more workers than lanes": (
        GOOD + "workers = 8\nlanes = 4\n",
        "workers: must be at most 4, the number of lanes",
    ),
    "fewer lanes than seats": (
        GOOD + "lanes = 2\n",
        "lanes: must be at least 3, the seats of a table",
    ),
    "fewer processes than seats": (
        GOOD + "max_processes = 2\n",
        "max_processes: must be at least 3, the seats of a table",
    ),
    "games in flight zero": (
        GOOD + "games_in_flight = 0\n",
        'games_in_flight: must be "auto" or a whole number from 1 to 100',
    ),
    "games in flight many": (
        GOOD + "games_in_flight = 101\n",
        'games_in_flight: must be "auto" or a whole number from 1 to 100',
    ),
    "games in flight a word": (
        GOOD + "games_in_flight = 'many'\n",
        'games_in_flight: must be "auto" or a whole number from 1 to 100',
    ),
    "games in flight a fraction": (
        GOOD + "games_in_flight = 1.5\n",
        'games_in_flight: must be "auto" or a whole number from 1 to 100',
    ),
    "games in flight a truth value": (
        GOOD + "games_in_flight = true\n",
        'games_in_flight: must be "auto" or a whole number from 1 to 100',
    ),
    "no cores": (GOOD + "cores_per_game = 0\n", "cores_per_game: must be at least 1"),
    "an option that is wrong in the stage itself": (
        GOOD + '[[stage]]\n[[stage]]\nseats = 6\nghost_snatch = "optional"\n',
        "stage[1].ghost_snatch: basic has no ghost; only a duel has this option",
        "stage[1].seats: basic has 2 to 5 players, not 6",
    ),
    "one of the inherited tables too large": (
        GOOD.replace("seats = 3", "tables = [2, 6]") + "[[stage]]\n",
        "tables[1]: basic (stage[0]) has 2 to 5 players, not 6",
    ),
    "values that do not fit each other": (
        GOOD.replace("./cy", "./nobody").replace('"./dee"', '{ path = "./dee", args = ["-x"] }')
        + 'challengers = ["zoe"]\nlanes = 1\nworkers = 2\nmax_processes = 1\nbudget = 9\n'
        + "[[stage]]\n[[stage]]\nseats = 2\ntables = [2]\n[[stage]]\nseats = 6\n",
        'challengers: only allowed with format = "gauntlet"',
        "bots[2]: './nobody': no such folder",
        "bots[3].name: missing; a bot with args needs a name of its own",
        "matches: give either matches or a budget, not both",
        "stage[1].tables: give either seats or tables, not both",
        "stage[2].seats: basic has 2 to 5 players, not 6",
        "lanes: must be at least 3, the seats of a table",
        "workers: must be at most 1, the number of lanes",
        "max_processes: must be at least 3, the seats of a table",
    ),
    "a stage without anything, and too few bots for another": (
        HEAD
        + 'bots = ["./ann"]\n[[stage]]\n[[stage]]\nruleset = "basic"\nseats = 2\nmatches = 1\n',
        "stage[0].ruleset: missing",
        "stage[0].seats: missing",
        "stage[0].matches: missing; give matches or a budget",
        "bots: 1 cannot fill the 2 seats of a table",
    ),
    "two challengers in the field": (
        GAUNTLET.replace('"./ann", ', '"./ann", "zoe", "./dee", '),
        "challengers[0]: is also in the field, as bots[2]",
        "challengers[1]: is also in the field, as bots[1]",
    ),
    "several errors": (
        GOOD + "workers = 0\nlanes = 0\ncores_per_game = 0\n",
        "lanes: must be at least 1",
        "workers: must be at least 1",
        "cores_per_game: must be at least 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_mistake_of_a_file_gives_one_line_with_key_and_reason(folder, case):
    text, *reasons = BAD[case]
    assert error_of(folder, text).splitlines() == [
        f"{folder}/cup.toml: {reason}" for reason in reasons
    ]


def test_a_budget_of_too_few_or_too_many_minutes_is_refused(folder):
    text = GOOD.replace("matches = 2", "budget = { minutes = 1 }")
    for lasting_us, reason in (
        (
            30_000_000,
            "1 minute is not enough: to let every bot play in every stage, the tournament needs about 3 minutes for 6 games",
        ),
        (1, "allows more than 1000000 games; the limit is 1000000"),
    ):
        with pytest.raises(UserError) as caught:
            load_tournament(write(folder, text), FakePace({("basic", 3): lasting_us}))
        assert str(caught.value) == f"{folder}/cup.toml: budget: {reason}"


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(UserError) as caught:
        load_tournament(tmp_path / "cup.toml")
    assert str(caught.value) == f"{tmp_path}/cup.toml: no such file"


def test_a_syntax_error_names_its_line(folder):
    assert error_of(folder, GOOD + "workers =\n") == f"{folder}/cup.toml: line 6: Invalid value"
