"""The schema follows the rules of `proto/buf.yaml`. `.ci/lint` compares it with the last release."""

import subprocess
from pathlib import Path

import pytest

PROTO = Path(__file__).parents[2] / "proto"


def buf(*arguments, cwd=PROTO):
    return subprocess.run(["buf", *arguments], cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S607 - found on PATH, as CI installs it


@pytest.mark.toolchain("buf")
@pytest.mark.parametrize(
    "arguments", [("lint",), ("format", "--diff", "--exit-code")], ids=["lint", "format"]
)
def test_schema_passes_buf(arguments):
    result = buf(*arguments)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.toolchain("buf")
def test_changed_field_number_is_a_breaking_change(tmp_path):
    for file in [PROTO / "buf.yaml", *(PROTO / "linko" / "v1").glob("*.proto")]:
        copy = tmp_path / file.relative_to(PROTO)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    assert buf("breaking", "--against", str(PROTO), cwd=tmp_path).returncode == 0
    play = tmp_path / "linko" / "v1" / "play.proto"
    play.write_text(play.read_text().replace("uint32 decision_id = 2;", "uint32 decision_id = 99;"))
    result = buf("breaking", "--against", str(PROTO), cwd=tmp_path)
    assert result.returncode != 0
    assert "decision_id" in result.stdout
