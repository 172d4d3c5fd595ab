"""Test that `bot.toml` is read, and that each mistake in it is reported in one line."""

import errno
import os
import socket
from pathlib import Path

import pytest

from referee.bots import PYTHON_PACKAGES, BotSpec
from referee.bots.manifest import Manifest, Variant, load_manifest
from referee.errors import UserError
from referee.records import BotId
from referee.rules.ruleset import RULESETS
from referee.sandbox import Limits

HEAD = 'name = "greedy"\nversion = "1.0"\nauthor = "A. Uthor"\nlanguage = "python"\n'
RUN = '[run]\ncommand = ["python3", "bot.py"]\n'


def folder_with(tmp_path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    (tmp_path / "bot.toml").write_bytes(data)
    return tmp_path


def error_of(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_manifest(folder)
    return str(caught.value)


def test_manifest_with_only_required_keys_has_defaults(tmp_path):
    manifest = load_manifest(folder_with(tmp_path, HEAD + RUN))
    assert manifest.bot == BotId("greedy", "1.0")
    assert (manifest.author, manifest.language) == ("A. Uthor", "python")
    assert manifest.run.command == ("python3", "bot.py")
    assert manifest.description is None
    assert manifest.build is None


def test_optional_keys_of_a_manifest_are_read(tmp_path):
    text = HEAD + 'description = "Plays high."\n[build]\ncommand = ["make", "all"]\n' + RUN
    manifest = load_manifest(folder_with(tmp_path, text))
    assert manifest.description == "Plays high."
    assert manifest.build is not None
    assert manifest.build.command == ("make", "all")


def test_spec_of_a_relative_folder_has_the_absolute_folder(tmp_path, monkeypatch):
    bot = tmp_path / "bots" / "greedy"
    bot.mkdir(parents=True)
    folder_with(bot, HEAD + RUN)
    monkeypatch.chdir(tmp_path)
    folder = Path("bots/../bots/greedy")
    spec = load_manifest(folder).spec(folder)
    assert spec == BotSpec(BotId("greedy", "1.0"), bot.resolve(), ("python3", "bot.py"))


def test_bot_with_python_packages_has_no_spec_in_a_folder_with_a_colon(tmp_path):
    bot = tmp_path / "a:b"
    bot.mkdir()
    manifest = load_manifest(folder_with(bot, HEAD + RUN))
    assert manifest.spec(bot).folder == bot.resolve()
    (bot / PYTHON_PACKAGES).mkdir()
    with pytest.raises(UserError, match="move the league or the bot to a path without one"):
        manifest.spec(bot)


def test_empty_fetch_is_not_a_missing_fetch(tmp_path):
    text = HEAD + RUN + '[build]\ncommand = ["make"]\nfetch = []\n'
    assert load_manifest(folder_with(tmp_path, text)).build.fetch == ()


def test_command_with_the_arguments_of_a_variant_is_limited(tmp_path):
    folder = folder_with(tmp_path, HEAD + f"[run]\ncommand = {['x'] * 999}\n")
    assert len(load_manifest(folder, Variant("deep", ("a",))).run.command) == 1000
    with pytest.raises(UserError) as caught:
        load_manifest(folder, Variant("deep", ("a", "b")))
    assert str(caught.value) == "deep: run.command and args: must have at most 1,000 words together"


def test_limits_of_a_manifest_replace_the_defaults(tmp_path):
    text = HEAD + RUN + "[limits]\nmemory_mib = 4096\ncpus = 2\nscratch_mib = 1\n"
    folder = folder_with(tmp_path, text)
    manifest = load_manifest(folder)
    assert manifest.spec(folder).limits == Limits(memory_mib=4096, cpus=2.0, scratch_mib=1)
    assert manifest.limits.explicit == {
        "memory_mib": 4096,
        "cpus": 2.0,
        "scratch_mib": 1,
    }


def test_manifest_without_limits_has_the_default_limits(tmp_path):
    folder = folder_with(tmp_path, HEAD + RUN)
    assert load_manifest(folder).spec(folder).limits == Limits(1024, 64, 1.0, 64, 1024, 1024)


def test_missing_folder_is_refused(tmp_path):
    assert error_of(tmp_path / "nobody") == f"{tmp_path}/nobody: no such folder"


def test_file_instead_of_a_folder_is_refused(tmp_path):
    (tmp_path / "bot.py").touch()
    assert error_of(tmp_path / "bot.py") == f"{tmp_path}/bot.py: is a file; name its folder"


def test_folder_without_a_manifest_is_refused(tmp_path):
    assert error_of(tmp_path) == f"{tmp_path}/bot.toml: no such file"


def test_folder_instead_of_the_manifest_is_refused(tmp_path):
    (tmp_path / "bot.toml").mkdir()
    assert error_of(tmp_path) == f"{tmp_path}/bot.toml: not a file"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_pipe_or_socket_instead_of_the_manifest_is_refused(tmp_path, monkeypatch, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / "bot.toml")
    else:
        monkeypatch.chdir(tmp_path)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("bot.toml")
    assert error_of(tmp_path) == f"{tmp_path}/bot.toml: not a file"


@pytest.mark.parametrize("place", ["bot.toml", "sub", "sub/real.toml"])
def test_link_that_replaces_a_part_of_the_path_after_the_check_is_not_followed(
    tmp_path, monkeypatch, place
):
    bot, elsewhere = tmp_path / "bot", tmp_path / "elsewhere"
    for folder in (bot, elsewhere):
        (folder / "sub").mkdir(parents=True)
    if place == "bot.toml":
        (bot / "bot.toml").write_text(HEAD + RUN)
    else:
        (bot / "bot.toml").symlink_to("sub/real.toml")
        (bot / "sub" / "real.toml").write_text(HEAD + RUN)
    for name in ("bot.toml", "sub/real.toml"):
        (elsewhere / name).write_text("secret = 1")
    realpath = os.path.realpath

    def resolve_and_replace(path):
        found = realpath(path)
        if path == bot / "bot.toml":
            (bot / place).rename(tmp_path / "before")
            (bot / place).symlink_to(elsewhere / place)
        return found

    monkeypatch.setattr(os.path, "realpath", resolve_and_replace)
    assert error_of(bot) == f"{bot}/bot.toml: {os.strerror(errno.ELOOP)}"


def test_manifest_that_is_a_link_out_of_the_folder_is_not_read(tmp_path):
    bot = tmp_path / "bot"
    bot.mkdir()
    (tmp_path / "secret").write_text(HEAD + RUN)
    (bot / "bot.toml").symlink_to("../secret")
    assert error_of(bot) == (
        f"{bot}/bot.toml: a link that leads out of the bot's folder, to {tmp_path}/secret"
    )


def test_manifest_may_be_a_link_inside_the_folder(tmp_path):
    bot = tmp_path / "bot"
    bot.mkdir()
    (bot / "real.toml").write_text(HEAD + RUN)
    (bot / "bot.toml").symlink_to("real.toml")
    (tmp_path / "link").symlink_to(bot)
    assert load_manifest(tmp_path / "link").name == "greedy"


INVALID = {
    "not UTF-8": (b'name = "\xff"', "not UTF-8 text"),
    "nested too deeply": (
        "name = " + "[" * 20_000,
        "its lists or tables are nested too deeply",
    ),
    "empty file": (
        "",
        "name: missing",
        "version: missing",
        "author: missing",
        "language: missing",
        "run: missing",
    ),
    "no run table": (HEAD, "run: missing"),
    "no run command": (HEAD + "[run]\n", "run.command: missing"),
    "empty command": (
        HEAD + "[run]\ncommand = []\n",
        "run.command: must not be empty: name a program",
    ),
    "empty program": (
        HEAD + '[run]\ncommand = ["", "x"]\n',
        "run.command: the first word must name a program",
    ),
    "limit that is too low": (
        HEAD + RUN + "[limits]\nopen_files = 3\n",
        "limits.open_files: must be at least 32",
    ),
    "fraction of a process": (
        HEAD + RUN + "[limits]\nprocesses = 1.5\n",
        "limits.processes: must be a whole number",
    ),
    "infinite CPU limit": (
        HEAD + RUN + "[limits]\ncpus = inf\n",
        "limits.cpus: must be a finite number",
    ),
    "unknown limit": (
        HEAD + RUN + "[limits]\nmemory = 5\n",
        "limits.memory: unknown key (did you mean 'memory_mib'?)",
    ),
    "NUL in a command": (
        HEAD + '[run]\ncommand = ["a\\u0000b"]\n',
        "run.command: a NUL character cannot be passed to a program",
    ),
    "too many words in a command": (
        HEAD + f"[run]\ncommand = {['x'] * 1001}\n",
        "run.command: must have at most 1,000 words",
    ),
    "too many words in the build": (
        HEAD + RUN + f"[build]\ncommand = {['x'] * 1001}\nfetch = {['x'] * 1001}\n",
        "build.command: must have at most 1,000 words",
        "build.fetch: must have at most 1,000 words",
    ),
    "command in one string": (
        HEAD + '[run]\ncommand = "python3 bot.py"\n',
        "run.command: must be a list",
    ),
    "number in a command": (
        HEAD + '[run]\ncommand = ["nice", 5]\n',
        "run.command[1]: must be a string",
    ),
    "run is not a table": (HEAD + 'run = "bot"\n', "run: must be a table"),
    "empty build command": (
        HEAD + RUN + "[build]\ncommand = []\n",
        "build.command: must not be empty: name a program",
    ),
    "unknown key": ("colour = 1\n" + HEAD + RUN, "colour: unknown key"),
    "misspelt key": (
        HEAD + '[run]\ncomand = ["x"]\n',
        "run.comand: unknown key (did you mean 'command'?)",
    ),
    "two unknown rulesets": (
        'rulesets = ["Basic", "duel", "x"]\n' + HEAD + RUN,
        f"rulesets[0]: unknown ruleset 'Basic' (did you mean 'basic'?); choose one of {', '.join(RULESETS)}",
        f"rulesets[2]: unknown ruleset 'x'; choose one of {', '.join(RULESETS)}",
    ),
    "ruleset given twice": (
        'rulesets = ["basic", "duel", "basic"]\n' + HEAD + RUN,
        "rulesets: 'basic' is given twice",
    ),
    "wrong type": (HEAD.replace('"1.0"', "1.0") + RUN, "version: must be a string"),
    "bad name": (
        HEAD.replace("greedy", "Greedy Bot") + RUN,
        "name: 'Greedy Bot' is not a valid name: use 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit",
    ),
    "bad version": (
        HEAD.replace("1.0", "1/0") + RUN,
        "version: '1/0' is not a valid version: use 1 to 32 letters, digits and . _ + -, beginning with a letter or digit",
    ),
    "line break in the author": (
        HEAD.replace("A. Uthor", "A.\\nUthor") + RUN,
        "author: must be 1 to 200 characters on one line, at least one of them visible, without control characters",
    ),
    "author of blanks": (
        HEAD.replace("A. Uthor", " \u2003") + RUN,
        "author: must be 1 to 200 characters on one line, at least one of them visible, without control characters",
    ),
    "description that cannot be seen": (
        HEAD + 'description = "\u200b\ufeff\u061c\u3164\u2800\ufe0f"\n' + RUN,
        "description: must be 1 to 200 characters on one line, at least one of them visible, without control characters",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_each_mistake_in_a_manifest_is_reported_in_one_line(tmp_path, case):
    text, *reasons = INVALID[case]
    lines = error_of(folder_with(tmp_path, text)).splitlines()
    assert lines == [f"{tmp_path}/bot.toml: {reason}" for reason in reasons]


@pytest.mark.parametrize("name", ["a", "0", "small_beasts", "x-2", "a" * 32])
def test_valid_name_is_accepted(tmp_path, name):
    manifest = load_manifest(folder_with(tmp_path, HEAD.replace("greedy", name) + RUN))
    assert manifest.name == name


@pytest.mark.parametrize("name", ["", "-a", "_a", "a" * 33, "a b", "a/b", "é", "a\\n", "a.b", "A"])
def test_invalid_name_is_refused_in_one_line(tmp_path, name):
    error = error_of(folder_with(tmp_path, HEAD.replace("greedy", name) + RUN))
    assert error.startswith(f"{tmp_path}/bot.toml: name: ")
    assert "\n" not in error


@pytest.mark.parametrize(
    ("text", "place"), [("[run]\ncommand\n", "line 6"), ("[run", "end of document")]
)
def test_syntax_error_is_reported_with_its_line(tmp_path, text, place):
    error = error_of(folder_with(tmp_path, HEAD + text))
    assert error.startswith(f"{tmp_path}/bot.toml: {place}: Expected ")
    assert "column" not in error


def test_schema_says_that_no_ruleset_is_named_twice():
    assert Manifest.model_json_schema()["properties"]["rulesets"]["uniqueItems"] is True
