"""Configurations are stored as JSON and read back, also by later versions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from config_files import BASIC, GOOD, with_bots, write

from referee.clocks import Clocks
from referee.records import Meetings
from referee.rules.ruleset import RULESETS, EndOn, GhostOverflow, GhostSnatch, GhostStart
from referee.schedule import Deals, Stage
from referee.schedule.budget import Budget, Unit
from referee.tournament.config import (
    BotEntry,
    FaultPolicy,
    LadderStart,
    TournamentConfig,
    canonical_json,
    from_canonical_json,
)
from referee.tournament.config_reader import load_tournament

FIRST = Path(__file__).parent / "golden" / "config-1.json"
GAUNTLETS = FIRST.with_name("config-2-gauntlet.json")
PONDERING = FIRST.with_name("config-3-pondering.json")
SCALED = FIRST.with_name("config-4-scaled-clocks.json")
DUEL_OPTIONS = FIRST.with_name("config-5-duel-options.json")
LADDER = FIRST.with_name("config-6-ladder.json")
FRESH_DEALS = FIRST.with_name("config-7-fresh-deals.json")


@pytest.fixture
def folder(tmp_path):
    return with_bots(tmp_path)


def test_json_gives_the_configuration_back_without_the_seed(folder):
    text = GOOD.replace('"./bob"', '"zoe"') + (
        f'end_on = "deck"\nworkers = 2\nlanes = 6\nseed = "{"ab" * 32}"\n[clocks]\nbank = "60+0.1"\n'
    )
    config = load_tournament(write(folder, text))
    stored = canonical_json(config)
    assert from_canonical_json(stored) == replace(config, seed=None)
    assert canonical_json(from_canonical_json(stored)) == stored
    assert "ab" * 32 not in stored
    assert "seed" not in json.loads(stored)


def test_a_configuration_without_gauntlets_can_still_be_read():
    """The golden file must never change."""
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


def test_a_configuration_with_a_gauntlet_can_still_be_read():
    config = from_canonical_json(GAUNTLETS.read_text())
    assert config.stages == (Stage(BASIC, 3, 4, balanced=True, challengers=1),)
    assert config.challengers == 1
    assert config.budget == Budget(Unit.GAMES, 14)
    assert config.schedule == "gauntlet-1"


def test_a_configuration_without_pondering_can_still_be_read():
    first = from_canonical_json(FIRST.read_text())
    assert first.pondering is False
    assert from_canonical_json(PONDERING.read_text()) == replace(first, pondering=True)


def test_a_configuration_without_scaled_clocks_can_still_be_read():
    first = from_canonical_json(FIRST.read_text())
    assert first.scale_clocks is False
    assert from_canonical_json(SCALED.read_text()) == replace(first, scale_clocks=True)


def test_a_configuration_without_options_of_the_duel_can_still_be_read():
    first = from_canonical_json(FIRST.read_text())
    basic, duel = first.stages
    assert duel.ruleset == RULESETS["duel"]
    rules = duel.ruleset.with_options(
        ghost_start=GhostStart.AS_DEALT,
        ghost_snatch=GhostSnatch.OPTIONAL,
        ghost_overflow=GhostOverflow.LOWEST,
    )
    changed = replace(first, stages=(basic, replace(duel, ruleset=rules)))
    assert from_canonical_json(DUEL_OPTIONS.read_text()) == changed


def test_ladders_can_still_be_read():
    config = from_canonical_json(LADDER.read_text())
    assert config.ladder == LadderStart(earlier=(Meetings(0, 1, 4.0, 2.5),), minutes=10.0)
    assert from_canonical_json(DUEL_OPTIONS.read_text()).ladder is None


def test_a_configuration_without_deals_can_still_be_read():
    earlier = from_canonical_json(DUEL_OPTIONS.read_text())
    basic, duel = earlier.stages
    assert basic.deals is duel.deals is Deals.SAME
    changed = replace(earlier, stages=(replace(basic, deals=Deals.FRESH), duel))
    assert from_canonical_json(FRESH_DEALS.read_text()) == changed


def list_keys(value, path=""):
    """Return the path of every key in a JSON value."""
    if isinstance(value, list):
        return {key for each in value for key in list_keys(each, path)}
    if not isinstance(value, dict):
        return set()
    return {
        key
        for name, each in value.items()
        for key in {f"{path}.{name}", *list_keys(each, f"{path}.{name}")}
    }


def test_every_key_is_in_a_golden_file():
    texts = [path.read_text() for path in FIRST.parent.glob("config-*.json")]
    stored = {key for text in texts for key in list_keys(json.loads(text))}
    now = [canonical_json(from_canonical_json(text)) for text in texts]
    written = {key for text in now for key in list_keys(json.loads(text))}
    assert written == stored, "add a golden file with the new keys, and a test that reads it"


def test_json_does_not_depend_on_how_the_file_is_written(folder):
    other = "\n".join(reversed(GOOD.strip().split("\n"))) + "\nshow_names = false # as ever\n"
    first = canonical_json(load_tournament(write(folder, GOOD)))
    assert canonical_json(load_tournament(write(folder, other))) == first


def test_names_of_the_arguments_of_a_command_are_not_stored(folder):
    config = load_tournament(write(folder, GOOD))
    named = replace(config, bot_keys=("BOT", "OTHER", "THIRD", "FOURTH"))
    assert [named.entry_key(number) for number in (0, 3)] == ["BOT", "FOURTH"]
    assert canonical_json(named) == canonical_json(config)


@pytest.mark.parametrize("text", ["", "{}", '{"name": "cup"}', "[]"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match=r"format: Field required|Invalid JSON|Input should be"):
        from_canonical_json(text)
