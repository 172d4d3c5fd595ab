"""Send a file descriptor through a UNIX socket, as a hostile program does."""

import socket

import pytest

SO_PASSRIGHTS = 83


def assert_no_descriptor_can_be_sent(link):
    """Check that the other end of a connection takes data and no descriptors. Before Linux 6.16, no kernel can refuse them."""
    try:
        link.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
    except OSError:
        assert socket.send_fds(link, [b"x"], [0]) == 1
    else:
        with pytest.raises(PermissionError):
            socket.send_fds(link, [b"x"], [0])
    assert link.send(b"x") == 1
