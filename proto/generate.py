"""Write the Python stubs of `proto/linko/v1` into `referee/pb`: `python proto/generate.py [FOLDER]`.

protoc's Python output imports its siblings as `linko.v1.x_pb2`, a top-level package that the
distribution does not have; those imports are rewritten to where the stubs live.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent
SCHEMA = PROTO / "linko" / "v1"
STUBS = PROTO.parent / "referee" / "pb"


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


if __name__ == "__main__":
    for path in generate(Path(sys.argv[1]) if len(sys.argv) > 1 else STUBS):
        print(path)
