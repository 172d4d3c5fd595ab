"""The programs that bots are built and run with, and how one gets them."""

from __future__ import annotations

import re

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
"""What shells say of a program that they cannot find."""


_NO_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name resolution|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dial tcp"
    r"|network is unreachable|no such host|unknown host|could not transfer artifact"
    r"|failed to (?:get|download|fetch)|download of config.json failed",
    re.IGNORECASE,
)
"""What the tools of several languages say when they cannot reach their registry."""


def how_to_install(program: str) -> str:
    """A sentence about a program that is missing."""
    known = _PACKAGES.get(program)
    return (
        f"{program} is not installed; it belongs to {known}"
        if known is not None
        else f"{program} is not installed, or not in PATH"
    )


def missed_network(output: str) -> bool:
    """Whether what a build has printed sounds as if it had wanted to download something."""
    return _NO_NETWORK.search(output) is not None


def missing_in(output: str) -> str | None:
    """The program that a shell could not find, by its own words; None if it says nothing of that."""
    found = _NOT_FOUND.findall(output)
    return found[-1] if found else None
