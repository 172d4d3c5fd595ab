"""The committed Python stubs, and the copies of the schema, are up to date."""

import runpy
from pathlib import Path

import referee.pb

ROOT = Path(__file__).parents[2]
STUBS = Path(referee.pb.__file__).parent


def test_committed_stubs_are_up_to_date(tmp_path):
    generate = runpy.run_path(str(ROOT / "proto" / "generate.py"))["generate"]
    written = {path.name: path.read_bytes() for path in generate(tmp_path)}
    committed = {path.name: path.read_bytes() for path in STUBS.glob("*_pb2.py*")}
    assert written == committed, "run: python proto/generate.py"


def test_every_schema_has_stubs():
    schemas = {path.stem for path in (ROOT / "proto" / "linko" / "v1").glob("*.proto")}
    assert schemas == {"play", "record", "table"}
    assert {path.name for path in STUBS.glob("*_pb2.py*")} == {
        f"{schema}_pb2.{suffix}" for schema in schemas for suffix in ("py", "pyi")
    }


def test_copies_of_the_schema_in_sample_bots_are_up_to_date():
    copies = runpy.run_path(str(ROOT / "proto" / "generate.py"))["copies"]()
    different = [
        str(copy)
        for copy, original in copies.items()
        if not copy.is_file() or copy.read_bytes() != original.read_bytes()
    ]
    assert not different, "run: python proto/generate.py"
