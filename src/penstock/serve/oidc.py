"""Tokens of an OpenID Connect issuer: whether one holds, and what it lets its bearer do.

A token is believed if a key of the issuer has signed it, for this server, and its time has come and is not over. Which
algorithm that takes is the key's to say, not the token's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from penstock.serve.access import Caller, unknown
from penstock.serve.keys import Keys, check_issuer
from penstock.serve.options import Oidc
from penstock.serve.problems import Refused
from penstock.serve.roles import Role

LEEWAY = 30
"""Seconds that clocks may be apart."""
_SIGNED = ("RS256", "ES256", "EdDSA")
_KINDS = (None, "JWT", "AT+JWT", "APPLICATION/AT+JWT")
"""What a token may say that it is. One that tells of the end of a session, say, has another."""
_MOST_CHARACTERS = 255

_SAID: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token does not hold yet",
    jwt.InvalidAudienceError: "the token is for another audience",
    jwt.InvalidIssuerError: "the token is of another issuer",
    jwt.InvalidSignatureError: "the token's signature is not the issuer's",
}


class SignIn:
    def __init__(self, options: Oidc):
        check_issuer(options.issuer)
        self._options = options
        self._keys = Keys(options.issuer)

    async def caller(self, token: str) -> Caller:
        """Whose token it is; raises ``Refused`` with the reason why it is not believed."""
        claims = await self._claims(token)
        name = claims.get(self._options.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= _MOST_CHARACTERS:
            raise unknown(f"the token names nobody in {self._options.name_claim!r}")
        if self._options.name_claim == "email" and claims.get("email_verified") is not True:
            raise unknown("the token's email is not verified")
        return Caller(f"oidc:{name}", self._role(name, claims), self._databases(name, claims))

    async def _claims(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise unknown("the token cannot be read") from None
        algorithm, kind = header.get("alg"), header.get("typ")
        if algorithm not in _SIGNED:
            raise unknown(f"the token is not signed with {', '.join(_SIGNED)}")
        if kind is not None and str(kind).upper() not in _KINDS:
            raise unknown("the token is not for access")
        key = await self._keys.named(header.get("kid"), algorithm)
        if key is None:
            raise unknown("the token is signed with a key that the issuer does not have")
        try:
            return jwt.decode(
                token, key, [key.algorithm_name], audience=self._options.audience, issuer=self._options.issuer,
                leeway=LEEWAY, options={"require": ["exp", "iss", "aud"]},
            )  # fmt: skip
        except jwt.MissingRequiredClaimError as problem:
            raise unknown(f"the token lacks {problem.claim!r}") from None
        except jwt.PyJWTError as problem:
            raise unknown(_SAID.get(type(problem), "the token cannot be read")) from None

    def _role(self, name: str, claims: Mapping[str, Any]) -> Role:
        given = _listed(claims, self._options.role_claim)
        roles = [role for word, role in self._options.roles.items() if word in given]
        if not roles:
            raise Refused(
                403, f"the token of {name!r} has no role here: {self._options.role_claim!r} has none of "
                f"{', '.join(self._options.roles)}.",
                help="Ask whoever runs the issuer for a role, or the server for another --oidc-role.",
            )  # fmt: skip
        return max(roles)

    def _databases(self, name: str, claims: Mapping[str, Any]) -> tuple[str, ...]:
        if self._options.database_claim is None:
            return ()
        given = _listed(claims, self._options.database_claim)
        if "*" in given:
            return ()
        if not given:
            raise Refused(
                403, f"the token of {name!r} is for no database: {self._options.database_claim!r} is empty.",
                help="Ask whoever runs the issuer.",
            )  # fmt: skip
        return tuple(given)


def _listed(claims: Mapping[str, Any], name: str) -> list[str]:
    """The words of a claim: a list of texts, or a text with words in it. Dots lead into objects.

    >>> _listed({"realm_access": {"roles": ["admin", 1]}}, "realm_access.roles"), _listed({"scope": "a b"}, "scope")
    (['admin'], ['a', 'b'])
    >>> _listed({"https://x.example/roles": ["read"]}, "https://x.example/roles"), _listed({"a": 1}, "a.b")
    (['read'], [])
    """
    found: Any = claims
    for part in [name] if name in claims else name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return found.split()
    return [word for word in found if isinstance(word, str)] if isinstance(found, list) else []
