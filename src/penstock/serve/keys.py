"""The public keys of an OpenID Connect issuer: found by its discovery document, kept a while, and asked for again when
a token names one that is not known. It is the only place of the server that asks another server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import anyio.to_thread
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from penstock.errors import PenstockError, WarehouseError
from penstock.serve.access import is_local_name
from penstock.serve.problems import Refused

_log = logging.getLogger("penstock.serve")

FRESH = 15 * 60.0
"""Seconds after which keys are asked for again, so that one that the issuer takes back is soon refused."""
KEPT = 24 * 60 * 60.0
"""Seconds for which keys hold while the issuer is away."""
PAUSE = 30.0
"""Seconds in which an issuer that is away is left alone, as long as its keys are known."""
LOOKS, MINUTE = 10, 60.0
"""So many looks a minute: nobody makes this server flood the issuer with tokens that name keys which do not exist."""
_SECONDS = 5.0
_MOST_BYTES = 1024 * 1024
_LEAST_BITS = 2048

_ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The one algorithm of a kind of key. A secret (oct) is none: whoever can check with it can also sign."""


class Away(PenstockError):
    """The issuer cannot be asked."""


class Keys:
    """The keys of an issuer by their id. To be used in one event loop."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic):
        self._issuer, self._clock = issuer, clock
        self._known: dict[str | None, list[jwt.PyJWK]] = {}
        self._asked_at: float | None = None
        """When the issuer last answered."""
        self._away_at: float | None = None
        """When it did not, since then."""
        self._looks: deque[float] = deque(maxlen=LOOKS)
        self._lock = asyncio.Lock()

    async def named(self, id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """The key with an id, for an algorithm; without an id the only one there is. Raises ``Refused`` (503) if the
        issuer is away and was for long."""
        if self._age() > FRESH:
            await self._look(lambda: self._age() > FRESH)
        found = self._find(id, algorithm)
        if found is None:
            await self._look(lambda: self._find(id, algorithm) is None)
            found = self._find(id, algorithm)
        if self._age() > KEPT:
            raise Refused(
                503, f"the issuer {self._issuer} cannot be asked for its keys.",
                help="Send it again in a moment, or use a token of Penstock.", headers={"Retry-After": "5"},
            )  # fmt: skip
        return found

    def _age(self) -> float:
        return float("inf") if self._asked_at is None else self._clock() - self._asked_at

    def _find(self, id: str | None, algorithm: str) -> jwt.PyJWK | None:
        wanted = [each for keys in self._known.values() for each in keys] if id is None else self._known.get(id, [])
        fitting = [key for key in wanted if key.algorithm_name == algorithm]
        return fitting[0] if len(fitting) == 1 else None

    async def _look(self, still: Callable[[], bool]) -> None:
        """Ask the issuer, unless another request has meanwhile, or it was asked too often of late."""
        async with self._lock:
            now = self._clock()
            too_often = len(self._looks) == LOOKS and now - self._looks[0] < MINUTE
            resting = self._away_at is not None and now - self._away_at < PAUSE and self._age() <= KEPT
            if not still() or too_often or resting:
                return
            self._looks.append(now)
            try:
                self._known = await anyio.to_thread.run_sync(keys_of, self._issuer)
                self._asked_at, self._away_at = self._clock(), None
            except Away as problem:
                self._away_at = self._clock()
                _log.warning("%s", problem)


def keys_of(issuer: str) -> dict[str | None, list[jwt.PyJWK]]:
    """What an issuer signs with, by the ids of keys. What is for something else, or of another kind, is left out."""
    place = discovered(issuer)
    _check_place(place)
    listed = _got(place).get("keys")
    found: dict[str | None, list[jwt.PyJWK]] = {}
    for each in listed if isinstance(listed, list) else []:
        key = _key(each) if isinstance(each, dict) else None
        if key is not None:
            found.setdefault(key.key_id, []).append(key)
    return found


def discovered(issuer: str) -> str:
    """Where an issuer's keys are. Raises ``Away`` if its document is another one's."""
    told = _got(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if told.get("issuer") != issuer:
        raise Away(
            f"the issuer {issuer} calls itself {str(told.get('issuer'))[:200]!r} in its discovery document. "
            "Give --oidc exactly that."
        )
    return str(told.get("jwks_uri"))


def check_issuer(issuer: str) -> None:
    """Raise ``WarehouseError`` for what cannot be an issuer."""
    try:
        _check_place(issuer)
        if urlsplit(issuer).query or urlsplit(issuer).fragment:
            raise Away(f"the issuer {issuer!r} has a query or a fragment.")
    except Away as problem:
        raise WarehouseError(f"{problem} Write it as --oidc https://issuer.example.") from None


def _check_place(url: str) -> None:
    """Keys that anybody on the way could change prove nothing; on this machine there is no way."""
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_local_name(parts.netloc))
        known = safe and bool(parts.hostname)
    except ValueError:
        known = False
    if not known:
        raise Away(f"{url[:200]!r} is no https address.")


class _Stay(HTTPRedirectHandler):
    """Another place is not gone to: it was not what was checked."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = build_opener(_Stay)


def _got(url: str) -> dict[str, Any]:
    try:
        with _OPENER.open(url, timeout=_SECONDS) as answer:
            body = answer.read(_MOST_BYTES + 1)
        told = json.loads(body) if len(body) <= _MOST_BYTES else None
    except (URLError, HTTPException, OSError, ValueError, RecursionError) as problem:
        raise Away(f"{url} cannot be read: {problem}.") from None
    if not isinstance(told, dict):
        raise Away(f"{url} has no JSON object, or more than {_MOST_BYTES:,} bytes.")
    return told


def _key(told: dict[str, Any]) -> jwt.PyJWK | None:
    kind = str(told.get("kty"))
    algorithm = _ALGORITHMS.get((kind, None if kind == "RSA" else str(told.get("crv"))))
    if algorithm is None or told.get("alg", algorithm) != algorithm or told.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(told, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    small = isinstance(key.key, RSAPublicKey) and key.key.key_size < _LEAST_BITS
    return None if small or not isinstance(key.key_id, str | None) else key
