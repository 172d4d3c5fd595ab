"""The server is reached at the address that it prints, in whatever way the user has written it."""

from __future__ import annotations

import socket

import pytest

from referee.web.hosts import KnownHosts, is_loopback, url_host
from referee.web.serve import _listen


@pytest.mark.parametrize(
    ("host", "listening", "known", "unknown"),
    [
        ("127.0.0.1", "127.0.0.1", ["localhost", "127.0.0.1", "::1"], ["192.0.2.1", "a.test"]),
        ("a.test", "192.0.2.1", ["a.test", "localhost", "192.0.2.1"], ["b.test", "192.0.2.2"]),
        ("0.0.0.0", "0.0.0.0", ["192.0.2.1", "2001:db8::1", "localhost"], ["a.test"]),  # noqa: S104
        ("::", "::", ["192.0.2.1", "localhost"], ["a.test", "1.2.3.4.a.test"]),
        ("0", "0.0.0.0", ["0.0.0.0", "192.0.2.1", "0"], ["a.test", "1"]),  # noqa: S104
        ("::ffff:0.0.0.0", "::ffff:0.0.0.0", ["192.0.2.1", "::ffff:0:0"], ["a.test"]),
        ("192.168.257", "192.168.1.1", ["192.168.1.1", "::ffff:c0a8:101"], ["192.168.1.2"]),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1", ["2001:db8::1"], ["2001:db8::2"]),
    ],
)
def test_known_hosts_are_this_machine_and_the_given_one(host, listening, known, unknown):
    hosts = KnownHosts(host, listening)
    assert [name for name in known if name not in hosts] == []
    assert [name for name in unknown if name in hosts] == []


@pytest.mark.parametrize(
    ("listening", "is_it"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::ffff:0.0.0.0", False),
        ("192.0.2.1", False),
    ],
)
def test_loopback_is_recognised(listening, is_it):
    assert is_loopback(listening) is is_it


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0", "0.0.0.0"),  # noqa: S104
        ("0:0:0:0:0:0:0:1", "[::1]"),
        ("::ffff:0.0.0.0", "0.0.0.0"),  # noqa: S104
    ],
)
def test_printed_host_is_as_browsers_write_it_and_is_known(host, shown):
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with _listen(host, 0) as listener:
        listening = listener.getsockname()[0]
    assert url_host(host, listening) == shown
    assert shown.strip("[]") in KnownHosts(host, listening)
