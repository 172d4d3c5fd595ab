"""`bots schema` and `tournament schema` accept what the referee accepts, and refuse wrong keys and values."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from real_runs import run_here

ROOT = Path(__file__).parents[2]
FILES = {
    "tournament": sorted((ROOT / "tournaments").glob("*.toml")),
    "bots": sorted((ROOT / "sample_bots").glob("*/bot.toml")),
}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """The schema that each group of commands prints."""
    found = {}
    for group in FILES:
        done = run_here([group, "schema"], tmp_path_factory.mktemp(group), {})
        assert (done.returncode, done.stderr) == (0, "")
        found[group] = Draft202012Validator(json.loads(done.stdout))
        Draft202012Validator.check_schema(found[group].schema)
    return found


@pytest.mark.parametrize(
    ("group", "file"),
    [(group, file) for group, files in FILES.items() for file in files],
    ids=lambda value: str(value).removeprefix(f"{ROOT}/"),
)
def test_every_file_of_the_project_fits_its_schema(schemas, group, file):
    schemas[group].validate(tomllib.loads(file.read_text()))


TOURNAMENT = "name = 'cup'\nbots = ['a', './b']\nruleset = 'duel'\nseats = 2\n"
BOT = "name = 'ann'\nversion = '1'\nauthor = 'Ä'\nlanguage = 'c'\nrun.command = ['./bot']\n"
GOOD = [
    ("tournament", TOURNAMENT),
    ("tournament", f"{TOURNAMENT}budget = 100\n"),
    ("tournament", f"{TOURNAMENT}budget = {{ minutes = 1.5 }}\ngames_in_flight = 4\n"),
    ("tournament", TOURNAMENT.replace("'./b'", "{ path = './b', name = 'b2', args = ['-d'] }")),
    ("bots", BOT),
]
WRONG = [
    ("tournament", f"{TOURNAMENT}matchs = 1\n"),
    ("tournament", f"{TOURNAMENT}clocks.decison = 1\n"),
    ("tournament", TOURNAMENT.replace("duel", "dual")),
    ("tournament", TOURNAMENT.replace("cup", "Cup!")),
    ("tournament", TOURNAMENT.replace("2", "'2'")),
    ("tournament", f"{TOURNAMENT}budget = {{ games = 1, minutes = 1 }}\n"),
    ("tournament", f"{TOURNAMENT}budget = 0\n"),
    ("tournament", f"{TOURNAMENT}games_in_flight = 'many'\n"),
    ("tournament", f"{TOURNAMENT}tables = [2, 2]\n"),
    ("tournament", TOURNAMENT.replace("seats = 2", "tables = [2, 6]")),
    ("tournament", TOURNAMENT.replace("seats = 2", "seats = 1")),
    ("tournament", f"{TOURNAMENT}stage = [{{ seats = 0 }}]\n"),
    ("tournament", f"{TOURNAMENT}seed = '12'\n"),
    ("bots", f"{BOT}comand = 1\n"),
    ("bots", BOT.replace("['./bot']", "[]")),
    ("bots", BOT.replace("'Ä'", '"\\u0007"')),
    ("bots", f"{BOT}rulesets = ['poker']\n"),
    ("bots", f"{BOT}limits.memory_mib = 1\n"),
]


@pytest.mark.parametrize(("group", "text"), GOOD)
def test_correct_file_fits_its_schema(schemas, group, text):
    assert schemas[group].is_valid(tomllib.loads(text))


@pytest.mark.parametrize(("group", "text"), WRONG)
def test_wrong_key_or_value_does_not_fit_the_schema(schemas, group, text):
    assert not schemas[group].is_valid(tomllib.loads(text))


@pytest.mark.parametrize("group", FILES)
def test_schema_has_no_null(schemas, group):
    assert "null" not in json.dumps(schemas[group].schema)
