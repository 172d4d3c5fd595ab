"""Start programs as other users. This is the rung `uid`: root can use it where there are no namespaces."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from referee.errors import VoidGame
from referee.sandbox.cgroups import Cgroups
from referee.sandbox.limits import NO_ACCESS, Access, Limits
from referee.sandbox.process_group import ProcessGroup, start_group
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
    ) -> ProcessGroup:
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
            return await start_group(
                words,
                folder=folder,
                environment=environment,
                limits=limits,
                options=options,
                resources=resources,
            )
        except BaseException:
            resources.release()
            raise

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
                f"{path} cannot be reached by the bot, which runs as another user with this isolation: chmod o+x {parent}"
            )
