"""Starts programs as users of their own: what root can do where there are no namespaces."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from referee.errors import Forfeit, VoidGame
from referee.sandbox.cgroups import Cgroup, Cgroups
from referee.sandbox.launcher import Process, RunningProgram
from referee.sandbox.limits import NO_ACCESS, Access, Limits, TotalUsage
from referee.sandbox.process_group import start_group
from referee.sandbox.process_tree import PROCESS_TREES
from referee.sandbox.resources import ProgramSpec, SandboxResources


class UidLauncher:
    """Starts programs, each as a user of its own and in a cgroup where there can be one.

    Args:
        cgroups: makes cgroups, as far as that is possible.
        isolation: what is known of what this protects.
    """

    is_sandboxed = False
    is_unprotected = False

    def __init__(self, cgroups: Cgroups, isolation: str = "") -> None:
        self.isolation = isolation
        self.cgroups = cgroups

    async def launch(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        limits: Limits | None = None,
        access: Access = NO_ACCESS,
    ) -> UidProgram:
        """Start a program; see `Launcher.launch`.

        Raises VoidGame also where its user cannot get at its folder.
        """
        if access.link is not None:
            _open_way(access.link)
        _check_way(folder)
        program = ProgramSpec(tuple(command), folder, environment, limits or Limits(), access)
        grounds = SandboxResources(self.cgroups, program)
        try:
            words, options = self.words(program, grounds)
            group = await start_group(
                words,
                folder=folder,
                environment=environment,
                limits=limits,
                options=options,
                held=grounds.held,
            )
        except BaseException:
            grounds.give_back()
            raise
        return UidProgram(group, grounds)

    @staticmethod
    def words(program: ProgramSpec, grounds: SandboxResources) -> tuple[list[str], list[str]]:
        """What is started, and what the shim has to do before."""
        return list(program.command), [
            *grounds.doors,
            "--uid",
            str(grounds.uid),
            "--no-new-privileges",
        ]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


class UidProgram:
    """A process group for which something was made."""

    def __init__(self, group: RunningProgram, grounds: SandboxResources) -> None:
        self._group = group
        self._grounds = grounds

    @property
    def process(self) -> Process:
        """See `RunningProgram.process`."""
        return self._group.process

    @property
    def cgroup(self) -> Cgroup | None:
        """Its own."""
        return self._grounds.cgroup

    def breach(self) -> Forfeit | None:
        """See `RunningProgram.breach`."""
        return self._grounds.breach() or self._group.breach()

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`: as a cgroup counts it, where there is one."""
        return self._grounds.usage() or self._group.usage()

    def busy_ns(self) -> int | None:
        """See `RunningProgram.busy_ns`."""
        return self._group.busy_ns()

    def terminate(self) -> None:
        """See `RunningProgram.terminate`."""
        self._group.terminate()

    def list_others(self) -> list[str]:
        """See `RunningProgram.list_others`."""
        return self._group.list_others()

    async def kill(self) -> None:
        """See `RunningProgram.kill`."""
        await self._group.kill()
        self._grounds.give_back()


def _open_way(path: Path) -> None:
    """Let other users pass through the referee's own folders to this one; not look around in them."""
    temporary = Path(tempfile.gettempdir())
    for parent in path.parents:
        if temporary in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o011)


def _check_way(path: Path) -> None:
    """Raise VoidGame where other users cannot get as far as to this folder."""
    for parent in path.parents:
        if not parent.stat().st_mode & 0o001:
            raise VoidGame(
                f"{path} cannot be reached by the user that a bot has on this rung of isolation: chmod o+x {parent}"
            )
