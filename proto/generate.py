"""Write what follows from the schema: `python proto/generate.py`.

The Python stubs in `referee/pb`, and the copies of the schema in those sample bots that have one: a
bot's folder holds all that its build needs.

protoc's Python output imports its siblings as `linko.v1.x_pb2`, a top-level package that the
distribution does not have; those imports are rewritten to where the stubs live.
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
"""Records are none of a bot's business."""


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
    """Every copy of a schema in a sample bot, and what it is a copy of."""
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
