"""Decide which names and addresses a request may use for the server, and write the server's address as browsers do.

A user can write an address in many ways: `0`, `127.1` and `2001:DB8:0:0:0:0:0:1` are addresses too. A browser writes each address in
one way only. So addresses are compared as numbers. Requests may use what the user wrote, the address at which the server listens,
`localhost`, `127.0.0.1` and `::1`.
"""

from __future__ import annotations

import socket
from collections.abc import Container
from ipaddress import IPv4Address, IPv6Address, ip_address

_LOOPBACK = {IPv4Address("127.0.0.1"), IPv6Address("::1")}


class KnownHosts(Container[str]):
    """The names and addresses under which a server can be reached.

    Args:
        host: the name or address that the user has given.
        listening: the address at which the server listens. If it stands for all addresses of the machine, as `0.0.0.0` does, the
            name of the machine and all addresses are accepted too. To accept every address is safe, because an attack by DNS
            rebinding sends a host name, never an address.
    """

    def __init__(self, host: str, listening: str) -> None:
        self._names = {"localhost", host.lower()}
        address = _parse(listening)
        self._addresses = {*_LOOPBACK, address}
        self._all_addresses = address is not None and address.is_unspecified
        if self._all_addresses:
            self._names.add(socket.gethostname().lower())

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        address = _parse(name)
        if address is None:
            return name in self._names
        return self._all_addresses or address in self._addresses


def is_loopback(listening: str) -> bool:
    """Return True if only programs on this machine reach a server that listens at this address."""
    address = _parse(listening)
    return address is not None and address.is_loopback


def url_host(host: str, listening: str) -> str:
    """Return the host for the address of a page: the name that the user has given, or the address as browsers write it.

    Args:
        host: the name or address that the user has given.
        listening: the address at which the server listens.
    """
    try:
        socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return host
    address = _parse(listening)
    shown = listening if address is None else address.compressed
    return f"[{shown}]" if ":" in shown else shown


def _parse(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text; None for a name. An IPv4 address in the form of IPv6 is returned as an IPv4 address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
