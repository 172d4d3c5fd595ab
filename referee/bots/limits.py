"""What a bot may take of the machine: what its manifest asks for, what a tournament allows.

How it is held to that is the launcher's business; what it took is a `Usage`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from referee.records import Usage
from referee.toml_file import FileModel

__all__ = ["DEFAULT", "Limits", "LimitsTable", "Usage"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of a bot may take, with everything that it starts."""

    memory_mib: int = 1024
    """Of all its processes together."""
    processes: int = 64
    """How many there may be at once."""
    cpus: float = 1.0
    """As much computing as so many cores can do, all the time."""
    scratch_mib: int = 64
    """What may lie in its scratch folder."""
    open_files: int = 1024
    """Of each of its processes."""
    output_kib: int = 1024
    """What is kept of its standard output, and of its standard error: the last of it."""

    def at_most(self, maxima: Limits) -> Limits:
        """These, where the maxima are not lower."""
        return Limits(
            min(self.memory_mib, maxima.memory_mib),
            min(self.processes, maxima.processes),
            min(self.cpus, maxima.cpus),
            min(self.scratch_mib, maxima.scratch_mib),
            min(self.open_files, maxima.open_files),
            min(self.output_kib, maxima.output_kib),
        )


DEFAULT = Limits()


class LimitsTable(FileModel):
    """`[limits]` of a file, which need not say all of them."""

    memory_mib: Annotated[int, Field(ge=16, le=1 << 24)] | None = None
    processes: Annotated[int, Field(ge=1, le=32_768)] | None = None
    cpus: Annotated[float, Field(ge=0.01, le=1024, allow_inf_nan=False)] | None = None
    scratch_mib: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    open_files: Annotated[int, Field(ge=32, le=1 << 20)] | None = None
    output_kib: Annotated[int, Field(ge=4, le=1 << 16)] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What it says, by key; numbers."""
        return self.model_dump(exclude_none=True)

    def limits(self, default: Limits = DEFAULT) -> Limits:
        """What it says, and the default where it says nothing."""
        return replace(default, **self.said)
