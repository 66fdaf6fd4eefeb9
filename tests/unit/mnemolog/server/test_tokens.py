"""JSON Web Tokens: taken where the published keys, the issuer, the audience and the time agree, else refused."""

import hmac
import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt.algorithms import ECAlgorithm

from mnemolog.errors import ServerUnavailableError
from mnemolog.server.access import NotAuthenticatedError
from mnemolog.server.tokens import TokenReader
from mnemolog.settings import Settings

NOW = datetime.now(UTC)
CLAIMS: dict[str, Any] = {
    "sub": "alice", "aud": "memory", "iss": "https://issuer.example", "exp": NOW + timedelta(hours=1),
    "scope": "openid memory:read publish memory:everything", "tenant": "acme",
}  # fmt: skip
KEY, OTHER = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())


def public_document(key: EllipticCurvePrivateKey) -> dict[str, Any]:
    return {**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": "k1", "alg": "ES256", "use": "sig"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The URL of keys: one of elliptic curves, and one with a shared secret, which nobody should publish."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shared = {
                "kty": "oct",
                "kid": "shared",
                "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC0",
                "alg": "HS256",
            }
            body = json.dumps({"keys": [public_document(KEY), shared]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/keys"
    server.shutdown()
    thread.join()
    server.server_close()


def reader(url: str) -> TokenReader:
    return TokenReader(Settings(jwks_url=url, jwt_audience="memory", jwt_issuer="https://issuer.example"))


def token(key: Any = KEY, algorithm: str = "ES256", kid: str | None = "k1", **claims: Any) -> str:
    given = {name: value for name, value in (CLAIMS | claims).items() if value is not ...}
    return jwt.encode(given, key, algorithm=algorithm, headers={} if kid is None else {"kid": kid})


async def test_a_token_is_for_the_one_user_of_its_subject(issuer: str) -> None:
    tokens = reader(issuer)
    principal = await tokens.principal(token())
    assert (principal.name, principal.tenant, principal.rights) == ("jwt:alice", "acme", frozenset({"read"}))
    assert "alice" in principal.users
    assert "alice2" not in principal.users
    assert (await tokens.principal(token(tenant=...))).tenant == "default"
    starred = await tokens.principal(token(sub="ali*"))
    assert "alice" not in starred.users


def signed_with_secret(secret: bytes) -> str:
    """Which the library refuses to make of a public key."""
    head, claims, _ = token("secret-secret-secret-secret-secret-", "HS256").split(".")
    signature = hmac.digest(secret, f"{head}.{claims}".encode(), "sha256")
    return f"{head}.{claims}.{urlsafe_b64encode(signature).decode().rstrip('=')}"


PUBLIC = KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
REFUSED: Mapping[str, str] = {
    "alg none": token(None, "none"),
    "the public key as a secret": signed_with_secret(PUBLIC),
    "a published secret": token("secret-secret-secret-secret-secret-", "HS256", "shared"),
    "another key": token(OTHER),
    "an unknown key": token(kid="k2"),
    "no key id": token(kid=None),
    "another audience": token(aud="other"),
    "no audience": token(aud=...),
    "another issuer": token(iss="https://evil.example"),
    "no issuer": token(iss=...),
    "expired": token(exp=NOW - timedelta(seconds=90)),
    "no end": token(exp=...),
    "not yet": token(nbf=NOW + timedelta(hours=1)),
    "no subject": token(sub=...),
    "nobody": token(sub=""),
    "everybody": token(sub="*"),
    "everybody and none": token(sub="**"),
    "a tenant that is no text": token(tenant=["acme"]),
    "cut": token()[:-8],
    "no token": "abc",
}


@pytest.mark.parametrize("way", REFUSED)
async def test_a_token_that_is_not_as_it_should_be_is_refused(way: str, issuer: str) -> None:
    with pytest.raises(NotAuthenticatedError, match=r"the token is not valid|the claim"):
        await reader(issuer).principal(REFUSED[way])


async def test_while_the_issuer_is_away_nobody_is_refused_for_good() -> None:
    with pytest.raises(ServerUnavailableError, match=r"the keys of http://127\.0\.0\.1:1/ cannot be fetched"):
        await reader("http://127.0.0.1:1/").principal(token())
