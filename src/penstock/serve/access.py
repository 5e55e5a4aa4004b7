"""Who asks, and what they may: the caller of a request, and the role that a route takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request

from penstock.serve.options import Options
from penstock.serve.problems import Refused
from penstock.serve.roles import Role
from penstock.serve.state import State

if TYPE_CHECKING:
    from penstock.serve.oidc import SignIn

PUBLIC = ("/api/v1/health", "/api/v1/ready", "/api/v1/openapi.json")
"""What is told to everybody; and the files of the page, which are the same everywhere."""


@dataclass(frozen=True)
class Caller:
    name: str
    role: Role
    databases: tuple[str, ...] = ()
    """Empty: all."""

    def may_see(self, database: str) -> bool:
        return not self.databases or database in self.databases


LOCAL = Caller("local", Role.ADMIN)
"""Whoever is on this machine, as long as no token was ever made."""


def unknown(why: str) -> Refused:
    """What is answered to who brings a token that is not believed, or none."""
    said = f'Bearer error="invalid_token", error_description="{why.translate(_UNQUOTED)}"'
    return Refused(
        401, f"{why}.", help="Send Authorization: Bearer TOKEN; penstock token create makes one.",
        headers={"WWW-Authenticate": said},
    )  # fmt: skip


_UNQUOTED = {ord('"'): "'", ord("\\"): "/"}
NOBODY = Refused(
    401, "this takes a token.", help="Send Authorization: Bearer TOKEN; penstock token create makes one.",
    headers={"WWW-Authenticate": "Bearer"},
)  # fmt: skip


class Door:
    """Finds out who sent a request."""

    def __init__(self, options: Options, state: State):
        self._options, self._state = options, state
        self._sign_in: SignIn | None = None
        if options.oidc is not None:
            from penstock.serve.oidc import SignIn

            self._sign_in = SignIn(options.oidc)

    @property
    def is_open(self) -> bool:
        """Whether everybody on this machine may do everything."""
        return self._options.loopback and self._sign_in is None and not self._state.has_tokens

    async def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who it is; raises ``Refused`` if it is nobody who is known."""
        if self.is_open:
            return LOCAL
        scheme, _, text = headers.get("authorization", "").partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text:
            raise NOBODY
        if self._sign_in is not None and text.count(".") == 2:  # a JWT; Penstock's own have no dot
            return await self._sign_in.caller(text)
        token = self._state.token(text)
        if token is None:
            raise unknown("the token is not known, has expired or was revoked")
        return Caller(token.name, token.role, token.databases)


def is_local_name(host: str) -> bool:
    """Whether a Host is one by which this machine calls itself. A page elsewhere may have its name lead here.

    >>> [is_local_name(host) for host in ("localhost:80", "127.0.0.1:8080", "[::1]:1", "127.0.0.1.evil.example")]
    [True, True, True, False]
    """
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    try:
        return name.lower() == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Needs:
    """What a route asks of its caller. The test that walks all routes looks for it."""

    def __init__(self, role: Role):
        self.role = role

    def __call__(self, request: Request) -> Caller:
        caller: Caller | None = request.state.caller
        if caller is None:
            raise request.state.refused
        if caller.role < self.role:
            raise Refused(
                403, f"this takes the role {self.role.word}, and {caller.name!r} has the role {caller.role.word}.",
                help=f"Use a token with the role {self.role.word}.",
            )  # fmt: skip
        return caller
