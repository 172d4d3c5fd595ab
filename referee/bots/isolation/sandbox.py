"""Starts programs in sandboxes."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from referee.bots.access import NO_ACCESS, Access
from referee.bots.families import FAMILIES, TOKEN
from referee.bots.isolation import seccomp
from referee.bots.isolation.bubblewrap import Stage, command_line
from referee.bots.isolation.cgroups import Cgroups
from referee.bots.isolation.grounds import Grounds, Program
from referee.bots.isolation.sandboxed import Report, Sandboxed
from referee.bots.limits import Limits
from referee.bots.spawning import failure, limiting, report_pipe, spawn
from referee.errors import VoidGame


class SandboxLauncher:
    """Starts programs in bubblewrap, each in a cgroup where there can be one.

    Args:
        bwrap: the program bubblewrap.
        cgroups: makes cgroups, as far as that is possible.
        isolation: what is known of what this protects.
    """

    sandboxed = True
    trusting = False

    def __init__(self, bwrap: Path, cgroups: Cgroups, isolation: str = "") -> None:
        self.isolation = isolation
        self.cgroups = cgroups
        self._bwrap = bwrap
        self._filter = seccomp.program(platform.machine())

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,
    ) -> Sandboxed:
        """Start a program; see `Launcher.launch`."""
        program = Program(tuple(command), folder, environment, limits or Limits(), access)
        grounds = Grounds(self.cgroups, program)
        try:
            try:
                words, options = self.words(program, grounds)
            except OSError as error:
                raise VoidGame(f"the sandbox cannot be set up: {error}") from error
            reading, writing = report_pipe()
            try:
                with FAMILIES.starting():
                    options = [*limiting(limits), *options]
                    outer = await spawn(words, Path("/"), environment, writing, options)
                    report = Report(reading)
                    launched = Sandboxed(outer, report, grounds, environment.get(TOKEN, ""), limits)
            except OSError as error:
                os.close(reading)
                raise failure(error.errno, str(error.strerror)) from error
            finally:
                os.close(writing)
        except BaseException:
            grounds.give_back()
            raise
        try:
            await launched.run(command[0])
        except BaseException:
            await launched.kill()
            raise
        return launched

    def words(self, program: Program, grounds: Grounds) -> tuple[list[str], list[str]]:
        """The command line of bubblewrap, and what the shim has to do before."""
        stage = Stage(grounds.uid)
        words = command_line(self._bwrap, program, stage, filtered=self._filter is not None)
        user = [] if grounds.uid is None else ["--uid", str(grounds.uid)]
        handed = ["--sandbox", (self._filter or b"").hex()]
        return words, [*grounds.doors, *stage.options, *user, *handed]

    def tidy(self) -> None:
        """See `Launcher.tidy`."""
        FAMILIES.reap()
