"""Correct tournament files are read into the right configurations."""

from pathlib import Path

import pytest
from config_files import BASIC, BOTS, GAUNTLET, GOOD, HEAD, FakePace, with_bots, write

from referee.clocks import Clocks
from referee.ratings.stopping import StopCondition
from referee.rules.ruleset import RULESETS, EndOn, GhostOverflow, GhostSnatch, GhostStart
from referee.sandbox import Limits
from referee.schedule import Deals, Stage
from referee.schedule.balanced import balanced_schedule
from referee.schedule.budget import Budget, Unit
from referee.schedule.round_robin import round_robin
from referee.tournament.config import (
    BotEntry,
    FaultPolicy,
    canonical_json,
    from_canonical_json,
    list_look_rounds,
)
from referee.tournament.config_reader import load_tournament
from referee.tournament.create import check_bots

TOURNAMENTS = Path(__file__).parents[2] / "tournaments"


@pytest.fixture
def folder(tmp_path):
    return with_bots(tmp_path)


def test_a_short_file_gets_the_default_values(folder):
    config = load_tournament(write(folder, GOOD))
    assert config.name == "cup"
    assert config.stages == (Stage(BASIC, 3, 2),)
    assert config.bots[1] == BotEntry("./bob", (folder / "bob").resolve())
    assert config.games == 4 * 3 * 2
    assert config.lanes is None
    assert config.clocks == Clocks()
    assert config.faults == FaultPolicy(max_strikes=3, suspend_after=5)
    assert (config.workers, config.cores_per_game, config.max_processes) == (None, 1, 64)
    assert config.games_in_flight is None, "as many as the bots hold"
    assert config.pondering is False
    assert config.limits == Limits()
    assert not config.show_names
    assert config.seed is None
    assert config.file == (folder / "cup.toml").resolve()


def test_every_key_is_read(folder):
    text = GOOD + (
        'end_on = "deck"\nmax_turns = 90\n'
        f'seed = "{"0F" * 32}"\nshow_names = true\n'
        "lanes = 6\nworkers = 3\ncores_per_game = 2\npondering = true\nmax_processes = 20\n"
        '[clocks]\nstart_up = 1\ngame_start = 2.5\ndecision = 0.25\nbank = "60+0.1"\nscale = true\n'
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
    assert config.pondering is True
    assert config.clocks == Clocks(
        start_up_us=1_000_000,
        game_start_us=2_500_000,
        decision_us=250_000,
        bank_us=60_000_000,
        increment_us=100_000,
    )
    assert config.scale_clocks is True
    assert config.faults == FaultPolicy(max_strikes=1, suspend_after=0)
    assert config.limits == Limits(memory_mib=300, processes=5, cpus=2.0, open_files=99)
    assert from_canonical_json(canonical_json(config)).limits == config.limits


def test_a_stage_inherits_missing_keys_from_the_top_of_the_file(folder):
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


def test_a_stage_may_have_other_deals_than_the_rest_of_the_file(folder):
    text = GOOD + 'deals = "fresh"\n[[stage]]\n[[stage]]\ndeals = "same"\n'
    config = load_tournament(write(folder, text))
    assert config.stages == (Stage(BASIC, 3, 2, deals=Deals.FRESH), Stage(BASIC, 3, 2))
    assert from_canonical_json(canonical_json(config)).stages == config.stages


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ghost_start", GhostStart.AS_DEALT),
        ("ghost_snatch", GhostSnatch.OPTIONAL),
        ("ghost_overflow", GhostOverflow.LOWEST),
    ],
)
def test_options_of_the_duel_are_read_and_stored(folder, key, value):
    duels = 'ruleset = "duel"\nseats = 2\nmatches = 2\n'
    text = f'{HEAD}{BOTS}{key} = "{value.value}"\n{duels}'
    config = load_tournament(write(folder, text))
    duel = RULESETS["duel"].with_options(**{key: value})
    assert config.stages == (Stage(duel, 2, 2),)
    assert from_canonical_json(canonical_json(config)) == config
    in_stage = f'{HEAD}{BOTS}[[stage]]\n{key} = "{value.value}"\n{duels}[[stage]]\n{duels}'
    stages = load_tournament(write(folder, in_stage)).stages
    assert [stage.ruleset for stage in stages] == [duel, RULESETS["duel"]]


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
    games = balanced_schedule("cup", ["a", "b", "c", "d"], config.stages, lanes=4)
    assert len(games) == config.games
    assert from_canonical_json(canonical_json(config)) == config


def test_a_budget_that_is_a_number_is_a_number_of_games(folder):
    config = load_tournament(write(folder, GOOD.replace("matches = 2", "budget = 100")))
    assert config.budget == Budget(Unit.GAMES, 100)
    said = GOOD.replace("matches = 2", "budget = { games = 100 }")
    assert load_tournament(write(folder, said)) == config
    assert from_canonical_json(canonical_json(config)) == config


def test_a_budget_of_games_per_bot_limits_the_bot_that_plays_most(folder):
    text = GOOD.replace("matches = 2", "budget = { games_per_bot = 20 }")
    assert load_tournament(write(folder, text)).stages == (Stage(BASIC, 3, 2),)  # 9 a round
    text = GOOD.replace("matches = 2", "budget = { games_per_bot = 8 }")
    assert load_tournament(write(folder, text)).stages == (Stage(BASIC, 3, 2, balanced=True),)


def test_a_budget_of_minutes_uses_the_duration_of_earlier_games(folder):
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
    assert [config.entry_key(number) for number in (1, 2)] == ["challengers[1]", "bots[0]"]
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


def test_each_table_size_makes_a_stage_with_the_same_rules(folder):
    config = load_tournament(write(folder, GOOD.replace("seats = 3", "tables = [4, 2, 3]")))
    assert config.stages == (Stage(BASIC, 4, 2), Stage(BASIC, 2, 2), Stage(BASIC, 3, 2))
    assert config.games == 2 * (4 + 6 * 2 + 4 * 3)
    assert config.schedule == "round-robin-1"


def test_seats_or_tables_of_a_stage_replace_those_of_the_top(folder):
    text = GOOD.replace("seats = 3", "tables = [3, 4]") + (
        '[[stage]]\n[[stage]]\nruleset = "duel"\nseats = 2\n'
    )
    sizes = [stage.seats for stage in load_tournament(write(folder, text)).stages]
    assert sizes == [3, 4, 2]
    text = GOOD + "[[stage]]\ntables = [2, 4]\n[[stage]]\n"
    sizes = [stage.seats for stage in load_tournament(write(folder, text)).stages]
    assert sizes == [2, 4, 3]


def test_several_table_sizes_share_a_budget(folder):
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


def test_paths_count_from_the_folder_of_the_file(folder, monkeypatch):
    (folder / "cups").mkdir()
    path = folder / "cups" / "cup.toml"
    path.write_text(GOOD.replace("./", "../"))
    monkeypatch.chdir(folder)
    config = load_tournament(Path("cups/cup.toml"))
    assert [entry.folder for entry in config.bots] == [
        (folder / name).resolve() for name in ("ann", "bob", "cy", "dee")
    ]


def test_until_is_read_with_its_default_values(folder):
    given = load_tournament(write(folder, GOOD + "[until]\nconfidence = 0.9\nmargin = 0\n"))
    assert given.until == StopCondition(confidence=0.9, margin=0)
    assert from_canonical_json(canonical_json(given)) == given
    default = load_tournament(write(folder, GOOD + "until = { confidence = 0.95 }\n"))
    assert default.until == StopCondition(confidence=0.95, margin=1)
    assert load_tournament(write(folder, GOOD + "until = {}\n")).until == StopCondition()
    assert load_tournament(write(folder, GOOD)).until is None


def test_last_look_is_after_the_last_round_of_the_longest_stage(folder):
    text = GOOD + "until = {}\n[[stage]]\nmatches = 4\n[[stage]]\nmatches = 9\n"
    assert list_look_rounds(load_tournament(write(folder, text)))[-1] == 9


@pytest.mark.parametrize(
    ("name", "rulesets", "games"),
    [
        ("demo", ["basic"], 240),
        ("duel", ["duel"], 300),
        ("classic", ["classic"], 300),
        ("all-rulesets", list(RULESETS), 288),
        ("languages", ["basic", "duel"], 120),
        ("sample-bots", list(RULESETS), 1728),
    ],
)
def test_the_tournament_files_of_the_project_are_correct(name, rulesets, games):
    config = load_tournament(TOURNAMENTS / f"{name}.toml")
    assert config.name == name
    assert [stage.ruleset.name for stage in config.stages] == rulesets
    assert config.games == games
    assert config.seed is None
    check_bots(config, None)


def test_all_tournament_files_of_the_project_are_tested():
    assert {path.stem for path in TOURNAMENTS.glob("*.toml")} == {
        "demo",
        "duel",
        "classic",
        "all-rulesets",
        "languages",
        "sample-bots",
    }
