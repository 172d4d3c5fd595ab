"""Write the Python stubs and the copies of the schema: `.venv/bin/python proto/generate.py`.

The stubs go into `referee/pb`. The copies go into the sample bots that are built from the schema, because a
bot's folder must contain everything that its build needs.

protoc's Python output imports its siblings as `linko.v1.x_pb2`, a top-level package that the distribution does
not have. Those imports are changed to `referee.pb`.
"""

from __future__ import annotations

import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent
SCHEMA = PROTO / "linko" / "v1"
STUBS = PROTO.parent / "referee" / "pb"
SAMPLE_BOTS = PROTO.parent / "sample_bots"
FOR_BOTS = ("play.proto", "table.proto")
"""Bots do not need `record.proto`."""


def generate(folder: Path) -> list[Path]:
    """Generate every stub into a folder; return the files written."""
    schemas = sorted(SCHEMA.glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        status = protoc.main(
            [
                "protoc",
                f"-I{PROTO}",
                f"-I{files('grpc_tools') / '_proto'}",
                f"--python_out={scratch}",
                f"--pyi_out={scratch}",
                *map(str, schemas),
            ]
        )
        if status:
            raise SystemExit(status)
        written = []
        for source in sorted((Path(scratch) / "linko" / "v1").iterdir()):
            text = source.read_text().replace("from linko.v1 import", "from referee.pb import")
            target = folder / source.name
            target.write_text(text)
            written.append(target)
    return written


def copies() -> dict[Path, Path]:
    """Map every copy of a schema in a sample bot to its original."""
    return {
        folder / "linko" / "v1" / name: SCHEMA / name
        for folder in sorted(SAMPLE_BOTS.glob("*/proto"))
        for name in FOR_BOTS
    }


if __name__ == "__main__":
    for path in generate(STUBS):
        print(path)
    for copy, original in copies().items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
        print(copy)
