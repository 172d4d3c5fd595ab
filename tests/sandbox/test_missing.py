"""What is missing is found in the output of a program, with the package to install."""

from __future__ import annotations

import pytest

from referee.sandbox.missing import find_missing_library, find_missing_program

GRPC = "gRPC for C++: `apt install libgrpc++-dev protobuf-compiler-grpc`"
PROTOBUF = "protobuf for C++: `apt install libprotobuf-dev protobuf-compiler`"


@pytest.mark.parametrize(
    ("output", "program"),
    [
        ("sh: 1: cmake: not found\n", "cmake"),
        ("bash: line 1: go: command not found\n", "go"),
        ("env: 'node': No such file or directory\n", "node"),
        ("main.c: symbol x not found\n", None),
    ],
)
def test_missing_program_is_found_in_the_output_of_shells(output, program):
    assert find_missing_program(output) == program


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        (
            "src/main.cpp:3:10: fatal error: grpcpp/grpcpp.h: No such file or directory",
            f"grpcpp/grpcpp.h is missing; it belongs to {GRPC}",
        ),
        (
            "a.cc:1:10: fatal error: 'google/protobuf/message.h' file not found",
            f"google/protobuf/message.h is missing; it belongs to {PROTOBUF}",
        ),
        (
            'Could not find a package configuration file provided by "gRPC" with any of\n  the names',
            f"gRPC is missing; it belongs to {GRPC}",
        ),
        (
            "Could NOT find Protobuf (missing: Protobuf_LIBRARIES)",
            f"Protobuf is missing; it belongs to {PROTOBUF}",
        ),
        (
            "/usr/bin/ld: cannot find -lgrpc++_unsecure: No such file",
            f"grpc++_unsecure is missing; it belongs to {GRPC}",
        ),
        ("No package 'grpc++' found", f"grpc++ is missing; it belongs to {GRPC}"),
        ("main.cpp:1:10: fatal error: my/own.h: No such file or directory", None),
        ("main.cpp:1: error: expected ';'", None),
    ],
)
def test_missing_library_of_cpp_comes_with_the_package_to_install(output, advice):
    assert find_missing_library(output) == advice
