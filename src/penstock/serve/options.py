"""What a server is started with, and its bounds."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.serve.roles import Role


@dataclass(frozen=True, kw_only=True)
class Limits:
    """No request, and no number of them, may take more than this."""

    body: int = 1024 * 1024
    """Bytes of a request."""
    rate: float = 100.0
    """Requests a second of one token, or of one address without; ten times as many may come at once."""
    running: int = 8
    """Statements that run side by side."""
    waiting: int = 64
    """Statements that wait for their turn; more are told to come later."""
    rows: int = 20_000
    """Rows of an answer, unless the request says otherwise."""
    most_rows: int = 10_000_000
    """Rows that a request can ask for."""
    kept_answer: int = 64 * 1024
    """Bytes of an answer that is kept for a request with an X-Request-Id."""
    job_answer: int = 1024 * 1024
    """Bytes of the answer of a job."""
    streams: int = 200
    """Streams of events that are open at once."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A warehouse to serve, and the name that it has in addresses."""

    name: str
    path: str
    catalog: str | None = None


@dataclass(frozen=True, kw_only=True)
class Oidc:
    """An OpenID Connect issuer whose tokens are believed, and what their claims mean here."""

    issuer: str
    audience: str = "penstock"
    name_claim: str = "sub"
    role_claim: str = "roles"
    roles: Mapping[str, Role] = field(default_factory=lambda: {role.word: role for role in Role})
    """What a word in the claim is worth."""
    database_claim: str | None = None
    """Without one, all databases."""


@dataclass(frozen=True, kw_only=True)
class Options:
    places: tuple[Place, ...]
    host: str = "127.0.0.1"
    port: int = 8080
    schedule: bool = False
    state: str | None = None
    """The server's own file; without one, what it would keep is forgotten with the process."""
    oidc: Oidc | None = None
    root_path: str = ""
    """The path under which a proxy shows the server."""
    proxies: str = ""
    """Addresses of proxies whose X-Forwarded-For and -Proto are believed."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may use the server."""
    certificate: str | None = None
    key: str | None = None
    audit: str | None = None
    """The file that gets a line for each request; without one, the standard error does."""
    drain: float = 60.0
    """Seconds that running work has to end when the server is told to."""
    limits: Limits = field(default_factory=Limits)

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("192.0.2.1")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_loopback for each in found)
