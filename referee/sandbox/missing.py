"""Say what to install if a program or a library is missing."""

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
"""What to install for each well-known program."""
_NOT_FOUND = re.compile(
    r"\b(?:sh|bash|dash|env): (?:\d+: |line \d+: )?'?([\w.+-]+)'?: (?:(?:command )?not found|No such file)"
)
"""Matches the message of a shell or of `env` that a program cannot be found."""
_MISSING_LIBRARY = re.compile(
    r"fatal error: '?([\w./+-]+\.h\w*)'?(?:: No such file| file not found)"  # a compiler, about a header
    r"|cannot find -l([\w+-]+)|unable to find library -l([\w+-]+)"  # a linker
    r"|provided by \"(\w+)\" with any of|Could NOT find (\w+)|By not providing \"Find(\w+)\.cmake"  # CMake
    r"|[Nn]o package '([\w.+-]+)' found|Package '?([\w.+-]+)'?,? (?:was )?(?:required by [^\n,]{1,200}, )?not found"  # pkg-config
)
"""Matches messages about a header, a library or a package that a C++ build cannot find."""
_LIBRARIES = {
    "grpc": "gRPC for C++: `apt install libgrpc++-dev protobuf-compiler-grpc`",
    "protobuf": "protobuf for C++: `apt install libprotobuf-dev protobuf-compiler`",
    "google/protobuf": "protobuf for C++: `apt install libprotobuf-dev protobuf-compiler`",
    "absl": "Abseil: `apt install libabsl-dev`",
    "boost": "Boost: `apt install libboost-all-dev`",
    "eigen": "Eigen: `apt install libeigen3-dev`",
    "gtest": "GoogleTest: `apt install libgtest-dev`",
    "nlohmann": "JSON for C++: `apt install nlohmann-json3-dev`",
    "openssl": "OpenSSL: `apt install libssl-dev`",
    "threads": "a C library: `apt install libc6-dev`",
    "z(?:lib|(?![a-z]))": "zlib: `apt install zlib1g-dev`",
}
"""What to install for each well-known C++ library. Each key is a regular expression in lower case. It matches the beginning
of the library's name, or the beginning of the paths of its headers."""


def how_to_install(program: str) -> str:
    """Return a message that `program` is missing. For a well-known program, the message also says how to install it."""
    known = _PACKAGES.get(program)
    return (
        f"{program} is not installed; it belongs to {known}"
        if known is not None
        else f"{program} is not installed, or not in PATH"
    )


def find_missing_program(output: str) -> str | None:
    """Return the program that the last match of `_NOT_FOUND` in `output` names; None if there is no match."""
    found = _NOT_FOUND.findall(output)
    return found[-1] if found else None


def find_missing_library(output: str) -> str | None:
    """Return a message with a missing C++ library and how to install it; None if `output` names no well-known library.

    If several well-known libraries are missing, the message is about the first one.

    Args:
        output: the output of compiler, linker, CMake or pkg-config.
    """
    for found in _MISSING_LIBRARY.finditer(output):
        name = next(each for each in found.groups() if each is not None)
        for known, package in _LIBRARIES.items():
            if re.match(known, name.lower()):
                return f"{name} is missing; it belongs to {package}"
    return None
