"""Start programs as other users. This is the rung `uid`: root can use it where there are no namespaces."""

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
    """Starts each program as a user of its own, and in a cgroup if possible.

    Args:
        cgroups: creates the cgroups, as far as the machine allows it.
        isolation: see `Launcher.isolation`.
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

        Raises VoidGame also if the program's user cannot reach its folder.
        """
        if access.link is not None:
            _make_reachable(access.link)
        _check_reachable(folder)
        program = ProgramSpec(tuple(command), folder, environment, limits or Limits(), access)
        resources = SandboxResources(self.cgroups, program)
        try:
            words, options = self.prepare_command(program, resources)
            group = await start_group(
                words,
                folder=folder,
                environment=environment,
                limits=limits,
                options=options,
                kernel_limits=resources.kernel_limits,
            )
        except BaseException:
            resources.release()
            raise
        return UidProgram(group, resources)

    @staticmethod
    def prepare_command(
        program: ProgramSpec, resources: SandboxResources
    ) -> tuple[list[str], list[str]]:
        """Return the command that the shim becomes, and the options of the shim."""
        user = ["--uid", str(resources.uid), "--no-new-privileges"]
        return list(program.command), [*resources.join_options, *user]

    def reap(self) -> None:
        """See `Launcher.reap`."""
        PROCESS_TREES.reap()


class UidProgram:
    """A process group together with its sandbox resources."""

    def __init__(self, group: RunningProgram, resources: SandboxResources) -> None:
        self._group = group
        self._resources = resources

    @property
    def process(self) -> Process:
        """See `RunningProgram.process`."""
        return self._group.process

    @property
    def cgroup(self) -> Cgroup | None:
        """The cgroup of the program; None if there is none."""
        return self._resources.cgroup

    def breach(self) -> Forfeit | None:
        """See `RunningProgram.breach`."""
        return self._resources.breach() or self._group.breach()

    def usage(self) -> TotalUsage:
        """See `RunningProgram.usage`; a cgroup counts more exactly than the monitor."""
        return self._resources.usage() or self._group.usage()

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
        self._resources.release()


def _make_reachable(path: Path) -> None:
    """Let other users pass through the referee's own folders to `path`, without listing them."""
    temporary = Path(tempfile.gettempdir())
    for parent in path.parents:
        if temporary in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o011)


def _check_reachable(path: Path) -> None:
    """Raise VoidGame if other users cannot reach `path`."""
    for parent in path.parents:
        if not parent.stat().st_mode & 0o001:
            raise VoidGame(
                f"{path} cannot be reached by the user that a bot has on this rung of isolation: chmod o+x {parent}"
            )
