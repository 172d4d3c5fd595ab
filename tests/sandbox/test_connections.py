"""Tests who is found at the other ends of the connections that this process has accepted."""

import errno
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from referee.sandbox.connections import open_connections

CONNECT = """
import socket, sys
address, port, server = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
link = socket.socket()
link.bind((address, port))
link.connect(("127.0.0.1", server))
print(link.getsockname()[1], flush=True)
sys.stdin.read()
"""


def connect(stack, address, port, server):
    """Let a new process connect from an address; return the process and its port."""
    words = [sys.executable, "-c", CONNECT, address, str(port), str(server)]
    process = stack.enter_context(
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    stack.callback(process.kill)
    return process, int(process.stdout.readline())


def open_deep_folder(stack, folder):
    """Open a folder whose path is too long for the kernel to show."""
    name = "n" * 200
    deepest = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=deepest)
        deeper = os.open(name, os.O_RDONLY, dir_fd=deepest)
        os.close(deepest)
        deepest = deeper
    stack.callback(os.close, deepest)
    with pytest.raises(OSError, match="too long"):
        Path(f"/proc/self/fd/{deepest}").readlink()


def test_open_file_with_a_very_long_path_hides_no_connection(tmp_path):
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = listening.getsockname()[1]
        _, port = connect(stack, "127.0.0.1", 0, server)
        stack.enter_context(listening.accept()[0])
        open_deep_folder(stack, tmp_path)
        with open_connections(server, os.getpid()) as connections:
            found = {each.peer: each.program for each in connections}
        assert found == {("127.0.0.1", port): os.getpid()}  # the new process belongs to this one


def test_program_with_the_port_of_another_at_another_address_is_not_taken_for_it():
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = listening.getsockname()[1]
        program, port = connect(stack, "127.0.0.1", 0, server)
        connect(stack, "127.0.0.2", port, server)
        for _ in range(2):
            stack.enter_context(listening.accept()[0])
        with open_connections(server, program.pid) as connections:
            found = {each.peer: each.program for each in connections}
        assert found == {("127.0.0.1", port): program.pid, ("127.0.0.2", port): None}


def test_connection_with_two_descriptors_is_found_once():
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = listening.getsockname()[1]
        stack.enter_context(socket.create_connection(("127.0.0.1", server)))
        accepted = stack.enter_context(listening.accept()[0])
        stack.enter_context(accepted.dup())
        with open_connections(server, os.getpid()) as connections:
            assert len(connections) == 1


def test_lack_of_file_descriptors_is_no_lack_of_connections(monkeypatch):
    def fail(_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", fail)
    with pytest.raises(OSError, match="Too many open files"), open_connections(1, os.getpid()):
        pass
