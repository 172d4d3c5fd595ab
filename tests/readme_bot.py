"""The bot in ten lines of README.md, written to a folder."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def write_bot_of_readme(folder):
    """Write the program and the manifest of the section "A bot in ten lines"."""
    section = README.split("\n## A bot in ten lines\n")[1].split("\n## ")[0]
    folder.mkdir()
    for language, name in (("python", "bot.py"), ("toml", "bot.toml")):
        [block] = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        (folder / name).write_text(block)
