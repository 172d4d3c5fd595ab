"""The guide for bot authors is complete and agrees with the code."""

import re
import runpy
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from google.protobuf.json_format import Parse

from referee.bots.manifest import Build, LimitsTable, Manifest, Run, load_manifest
from referee.clocks import SECOND_US, Clocks
from referee.errors import Cause
from referee.pb import play_pb2, record_pb2, table_pb2
from referee.rules.actions import DecisionKind
from referee.rules.ruleset import RULESETS
from referee.sandbox import Limits

PROTO = Path(__file__).parents[2] / "proto"
GUIDE = (PROTO / "README.md").read_text()
FILES = [module.DESCRIPTOR for module in (play_pb2, table_pb2, record_pb2)]
MESSAGES = [message for file in FILES for message in file.message_types_by_name.values()]
NESTED = [nested for message in MESSAGES for nested in message.nested_types]
ENUMS = [enum for file in FILES for enum in file.enum_types_by_name.values()]
EXCHANGE = runpy.run_path(str(PROTO / "exchange.py"))


def by_name(descriptor):
    return descriptor.name


def section(heading):
    """Return the text between a heading and the next one."""
    return re.split(r"^#+ ", GUIDE.split(f"\n{heading}\n")[1], flags=re.MULTILINE)[0]


def rows(heading):
    """Return the rows of a section's first table, without its header, each a list of cells."""
    table = re.search(r"(?:^\|.*\n)+", section(heading), re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))] for row in table[2:]]


def first_cells(heading):
    return [row[0].strip("`") for row in rows(heading)]


@pytest.mark.parametrize("message", MESSAGES, ids=by_name)
def test_guide_explains_every_field_of_a_message_in_order(message):
    assert first_cells(f"### `{message.name}`") == [field.name for field in message.fields]


@pytest.mark.parametrize("enum", ENUMS, ids=by_name)
def test_guide_explains_every_value_of_an_enum_in_order_and_zero_last(enum):
    values = sorted(enum.values, key=lambda value: value.number or len(enum.values))
    assert [value.number for value in values] == [*range(1, len(values)), 0]
    assert first_cells(f"### `{enum.name}`") == [value.name for value in values]


@pytest.mark.parametrize("message", NESTED, ids=by_name)
def test_guide_explains_every_field_of_an_event(message):
    [row] = [row for row in rows("### `Event`") if row[1] == f"`{message.name}`"]
    assert set(re.findall(r"`(\w+)`", row[3])) >= {field.name for field in message.fields}


def test_only_events_are_nested_and_there_is_one_service():
    assert all(nested.containing_type.name == "Event" for nested in NESTED)
    assert not any(message.enum_types for message in [*MESSAGES, *NESTED])
    assert [service.full_name for service in play_pb2.DESCRIPTOR.services_by_name.values()] == [
        "linko.v1.RefereeService"
    ]


def test_guide_lists_every_cause_of_a_fault():
    assert first_cells("## 12. Strikes, forfeits and the stand-in") == [
        cause.value for cause in Cause
    ]


def test_guide_describes_the_stand_in_for_every_kind_of_decision():
    described = set(
        re.findall(r"DECISION_KIND_(\w+)", section("## 12. Strikes, forfeits and the stand-in"))
    )
    assert described == {kind.name for kind in DecisionKind}


def test_table_of_rulesets_agrees_with_the_engine():
    table = rows("### Rulesets")
    header = re.search(r"^\| \| (.*) \|$", section("### Rulesets"), re.MULTILINE)[1]
    names = [cell.strip("`") for cell in header.split(" | ")]
    columns = dict(zip(names, zip(*[row[1:] for row in table], strict=True), strict=True))
    assert columns == {
        name: (
            f"{rules.min_players}–{rules.max_players}".replace("2–2", "2"),  # noqa: RUF001
            *(
                "yes" if flag else "no"
                for flag in (
                    rules.optional_draw,
                    rules.ones_snatch_jokers,
                    rules.ones_snatch_thirteens,
                    rules.hand_size_breaks_ties,
                    rules.ghost,
                )
            ),
        )
        for name, rules in RULESETS.items()
    }


def test_usual_limits_in_the_guide_are_the_defaults():
    usual = {row[0]: row[3] for row in rows("## 11. Clocks")}
    clocks = Clocks()
    assert usual == {
        "start-up": f"{clocks.start_up_us // SECOND_US} s",
        "game start": f"{clocks.game_start_us // SECOND_US} s",
        "decision": f"{clocks.decision_us // SECOND_US} s",
        "bank": "none",
    }
    assert clocks.bank_us is None


def test_worked_exchange_has_the_messages_of_the_referee():
    assert EXCHANGE["update_guide"](GUIDE) == GUIDE, "run: .venv/bin/python proto/exchange.py"


def test_every_json_block_is_the_message_that_its_comment_names():
    blocks = list(EXCHANGE["BLOCK"].finditer(GUIDE))
    assert len(blocks) == GUIDE.count("```json")
    exchange = dict(EXCHANGE["exchange"]())
    assert [block["key"] for block in blocks] == list(exchange)
    for block in blocks:
        message = Parse(block["json"], getattr(play_pb2, block["message"])())
        assert message == exchange[block["key"]]


def test_example_manifest_is_valid_and_has_every_key(tmp_path):
    [example] = re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (tmp_path / "bot.toml").write_text(example)
    manifest = load_manifest(tmp_path)
    assert manifest.model_fields_set == set(Manifest.model_fields)
    assert manifest.build.command == ("go", "build", "-o", "bot", ".")
    assert manifest.run.model_fields_set == set(Run.model_fields)
    assert tomllib.loads(example)["limits"] == asdict(Limits())


def test_guide_lists_every_key_of_a_manifest():
    tables = {"build": Build, "run": Run}
    flat = []
    for name in Manifest.model_fields:
        inner = tables[name].model_fields if name in tables else ()
        own = "[limits]" if name == "limits" else name
        flat += [f"{name}.{part}" for part in inner] or [own]
    assert first_cells("## 3. The folder of a bot") == flat


def test_guide_lists_every_limit_with_its_default():
    limits = asdict(Limits())
    assert [row[:2] for row in rows("### Limits")] == [
        [f"`limits.{key}`", str(default)] for key, default in limits.items()
    ]
    assert set(limits) == set(LimitsTable.model_fields)


def test_contents_list_the_sections():
    contents = re.findall(r"^(\d+\. )\[(.*)\]\(#(.*)\)$", GUIDE, re.MULTILINE)
    headings = re.findall(r"^## (\d+\. )(.*)$", GUIDE, re.MULTILINE)
    assert [(number, title) for number, title, _ in contents] == headings
    for number, title, anchor in contents:
        slug = re.sub(r"[^\w -]", "", f"{number}{title}".lower()).replace(" ", "-")
        assert anchor == slug
