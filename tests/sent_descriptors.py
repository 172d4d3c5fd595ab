"""Check that a UNIX socket refuses file descriptors, which a hostile program sends, if the kernel has SO_PASSRIGHTS."""

import socket

import pytest

SO_PASSRIGHTS = 83


def assert_descriptors_are_refused_if_possible(link):
    """Check that the other end takes data, and no descriptors from Linux 6.16 on. Older kernels cannot refuse them."""
    try:
        link.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
    except OSError:
        assert socket.send_fds(link, [b"x"], [0]) == 1
    else:
        with pytest.raises(PermissionError):
            socket.send_fds(link, [b"x"], [0])
    assert link.send(b"x") == 1
