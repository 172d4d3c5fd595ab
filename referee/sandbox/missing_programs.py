"""Recognise that a program is missing on this machine, and say how to install it."""

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
"""How shells report a program that they cannot find."""


def how_to_install(program: str) -> str:
    """Return a sentence: `program` is missing, and how to install it."""
    known = _PACKAGES.get(program)
    return (
        f"{program} is not installed; it belongs to {known}"
        if known is not None
        else f"{program} is not installed, or not in PATH"
    )


def find_missing_program(output: str) -> str | None:
    """Return the program that a shell reported as missing in `output`; None if it reported none."""
    found = _NOT_FOUND.findall(output)
    return found[-1] if found else None
