"""Tokens of an OpenID Connect issuer, a real one on this machine, before a real server."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from http_server import MAIN, Server, Servers, tokens_of
from issuer import Issuer
from jwt.algorithms import RSAAlgorithm

from penstock.serve.keys import FRESH, KEPT, LOOKS, PAUSE, Keys
from penstock.serve.problems import Refused

VIEWS = "/api/v1/views"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    for algorithm in ("RS256", "ES256", "EdDSA"):
        made.key(algorithm, algorithm)
    yield made
    made.close()


@pytest.fixture(scope="module")
def place(copied: Callable[[], Path]) -> Path:
    return copied()


@pytest.fixture(scope="module")
def served(issuer: Issuer, place: Path, serving: Servers) -> Server:
    """It listens on every address, and has no token of its own."""
    return serving("-w", f"shop={place}", "--host", "0.0.0.0", "--oidc", issuer.url, "--rate", 100_000)


def refused(server: Server, token: str | None, why: str) -> None:
    answer = server.ask("GET", VIEWS, token=token)
    assert (answer.status, answer.json["exception"]) == (401, "Refused"), answer.body
    assert why in answer.json["detail"]
    said = answer.headers["www-authenticate"]
    assert said.startswith("Bearer")
    assert token is None or (why in said and 'error="invalid_token"' in said)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_token_of_the_issuer_is_believed(served: Server, issuer: Issuer, algorithm: str) -> None:
    answer = served.sql("SELECT region FROM totals", "query", issuer.token(algorithm, sub="ann@example.com"))
    assert (answer.status, answer.json["user"]) == (200, "oidc:ann@example.com")
    again = served.ask("GET", VIEWS, token=issuer.token(algorithm, aud=["other", "penstock"]))
    assert again.status == 200
    assert served.ask("GET", VIEWS, token=issuer.token(algorithm, {"typ": "at+jwt"})).status == 200


def test_roles_are_the_claims(served: Server, issuer: Issuer) -> None:
    insert = "INSERT INTO orders VALUES (99, 'us', 1)"
    for roles, status in {("read",): 403, ("read", "refresh"): 403, ("refresh", "admin", "x"): 200}.items():
        assert served.sql(insert, token=issuer.token("ES256", roles=list(roles))).status == status
    for roles in (["boss"], None, {"admin": True}, 3):
        answer = served.ask("GET", VIEWS, token=issuer.token("ES256", roles=roles))
        assert (answer.status, "has no role here" in answer.json["detail"]) == (403, True)
    assert served.ask("GET", "/api/v1/health", token=issuer.token("ES256", roles=None)).status == 200


def test_what_is_not_for_this_server_or_not_now_is_refused(served: Server, issuer: Issuer) -> None:
    now = int(time.time())
    refused(served, None, "this takes a token")
    refused(served, issuer.token("RS256", aud="another"), "for another audience")
    refused(served, issuer.token("RS256", aud=None), "lacks 'aud'")
    refused(served, issuer.token("RS256", iss="https://issuer.example"), "of another issuer")
    refused(served, issuer.token("RS256", iss=None), "lacks 'iss'")
    refused(served, issuer.token("RS256", exp=now - 60), "has expired")
    refused(served, issuer.token("RS256", exp=None), "lacks 'exp'")
    refused(served, issuer.token("RS256", nbf=now + 300), "does not hold yet")
    refused(served, issuer.token("RS256", sub=None), "names nobody")
    refused(served, issuer.token("RS256", sub="x" * 300), "names nobody")
    refused(served, issuer.token("RS256", {"typ": "logout+jwt"}), "not for access")
    refused(served, issuer.token("RS256", {"crit": ["x"]}), "cannot be read")
    refused(served, "pst_of-nobody", "not known, has expired or was revoked")
    almost = issuer.token("RS256", exp=now - 2, nbf=now + 2)
    assert served.ask("GET", VIEWS, token=almost).status == 200, "clocks may be some seconds apart"


def test_a_token_does_not_choose_how_it_is_checked(served: Server, issuer: Issuer) -> None:
    good = issuer.token("RS256")
    claims = jwt.decode(good, options={"verify_signature": False})
    head, body, signature = good.split(".")
    public = issuer.keys["RS256"][1].public_key()
    for secret in (
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        base64.urlsafe_b64decode(issuer.published[0]["n"] + "=="), b"",
    ):  # fmt: skip
        refused(served, _signed_with_secret(head, body, secret), "not signed with RS256")
    refused(served, jwt.encode(claims, None, "none", {"kid": "RS256"}), "not signed with RS256")
    refused(served, f"{_encoded({'alg': 'NONE', 'kid': 'RS256'})}.{body}.", "not signed with RS256")
    refused(served, jwt.encode(claims, issuer.keys["RS256"][1], "RS512", {"kid": "RS256"}), "not signed with RS256")
    refused(served, jwt.encode(claims, issuer.keys["ES256"][1], "ES256", {"kid": "RS256"}), "does not have")
    other = rsa.generate_private_key(65537, 2048)
    refused(served, jwt.encode(claims, other, "RS256", {"kid": "RS256"}), "signature is not the issuer's")
    own = json.loads(RSAAlgorithm.to_jwk(other.public_key()))
    brought = {"kid": "RS256", "jwk": own, "jku": "https://evil.example/keys", "x5u": "https://evil.example"}
    refused(served, jwt.encode(claims, other, "RS256", brought), "signature is not the issuer's")
    promoted = _encoded({**claims, "roles": ["admin"], "sub": "eve"})
    refused(served, f"{head}.{promoted}.{signature}", "signature is not the issuer's")
    refused(served, f"{head}.{body}.", "signature is not the issuer's")
    heads = [_encoded(told) for told in ([], {"alg": "RS256", "kid": ["x"]}, {"alg": ["RS256"]}, {"alg": 1})]
    for text in ("..", "a.b.c", f"{head}.{body}", f"{head}.{body}.{signature}.x", "." * 50, f"{head}..{signature}",
                 *(f"{other}.{body}.{signature}" for other in heads)):  # fmt: skip
        assert served.ask("GET", VIEWS, token=text).status == 401


def _signed_with_secret(head: str, body: str, secret: bytes) -> str:
    import hashlib
    import hmac

    told = {**json.loads(base64.urlsafe_b64decode(head + "==")), "alg": "HS256"}
    signed = f"{_encoded(told)}.{body}"
    made = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


def _encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_keys_are_kept_and_change(served: Server, issuer: Issuer) -> None:
    assert served.ask("GET", VIEWS, token=issuer.token("RS256")).status == 200
    asked = len(issuer.asked)
    for _ in range(20):
        assert served.ask("GET", VIEWS, token=issuer.token("ES256")).status == 200
    assert len(issuer.asked) == asked
    issuer.key("next", "EdDSA", publish=False)
    refused(served, issuer.token("next"), "a key that the issuer does not have")
    del issuer.keys["next"]
    issuer.key("next", "EdDSA")
    assert served.ask("GET", VIEWS, token=issuer.token("next")).status == 200, "it was looked for"
    issuer.key("unknown", publish=False)
    asked = len(issuer.asked)
    for _ in range(3 * LOOKS):
        refused(served, issuer.token("unknown"), "a key that the issuer does not have")
    assert len(issuer.asked) - asked <= 2 * LOOKS, "a look is two questions, and there are not more in a minute"
    issuer.status = 500
    assert served.ask("GET", VIEWS, token=issuer.token("RS256")).status == 200, "what is known holds"
    issuer.status = 200


def test_claims_are_mapped(copied: Callable[[], Path], issuer: Issuer, serving: Servers) -> None:
    place = copied()
    own = tokens_of(place)["read"]
    server = serving(
        "-w", f"shop={place}", "-w", f"other={copied()}", "--oidc", issuer.url, "--oidc-audience", "client-7",
        "--oidc-role-claim", "realm_access.roles", "--oidc-role", "/data=team=admin", "--oidc-role", "analysts=read",
        "--oidc-database-claim", "databases", "--oidc-name-claim", "email",
    )  # fmt: skip

    def token(*roles: str, **more: Any) -> str:
        said = {"aud": "client-7", "roles": None, "realm_access": {"roles": list(roles)}, "databases": ["shop"]}
        return issuer.token("RS256", **{**said, "email": "a@example.com", "email_verified": True, **more})

    insert = {"command": "INSERT INTO orders VALUES (99, 'us', 1)"}
    assert server.ask("POST", "/api/v1/command/shop", insert, token("analysts")).status == 403
    done = server.ask("POST", "/api/v1/command/shop", insert, token("analysts", "/data=team"))
    assert (done.status, done.json["user"]) == (200, "oidc:a@example.com")
    assert server.ask("GET", "/api/v1/views?database=shop", token=token("admin")).status == 403, "not one of ours"
    assert server.ask("GET", "/api/v1/databases", token=token("analysts")).json["result"] == ["shop"]
    assert server.ask("GET", "/api/v1/views?database=other", token=token("analysts")).status == 404
    everything = token("analysts", databases="*")
    assert server.ask("GET", "/api/v1/databases", token=everything).json["result"] == ["shop", "other"]
    assert server.ask("GET", "/api/v1/databases", token=token("analysts", databases=None)).status == 403
    refused(server, token("analysts", email_verified=False), "email is not verified")
    assert server.ask("GET", "/api/v1/databases", token=own).status == 200, "Penstock's own are accepted beside them"
    line = next(line for line in server.lines if '"user": "oidc:a@example.com"' in line)
    assert '"role": "read"' in line


def test_on_this_machine_a_token_is_needed_too(copied: Callable[[], Path], issuer: Issuer, serving: Servers) -> None:
    server = serving("-w", f"shop={copied()}", "--oidc", issuer.url)
    refused(server, None, "this takes a token")
    assert server.ask("GET", VIEWS, token=issuer.token("ES256")).status == 200


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--oidc", "http://issuer.example"], "is no https address"),
        (["--oidc", "file:///etc/passwd"], "is no https address"),
        (["--oidc", "https://issuer.example?x=1"], "has a query"),
        (["--oidc-role", "x=admin"], "name the issuer with --oidc"),
        (["--oidc", "https://issuer.example", "--oidc-role", "boss"], "is not VALUE=ROLE"),
    ],
)
def test_what_is_no_issuer_is_told(arguments: list[str], told: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAIN, "serve", "-w", str(tmp_path / "w"), "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert told in " ".join(done.stderr.split())


@pytest.fixture
def fresh() -> Iterator[Issuer]:
    made = Issuer()
    made.key("one", "ES256")
    yield made
    made.close()


def test_keys_hold_while_the_issuer_is_away(fresh: Issuer) -> None:
    now = [0.0]
    keys = Keys(fresh.url, lambda: now[0])

    def known(id: str | None = "one") -> bool:
        return asyncio.run(keys.named(id, "ES256")) is not None

    assert known()
    assert known(None), "a token may leave out its key's name if there is but one"
    asked = len(fresh.asked)
    fresh.published.clear()
    now[0] = FRESH
    assert (known(), len(fresh.asked)) == (True, asked)
    now[0] += 1
    assert not known(), "the issuer has taken it back"
    fresh.key("one", "ES256")
    now[0] += FRESH + 1
    assert known()
    fresh.status = 503
    now[0] += FRESH + 1
    asked = len(fresh.asked)
    assert known()
    assert known()
    assert len(fresh.asked) == asked + 1, "who is away is left alone for a while"
    now[0] += PAUSE + 1
    assert known()
    assert len(fresh.asked) == asked + 2
    now[0] += KEPT
    with pytest.raises(Refused, match="cannot be asked"):
        known()
    fresh.status, fresh.told = 200, {"issuer": "https://other.example"}
    with pytest.raises(Refused, match="cannot be asked"):
        known()
    fresh.told = {"jwks_uri": "http://keys.example"}
    with pytest.raises(Refused, match="cannot be asked"):
        known()
    fresh.told = {}
    assert known()


def test_only_keys_that_sign_are_taken(fresh: Issuer) -> None:
    small = rsa.generate_private_key(65537, 1024).public_key()
    fresh.published += [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"},
        {**fresh.published[0], "kid": "for-encryption", "use": "enc"},
        {**fresh.published[0], "kid": "other", "alg": "ES512"},
        {**json.loads(RSAAlgorithm.to_jwk(small)), "kid": "small"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "!"},
        {"kty": "EC", "crv": "P-256", "kid": "pointless"},
        "nonsense",  # type: ignore[list-item]
    ]
    keys = Keys(fresh.url)

    async def found() -> list[bool]:
        names = ("one", "secret", "for-encryption", "other", "small", "broken", "pointless")
        return [await keys.named(name, algorithm) is not None for name in names for algorithm in ("ES256", "RS256")]

    assert asyncio.run(found()) == [True, *[False] * 13]
