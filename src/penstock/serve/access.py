"""Who asks, and what they may: the caller of a request, and the role that a route takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request

from penstock.serve.problems import Refused
from penstock.serve.roles import Role
from penstock.serve.state import State

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


def caller_of(headers: Mapping[str, str], state: State, loopback: bool) -> Caller | None:
    """Who sent a request; None if nobody who is known."""
    if loopback and not state.has_tokens:
        return LOCAL
    scheme, _, text = headers.get("authorization", "").partition(" ")
    token = state.token(text.strip()) if scheme.lower() == "bearer" else None
    return None if token is None else Caller(token.name, token.role, token.databases)


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
            raise Refused(
                401, "this takes a token.", help="Send Authorization: Bearer TOKEN; penstock token create makes one.",
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        if caller.role < self.role:
            raise Refused(
                403, f"this takes the role {self.role.word}, and {caller.name!r} has the role {caller.role.word}.",
                help=f"Use a token with the role {self.role.word}.",
            )  # fmt: skip
        return caller
