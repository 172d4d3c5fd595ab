"""Every option of `Ruleset.with_options` is known everywhere: each test checks one place that must know it."""

import inspect
import json
from enum import Enum

import pytest
from pages import ROOT, section

from referee.pb import play_pb2, table_pb2
from referee.protocol.values import ruleset_message, ruleset_value
from referee.rules.ruleset import RULESETS, Ruleset, ruleset_text
from referee.sdk.bot import Game as BotGame
from referee.tournament.config_reader import load_tournament

OPTIONS = [*inspect.signature(Ruleset.with_options).parameters][1:]
DUEL = RULESETS["duel"]


def changed(option):
    """Return the duel with another value of one option."""
    value = getattr(DUEL, option)
    if isinstance(value, Enum):
        other = next(each for each in type(value) if each is not value)
    else:
        other = not value if isinstance(value, bool) else value + 1
    return DUEL.with_options(**{option: other})


def to_toml(value):
    return json.dumps(value.value if isinstance(value, Enum) else value)


@pytest.mark.parametrize("option", OPTIONS)
def test_option_survives_a_message(option):
    rules = changed(option)
    assert rules != DUEL
    assert ruleset_value(ruleset_message(rules)) == rules


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("basic", "0a05626173696310012801380140f403"),
        ("duel", "0a046475656c100128013001380140f403480150015801"),
    ],
)
def test_ruleset_of_earlier_records_can_be_read(name, message):
    """The bytes must never change. In records of earlier versions a new field is 0."""
    assert ruleset_value(table_pb2.Ruleset.FromString(bytes.fromhex(message))) == RULESETS[name]


@pytest.mark.parametrize("option", OPTIONS)
def test_text_names_the_changed_option(option):
    value = getattr(changed(option), option)
    assert ruleset_text(changed(option)) == f"duel ({option} = {to_toml(value)})"


@pytest.mark.parametrize("option", OPTIONS)
def test_bot_in_python_gets_the_option(option):
    view = table_pb2.View(hand_sizes=[13, 13])
    start = play_pb2.GameStart(ruleset=ruleset_message(changed(option)), view=view)
    assert BotGame(start).ruleset == changed(option)


@pytest.mark.parametrize("option", OPTIONS)
def test_tournament_file_sets_the_option(tmp_path, option):
    value = getattr(changed(option), option)
    file = tmp_path / "cup.toml"
    file.write_text(
        f'name = "cup"\nbots = ["{ROOT}/sample_bots/random", "{ROOT}/sample_bots/greedy"]\n'
        f'ruleset = "duel"\nseats = 2\nmatches = 1\n{option} = {to_toml(value)}\n'
    )
    (stage,) = load_tournament(file).stages
    assert stage.ruleset == changed(option)


def test_second_engine_of_the_tests_knows_every_option():
    source = (ROOT / "tests" / "rules" / "oracle.py").read_text()
    assert not [option for option in OPTIONS if f".{option}" not in source]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("referee/rules/README.md", "Sources and rulesets"),
        ("referee/train/README.md", "OpenSpiel"),
    ],
)
def test_page_has_every_option(page, title):
    text = section(page, title)
    assert not [option for option in OPTIONS if f"`{option}`" not in text]
