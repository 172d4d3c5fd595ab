"""The pages of the project, that is, its Markdown files: find them, and read their sections and tables."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (".github", "proto", "referee", "sample_bots", "tests", "tournaments")
MADE_BY_TOOLS = {"node_modules", "target", "build", "dist", "__pycache__", ".pytest_cache"}
PAGES = sorted(
    page
    for top in (ROOT, *(ROOT / folder for folder in FOLDERS))
    for page in (top.glob("*.md") if top == ROOT else top.rglob("*.md"))
    if not MADE_BY_TOOLS & set(page.relative_to(ROOT).parts)
    and not page.is_relative_to(ROOT / "referee" / "sample_bots")  # a link to `sample_bots`
)


def name_of(page):
    """Return the path of a page from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def section(name, title):
    """Return the text of a page from a heading of any level to the next heading."""
    [_, text] = re.split(rf"^#+ {re.escape(title)}$", (ROOT / name).read_text(), flags=re.MULTILINE)
    return re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0]


def table(name, title):
    """Return the rows of a section's first table, without its header, each a list of cells."""
    lines = re.search(r"(?:^\|.*\n)+", section(name, title), re.MULTILINE)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def blocks(language, text):
    """Return the content of every fenced code block of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def write_bot_of_readme(folder):
    """Write the program and the manifest of "A bot in ten lines" in README.md to a new folder."""
    text = section("README.md", "A bot in ten lines")
    folder.mkdir()
    (folder / "bot.py").write_text(*blocks("python", text))
    (folder / "bot.toml").write_text(*blocks("toml", text))
