"""The six bots that follow one policy, and how they are built for the tests: once in a run."""

from __future__ import annotations

import asyncio
import fcntl
import json
from pathlib import Path

from referee.bots import ProcessGroupLauncher, snapshot
from referee.bots.build import build
from referee.bots.manifest import BotSpec, load_manifest

FOLDER = Path(__file__).parents[2] / "sample_bots"
TOOLCHAINS = {
    "greedy": (),
    "greedy_go": ("go",),
    "greedy_rust": ("cargo",),
    "greedy_java": ("java", "mvn"),
    "greedy_typescript": ("node", "npm"),
    "greedy_cpp": ("cmake", "g++", "pkg-config", "protoc", "grpc_cpp_plugin"),
}
"""The programs that each needs, by its folder."""
LANGUAGES = {
    "greedy": "python",
    "greedy_go": "go",
    "greedy_rust": "rust",
    "greedy_java": "java",
    "greedy_typescript": "typescript",
    "greedy_cpp": "cpp",
}
"""What the manifest of each says."""


class BuildFailed(Exception):
    """With what the build printed."""


def built(name: str, shared: Path) -> BotSpec:
    """A built copy of a bot, made by the first who asks; other processes wait for it.

    Args:
        name: of its folder.
        shared: a folder for the copies, the same for all processes of the run.

    Raises `BuildFailed`, and again for whoever asks later.
    """
    copy, verdict = shared / name, shared / f"{name}.json"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not verdict.exists():
            snapshot.take(FOLDER / name, copy, built=True)
            verdict.write_text(json.dumps(_build(copy)))
    if (why := json.loads(verdict.read_text())) is not None:
        raise BuildFailed(f"{name}: {why}")
    return load_manifest(copy).spec(copy)


def _build(copy: Path) -> str | None:
    """Build a bot where it lies; what went wrong, with what was printed, or None."""
    manifest = load_manifest(copy)
    if manifest.build is None:
        return None
    done = asyncio.run(build(manifest.build.command, copy, launcher=ProcessGroupLauncher()))
    return None if done.ok else f"the build {done.reason}\n{done.output}"
