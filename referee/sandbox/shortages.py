"""Find out what this machine lacks for one more program: free resources, or the program itself.

Call `check_capacity` before a bot or a worker is started. If a resource runs out in the middle of a start, the event
loop and gRPC leave incomplete objects behind, and gRPC may even end the referee. `charge_or_void` makes the same check
after a bot has failed, because a lack of resources may be the reason. `find_missing_program` and
`how_to_install` help a user whose machine lacks a toolchain.
"""

from __future__ import annotations

import _thread
import errno
import os
import re
from contextlib import ExitStack

from referee.errors import Forfeit, VoidGame

_DESCRIPTORS = 64
"""How many file descriptors must be free. A bot needs about twelve, and several bots may start at once."""
_THREADS = 8
"""How many threads must be free for the referee, which needs threads of its own for the new process."""
ALL_THREADS = 32
"""How many threads must be free for the referee and for the new process together."""
SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC}
"""The error numbers which say that the machine lacks a resource."""
_NO_THREAD = "can't start new thread"
_PACKAGES = {
    "cargo": "Rust: https://rustup.rs (Debian's is often too old)",
    "cmake": "CMake: `apt install cmake make g++`",
    "dart": "Dart: https://dart.dev/get-dart",
    "dotnet": ".NET: https://dotnet.microsoft.com/download",
    "g++": "a C++ compiler: `apt install g++`",
    "gcc": "a C compiler: `apt install gcc`",
    "go": "Go: https://go.dev/dl (Debian's is often too old)",
    "gradle": "Gradle: https://gradle.org/install",
    "grpc_cpp_plugin": "gRPC for C++: `apt install libgrpc++-dev protobuf-compiler-grpc`",
    "java": "a Java runtime: `apt install openjdk-17-jdk-headless`",
    "javac": "a JDK: `apt install openjdk-17-jdk-headless`",
    "make": "make: `apt install make`",
    "mvn": "Maven: `apt install maven openjdk-17-jdk-headless`",
    "node": "Node.js: https://nodejs.org, or `apt install nodejs npm`",
    "npm": "npm, which comes with Node.js: https://nodejs.org, or `apt install nodejs npm`",
    "npx": "npx, which comes with Node.js: https://nodejs.org, or `apt install nodejs npm`",
    "perl": "Perl: `apt install perl`",
    "php": "PHP: `apt install php-cli`",
    "pkg-config": "pkg-config: `apt install pkg-config`",
    "protoc": "the protobuf compiler: `apt install protobuf-compiler`",
    "ruby": "Ruby: `apt install ruby`",
    "uv": "uv: https://docs.astral.sh/uv",
}
_NOT_FOUND = re.compile(
    r"\b(?:sh|bash|dash|env): (?:\d+: |line \d+: )?'?([\w.+-]+)'?: (?:(?:command )?not found|No such file)"
)
"""Matches the message of a shell or of `env` that a program cannot be found."""


def check_capacity(threads: int = _THREADS) -> None:
    """Raise `VoidGame` if the machine lacks file descriptors or threads for one more process.

    The check takes 64 file descriptors and `threads` threads, and gives them back at once. It does not wait until the
    threads run, so the check is fast on a busy machine too.
    """
    with ExitStack() as stack:
        try:
            for _ in range(_DESCRIPTORS // 2):
                for end in os.pipe():
                    stack.callback(os.close, end)
            gate = _thread.allocate_lock()
            gate.acquire()
            stack.callback(gate.release)
            for _ in range(threads):
                _thread.start_new_thread(_wait_for_gate, (gate,))
        except (OSError, RuntimeError) as error:
            reason = describe_shortage(error) or error
            raise VoidGame(f"no room for another process: {reason}") from error


def _wait_for_gate(gate: _thread.LockType) -> None:
    with gate:
        pass


def charge_or_void(fault: Forfeit) -> Forfeit | VoidGame:
    """Return `fault`. If the machine lacks resources, return a `VoidGame` instead, which charges no bot."""
    try:
        check_capacity(ALL_THREADS)
    except VoidGame as void:
        return void
    return fault


def describe_shortage(error: Exception) -> str | None:
    """Return a text about the resource that the machine lacks; None if `error` has another reason."""
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        return os.strerror(error.errno)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return "no thread can be started"
    return None


def how_to_install(program: str) -> str:
    """Return a sentence that says that `program` is missing and, for well-known programs, how to install it."""
    known = _PACKAGES.get(program)
    return (
        f"{program} is not installed; it belongs to {known}"
        if known is not None
        else f"{program} is not installed, or not in PATH"
    )


def find_missing_program(output: str) -> str | None:
    """Return the program that a shell last reported as missing in `output`; None if no message reports one."""
    found = _NOT_FOUND.findall(output)
    return found[-1] if found else None
