"""The pages of the project: every link leads somewhere, and what they say about the code is true."""

import ast
import json
import re
import runpy
import subprocess
import sys
import tomllib
from functools import cache

import pytest
from pages import FOLDERS, PAGES, ROOT, blocks, name_of, section, table, write_bot_of_readme

from referee import cli, deals
from referee.cli import options
from referee.records import ScheduledGame
from referee.rules.ruleset import RULESETS
from referee.tournament.config_file import StageTable, TournamentFile
from referee.tournament.config_reader import load_tournament
from referee.tournament.terms import (
    CommittedBot,
    Terms,
    digest_bots,
    digest_configuration,
    digest_schedule,
)

MOST_BYTES = 8192
"""The limit for README.md."""
BASE_CLASSES = {"goes_wrong", "goes_wrong_for_good", "burglar"}
"""The misbehaving bots that are no programs."""
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")
CODE_SPAN = re.compile(r"(`+)(?:(?!\n\n|`).)+\1", re.DOTALL)


def prose_lines(page):
    """Return the lines of a page; lines of fenced code blocks are empty."""
    lines, fence = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        inside = fence is not None
        if mark and not inside:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = None
        lines.append("" if inside or mark else line)
    assert fence is None, f"{page}: a code block is not closed"
    return lines


def anchor_of(heading):
    """Return the anchor that GitHub gives to a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page):
    """Return the anchors of a page; equal headings are numbered as GitHub does."""
    found, counts = set(), {}
    for line in prose_lines(page):
        if heading := re.fullmatch(r"#{1,6} +(.*?)(?: +#+)?", line):
            anchor = anchor_of(heading[1])
            count = counts.get(anchor, 0)
            counts[anchor] = count + 1
            found.add(f"{anchor}-{count}" if count else anchor)
    return found


def links(page):
    """Yield the line number and the target of every link, code spans excluded.

    The text of a link, and a code span, may continue on the next line of their paragraph.
    """
    text = "\n".join(prose_lines(page))
    text = CODE_SPAN.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)
    for link in LINK.finditer(text):
        yield text.count("\n", 0, link.start(1)) + 1, link[1]


def broken_links(page, root=ROOT):
    """Return `FILE:LINE: TARGET: reason` for each relative link that leads nowhere."""
    problems = []
    for number, target in links(page):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        place = f"{page.relative_to(root).as_posix()}:{number}: {target}"
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.is_relative_to(root):
            problems.append(f"{place}: outside of the repository")
        elif not goal.exists():
            problems.append(f"{place}: no such file")
        elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
            problems.append(f"{place}: no such heading")
        elif anchor and goal.suffix != ".md":
            problems.append(f"{place}: an anchor into a file that is no page")
    return problems


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_a_page_names_exists(page):
    """The folder `my_bot` is the reader's own."""
    text = "\n".join(prose_lines(page))
    named = set(re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|mjs))`", text))
    named |= set(re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text))
    places = (page.parent, ROOT, ROOT / "referee")
    assert [
        name
        for name in sorted(named)
        if not name.startswith("my_bot/") and not any((place / name).exists() for place in places)
    ] == []


def test_pages_are_found():
    names = {name_of(page) for page in PAGES}
    assert {"README.md", "proto/README.md", "proto/DEALS.md", ".github/CONTRIBUTING.md"} <= names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a](missing.md)", "no such file"),
        ("[a](#no-heading)", "no such heading"),
        ("[a](README.md#no-heading)", "no such heading"),
        ("[a](../../../etc/passwd)", "outside of the repository"),
        ("![a](picture.svg)", "no such file"),
        ("a | [`b` c](missing.md) | d", "no such file"),
        ("[![a](README.md)](missing.md)", "no such file"),
        ("[a](README.md) [b](missing.md)", "no such file"),
    ],
)
def test_a_broken_link_is_reported_with_file_and_line(tmp_path, text, reason):
    (tmp_path / "README.md").write_text("# Heading\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    [problem] = broken_links(page, tmp_path)
    assert problem.startswith("page.md:3: ")
    assert problem.endswith(reason)


def test_a_broken_link_with_a_text_on_two_lines_is_reported(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nSee [the\npage](missing.md) of `a`.\n")
    assert broken_links(page, tmp_path) == ["page.md:4: missing.md: no such file"]


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://example.org/#x)",
        "[a](#page)",
        "[a](other.md#a-heading-with-code-1)",
        "`[a](missing.md)`",
        "```\n[a](missing.md)\n```",
    ],
)
def test_a_good_link_is_not_reported(tmp_path, text):
    (tmp_path / "other.md").write_text(
        "# A heading\n## A heading, with `code`\n### A heading with code\n"
    )
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{text}\n")
    assert broken_links(page, tmp_path) == []


# README.md


def test_readme_has_at_most_8192_bytes():
    assert (ROOT / "README.md").stat().st_size <= MOST_BYTES


def test_readme_lists_every_page():
    """The pages of single sample bots are listed in the page of the sample bots."""
    index = section("README.md", "Where the rest is")
    listed = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\) \|", index, re.MULTILINE)
    assert all(name == target for name, target in listed)
    names = {name_of(page) for page in PAGES} - {"README.md"}
    bots = {name for name in names if re.fullmatch(r"sample_bots/\w+/README\.md", name)}
    assert [target for _, target in listed] == list(dict.fromkeys(target for _, target in listed))
    assert {target for _, target in listed} == names - bots
    linked = {f"sample_bots/{target}" for _, target in links(ROOT / "sample_bots" / "README.md")}
    assert bots <= linked


def test_picture_shows_the_ratings_of_the_demo():
    [target] = [target for _, target in links(ROOT / "README.md") if target.endswith(".svg")]
    picture = (ROOT / target).read_text()
    assert "Generated with Rich" in picture
    bots = re.findall(r"sample_bots/(\w+)", (ROOT / "tournaments" / "demo.toml").read_text())
    assert len(bots) == 5
    assert all(f"{bot}@" in picture for bot in bots)


# The strength of sample bots


def test_strength_of_every_bot_of_the_tournament_is_shown_for_every_ruleset():
    rows = table("sample_bots/README.md", "How strong they are")
    file = (ROOT / "tournaments" / "sample-bots.toml").read_text()
    assert {row[0].strip("`") for row in rows} == set(re.findall(r"sample_bots/(\w+)\"", file))
    fit = re.compile(r"\d+\.\d \[\d+\.\d, \d+\.\d\]|< \d+\.\d|> \d+\.\d")
    assert all(fit.fullmatch(cell) for row in rows for cell in row[1:])
    assert {len(row) for row in rows} == {1 + len(RULESETS)}


def test_strengths_are_written_as_a_table():
    def row(ruleset, bot, *fit):
        return {"ruleset": ruleset, "bot": bot} | dict(
            zip(("fit", "fit_low", "fit_high"), fit, strict=True)
        )

    script = runpy.run_path(str(ROOT / ".github" / "write_strengths.py"))
    rows = [
        row("duel", "a@1.0", 20.04, 19, 21),
        row("duel", "b@2", 30, 29.96, None),
        row("basic", "a@1.0", 25, None, 25.5),
        row("basic", "b@2", 24, 23, 25),
    ]
    written = script["strength_table"](rows)
    assert written.splitlines() == [
        "| bot | `basic` | `duel` |",
        "| --- | --- | --- |",
        "| `b` | 24.0 [23.0, 25.0] | > 30.0 |",
        "| `a` | < 25.5 | 20.0 [19.0, 21.0] |",
    ]
    page = (ROOT / "sample_bots" / "README.md").read_text()
    assert len(script["TABLE"].findall(page)) == 1


# Commands


def test_command_reference_is_up_to_date():
    script = runpy.run_path(str(ROOT / ".github" / "write_commands.py"))
    page = (ROOT / "referee" / "cli" / "README.md").read_text()
    assert page == script["reference"](), "run `.venv/bin/python .github/write_commands.py`"


# Tournaments


def test_listed_exit_codes_are_those_of_the_commands():
    codes = {int(row[0]) for row in table("tournaments/README.md", "Exit codes")}
    assert codes == {0, options.UNSOUND, options.USER_ERROR, options.INTERRUPTED}
    assert all(str(code) in cli.__doc__ for code in codes)


def test_every_key_of_a_tournament_file_is_listed_with_its_default():
    rows = table("tournaments/README.md", "Keys")
    listed = {row[0].strip("`"): row[1].strip('`"') for row in rows}
    flat = {}
    for name, field in TournamentFile.model_fields.items():
        if name in {"clocks", "faults"}:
            flat |= {
                f"{name}.{inner}": part.default
                for inner, part in field.annotation.model_fields.items()
            }
        else:
            flat[{"stage": "[[stage]]", "limits": "[limits]"}.get(name, name)] = field.default
    assert set(listed) == set(flat)
    [of_stages] = (row[2] for row in rows if row[0] == "`[[stage]]`")
    assert not [key for key in StageTable.model_fields if f"`{key}`" not in of_stages]
    for key, default in flat.items():
        if isinstance(default, bool | int | float):
            assert listed[key] == str(default).lower(), key


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("README.md", "A minimal tournament file"),
        ("tournaments/README.md", "Tournament files"),
    ],
)
def test_example_tournament_file_can_be_loaded(tmp_path, page, title):
    [example] = blocks("toml", section(page, title))
    (tmp_path / "sample_bots").symlink_to(ROOT / "sample_bots")
    [*_, own] = tomllib.loads(example)["bots"]
    if own == "../my_bot":
        write_bot_of_readme(tmp_path / "my_bot")
    path = tmp_path / "tournaments" / "example.toml"
    path.parent.mkdir()
    path.write_text(example)
    assert load_tournament(path).name == tomllib.loads(example)["name"]


# Benches and misbehaving bots


def test_every_bench_is_listed():
    rows = table("tests/bench/README.md", "Overview")
    benches = {path.name for path in (ROOT / "tests" / "bench").glob("bench_*.py")}
    assert {row[0].strip("`") for row in rows} == benches


@pytest.mark.extended("starts more commands")
def test_every_bench_finds_what_it_imports():
    """No other test runs most benches, so only this one notices if a name that they import changes."""
    names = {path.stem for path in (ROOT / "tests" / "bench").glob("bench_*.py")}
    names.remove("bench_train")  # needs libraries that the tests do not install
    done = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(sorted(names))}"],
        cwd=ROOT / "tests" / "bench",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", ["bot.py", "burglar.py"])
def test_every_misbehaving_bot_is_listed(file):
    folder = ROOT / "tests" / "misbehaving"
    classes = re.findall(r"^class (\w+)", (folder / file).read_text(), re.MULTILINE)
    name_of_class = runpy.run_path(str(folder / "bot.py"))["name_of"]
    programs = {name_of_class(type(name, (), {})) for name in classes}
    listed = set(re.findall(r"`(\w+)(?: SEED)?`", (folder / "README.md").read_text()))
    missing = programs - listed
    assert missing == BASE_CLASSES & programs, f"add {missing} to tests/misbehaving/README.md"


# Rules and deals


def test_every_ruling_is_listed():
    rows = table("referee/rules/README.md", "Rulings")
    assert [row[0] for row in rows] == [f"R{number}" for number in range(1, 20)]


def test_every_ruleset_has_its_sources():
    rows = table("referee/rules/README.md", "Sources and rulesets")
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row[0])]
    assert sorted(listed) == sorted(RULESETS)


def test_example_deal_is_what_the_referee_deals():
    text = section("proto/DEALS.md", "Test values")
    seed = bytes(32)
    assert deals.seed_digest(seed) in text
    deck = deals.deck(seed, "demo-deal-1", RULESETS["basic"])
    begins = re.search(r"begins\s+with\s+the\s+cards\s+([\d\s]+)\.", text)[1].split()
    assert [int(card) for card in begins] == list(deck[: len(begins)])
    assert len(begins) == 13


def test_example_commitment_is_what_the_referee_computes():
    text = section("proto/DEALS.md", "Test values")
    configuration, bots, schedule, terms = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    games = [line.split(" ") for line in schedule.splitlines()]
    expected = Terms(
        seed=deals.seed_digest(bytes(32)),
        configuration=digest_configuration(json.loads(configuration)),
        bots=digest_bots([CommittedBot(**bot) for bot in json.loads(bots)]),
        schedule=digest_schedule(
            ScheduledGame(
                index=index,
                stage=int(stage),
                round=int(round_number),
                match=0,
                seating=index,
                lane=int(lane),
                bots=tuple(seated),
                deal_id=deal_id,
                game_id=game_id,
            )
            for index, (game_id, deal_id, stage, round_number, lane, *seated) in enumerate(games)
        ),
    )
    assert terms == expected.text
    assert f"`{expected.commitment}`" in text


# The map of the code, the glossary and words


def test_every_part_of_the_package_is_in_the_map():
    parts = {
        path.name
        for path in (ROOT / "referee").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed" and path.suffix != ".md"
    }
    assert {row[0].strip("`") for row in table("referee/README.md", "Packages")} == parts


def test_listed_layers_are_those_of_import_linter():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = configuration["tool"]["importlinter"]["contracts"][0]
    [listed] = blocks("", section("referee/README.md", "Import rules"))
    assert listed.splitlines() == contract["layers"]


MAP = (ROOT / "referee" / "README.md").read_text()
GLOSSARY = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| `(\w+)` in `([\w/.]+)` \|$",
    MAP.split("\n## Glossary\n")[1],
    re.MULTILINE,
)


def test_every_row_of_the_glossary_names_a_place():
    rows = [line for line in MAP.split("\n## Glossary\n")[1].splitlines() if line.startswith("| ")]
    headers = [line for line in rows if line == "| term | meaning | where |"]
    assert len(rows) - len(headers) == len(GLOSSARY) > 60


def test_no_term_of_the_glossary_occurs_twice():
    terms = [term for row in GLOSSARY for term in row[0].split(", ")]
    assert sorted(terms) == sorted(set(terms))


@pytest.mark.parametrize(("term", "identifier", "module"), [(row[0], *row[2:]) for row in GLOSSARY])
def test_a_term_of_the_glossary_is_in_its_module(term, identifier, module):
    text = (ROOT / "referee" / module).read_text()
    definition = (
        rf"^ *(?:(?:class|(?:async )?def|type) {identifier}\b|{identifier}(?:: .+)?(?: = .*)?$)"
    )
    assert re.search(definition, text, re.MULTILINE), f"{term}: not defined in {module}"


def test_no_name_in_the_package_has_a_refused_word():
    rows = table(".github/CONTRIBUTING.md", "Words")
    refused = {word for row in rows for word in re.findall(r"`(\w+)`", row[0])}
    found = set()
    for path in (ROOT / "referee").rglob("*.py"):
        if not {"pb", "sample_bots"} & set(path.relative_to(ROOT).parts):
            for node in ast.walk(ast.parse(path.read_text())):
                name = getattr(node, "name", None) or getattr(node, "arg", None) or ""
                name = getattr(node, "id", None) or getattr(node, "attr", None) or name
                words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
                found |= {f"{path.name}: {name}" for word in words if word in refused}
    assert refused >= {"ask", "settle", "told"}
    assert not found


def test_every_call_on_the_way_to_a_decision_is_in_its_module():
    calls = [row[0] for row in table("referee/README.md", "From the command to a decision")]
    places = [re.fullmatch(r"`(\w+)` in `([\w/]+\.py)`", call).groups() for call in calls]
    assert len(places) == 12
    for function, module in places:
        assert f"def {function}(" in (ROOT / "referee" / module).read_text(), (function, module)


def test_every_module_on_the_walk_of_a_decision_exists():
    [walk] = blocks("", section("referee/README.md", "The walk of one decision"))
    modules = [line.split()[0] for line in walk.splitlines()]
    assert len(modules) == 11
    assert all((ROOT / "referee" / module).is_file() for module in modules)
