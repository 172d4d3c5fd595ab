"""Refuse requests that are not for this server, and forbid everything that its pages do not need.

A web page of a stranger can give its own name the address of this machine, and then read what the server answers (DNS
rebinding). The browser still sends the stranger's name in the header Host, so only known names are answered.
"""

from __future__ import annotations

import socket
from collections.abc import Container
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from referee.web.responses import problem

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuse requests for unknown hosts and methods, and add the headers of `_HEADERS` to every response, also to errors.

    Args:
        app: answers all other requests.
        hosts: the accepted names in the header Host. `*` accepts all.
        forms: the path below which POST requests are accepted too.
    """

    def __init__(self, app: ASGIApp, hosts: Container[str], *, forms: str) -> None:
        self._app = app
        self._hosts = hosts
        self._forms = forms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *((key.encode(), value.encode()) for key, value in _HEADERS.items()),
                ]
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await (self._refuse(Request(scope)) or self._app)(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Return the response to a request that is not for the application; None for any other request."""
        name = _name_in(request.headers.get("host", ""))
        if "*" not in self._hosts and name not in self._hosts:
            return problem(
                400,
                "This server has another host name. Use the address that it printed at its start.",
            )
        is_form = request.method == "POST" and request.url.path.startswith(f"{self._forms}/")
        if request.method not in {"GET", "HEAD"} and not is_form:
            return problem(405, "This page can only be read.", {"allow": "GET, HEAD"})
        return None


class KnownHosts(Container[str]):
    """The names under which a server can be reached.

    Args:
        host: the host at which the server listens. If it stands for all addresses of the machine, such as `0.0.0.0`, the
            machine's name is known, and so is every address. DNS rebinding needs a name, so addresses are safe.
    """

    def __init__(self, host: str) -> None:
        self._names = {*_LOOPBACK, host.lower()}
        address = _address(host)
        self._all_addresses = address is not None and address.is_unspecified
        if self._all_addresses:
            self._names.add(socket.gethostname().lower())

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self._names or (self._all_addresses and _address(name) is not None)


def is_loopback(host: str) -> bool:
    """Return True if only programs on this machine reach the host."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _name_in(header: str) -> str:
    """Return the name or address of a header Host in lower case, without the port and the brackets of IPv6."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def with_brackets(host: str) -> str:
    """Return a host as it is written in an address: IPv6 addresses have brackets."""
    return f"[{host}]" if ":" in host else host


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
