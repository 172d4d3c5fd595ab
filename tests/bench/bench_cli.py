"""Measure the user CPU of the command line: `python tests/bench/bench_cli.py`.

Plays the demo tournament of 240 games, then runs each command several times. Prints the
median user CPU of each command, and its ratio to `python -c "import typer, rich"`, which is measured in the same
rounds: a slow or busy machine changes the ratio less than the seconds. All modules are compiled beforehand.
"""

from __future__ import annotations

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import referee

PACKAGE = Path(referee.__file__).parent
DEMO = PACKAGE.parent / "tournaments" / "demo.toml"
ROUNDS = 11
BASE = (sys.executable, "-c", "import typer, rich")
WANTED_S = {
    "--help": 0.25,
    "--version": 0.25,
    "turnament": 0.25,
    "bots --help": 0.25,
    "bots list": 0.45,
    "game list": 0.45,
    "ratings": 0.8,
}
"""The target of each command; `turnament` is a typo."""


def user_s(command: tuple[str, ...], folder: Path) -> float:
    """Run a command and return its user CPU in seconds."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # `wait4` has collected it
    return usage.ru_utime


def play_demo(program: str, folder: Path) -> None:
    """Play the demo tournament in the league of a folder."""
    file = folder / "tournaments" / "demo.toml"
    file.parent.mkdir()
    shutil.copy(DEMO, file)
    shutil.copytree(PACKAGE.parent / "sample_bots", folder / "sample_bots")
    subprocess.run(
        [program, "tournament", "run", str(file)], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(PACKAGE, quiet=2)
    program = str(Path(sys.executable).with_name("referee"))
    commands = {words: (program, *words.split()) for words in WANTED_S}
    with tempfile.TemporaryDirectory(prefix="referee-bench-") as name:
        folder = Path(name)
        play_demo(program, folder)
        times: dict[str, list[float]] = {words: [] for words in ("", *commands)}
        for _ in range(ROUNDS):
            for words, command in {"": BASE, **commands}.items():
                times[words].append(user_s(command, folder))
    base_s = statistics.median(times.pop(""))
    print(f'python -c "import typer, rich": {base_s:.3f} s of user CPU, the median of {ROUNDS}')
    for words, each in times.items():
        median_s = statistics.median(each)
        print(
            f"referee {words:12} {median_s:.3f} s (wanted: {WANTED_S[words]:.2f}),"
            f" {median_s / base_s:4.1f} times that"
        )


if __name__ == "__main__":
    main()
