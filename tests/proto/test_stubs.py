"""The committed Python stubs, and the copies of the schema, are up to date."""

import ast
import re
import runpy
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

import referee.pb
from referee.pb import play_pb2, table_pb2

ROOT = Path(__file__).parents[2]
STUBS = Path(referee.pb.__file__).parent
GO_STUBS = ROOT / "sample_bots" / "greedy_go" / "linko"


def test_committed_stubs_are_up_to_date(tmp_path):
    generate = runpy.run_path(str(ROOT / "proto" / "generate.py"))["generate"]
    written = {path.name: path.read_bytes() for path in generate(tmp_path)}
    committed = {path.name: path.read_bytes() for path in STUBS.glob("*_pb2.py*")}
    assert written == committed, "run: .venv/bin/python proto/generate.py"


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
    assert not different, "run: .venv/bin/python proto/generate.py"


def clear_json_names(message: DescriptorProto):
    for field in message.field:
        field.ClearField("json_name")
    for inner in message.nested_type:
        clear_json_names(inner)


@pytest.mark.parametrize("module", [play_pb2, table_pb2])
def test_stubs_of_the_bot_in_go_are_up_to_date(module):
    """The stubs for Go contain the schema as a serialised message in string literals."""
    name = Path(module.DESCRIPTOR.name).stem
    text = (GO_STUBS / f"{name}.pb.go").read_text()
    [lines] = re.findall(r'_rawDesc = "" \+\n((?:\t".*"(?: \+)?\n)+)', text)
    parts = [ast.literal_eval(f"b{line}") for line in re.findall(r'".*"', lines)]
    written = FileDescriptorProto.FromString(b"".join(parts))
    for message in written.message_type:
        clear_json_names(message)
    schema = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(schema)
    assert written == schema, "run in sample_bots/greedy_go: go generate ./..."
