"""An OpenID Connect issuer on this machine: real keys, real HTTP; what it publishes and signs is the test's to say."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

MAKERS: dict[str, Any] = {
    "RS256": (lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
}


class Issuer:
    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {}
        """What it signs with: an algorithm and a private key by their id."""
        self.published: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.status = 200
        self.told: dict[str, Any] = {}
        """What its discovery document says otherwise than it should."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                document = {
                    "/.well-known/openid-configuration": {
                        "issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys", **issuer.told
                    },
                    "/keys": {"keys": issuer.published},
                }.get(self.path)  # fmt: skip
                self.send_response(issuer.status if document is not None else 404)
                self.end_headers()
                self.wfile.write(json.dumps(document).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def key(self, id: str, algorithm: str = "RS256", *, publish: bool = True) -> None:
        make, kind = MAKERS[algorithm]
        self.keys[id] = (algorithm, make())
        if publish:
            public = json.loads(kind.to_jwk(self.keys[id][1].public_key()))
            self.published.append({"use": "sig", "alg": algorithm, **public, "kid": id})

    def token(self, key: str, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """Signed with a key. A claim that is None is left out."""
        algorithm, private = self.keys[key]
        now = int(time.time())
        said = {"iss": self.url, "aud": "penstock", "sub": "ann", "roles": ["admin"], "exp": now + 600, "iat": now}
        kept = {name: value for name, value in {**said, **claims}.items() if value is not None}
        return jwt.encode(kept, private, algorithm, {"kid": key, **(headers or {})})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
