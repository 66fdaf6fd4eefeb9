"""JSON Web Tokens of another server, checked by the keys that it publishes (JWKS)."""

import asyncio
from time import monotonic
from typing import Any, Final

import jwt

from mnemolog.errors import ServerUnavailableError
from mnemolog.projections.queries.scope_filter import WILDCARDS
from mnemolog.server.access import RIGHTS, NotAuthenticatedError, Principal, UserPattern
from mnemolog.settings import Settings

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those of a key pair alone: with a shared secret the public key of the issuer would be one."""
RIGHT_MARK: Final = "memory:"
"""What stands before a right among the words of the claim `scope`."""
REFRESH_SECONDS: Final = 10.0
"""Tokens of unknown keys have the set of keys fetched again no more often than this."""
FETCH_SECONDS: Final = 5.0


class TokenReader:
    """Makes a principal of a token: the user is `sub`, rights are in `scope`, and the tenant in `tenant`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = jwt.PyJWKClient(settings.jwks_url or "", cache_keys=False, timeout=int(FETCH_SECONDS))
        self._fetched_at = -REFRESH_SECONDS

    async def principal(self, token: str) -> Principal:
        """Whose token it is. Raises `NotAuthenticatedError`, and `ServerUnavailableError` where no keys are to be had.

        Its keys are fetched in a thread.
        """
        try:
            key = await asyncio.to_thread(self._key_of, token)
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name] if key.algorithm_name in ALGORITHMS else [],
                audience=self._settings.jwt_audience,
                issuer=self._settings.jwt_issuer,
                options={"require": ["exp", "sub", "aud"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise ServerUnavailableError(f"the keys of {self._settings.jwks_url} cannot be fetched: {error}") from error
        except jwt.PyJWTError as error:
            raise NotAuthenticatedError(f"the token is not valid ({error}): get a new one") from error
        return self._principal_of(claims)

    def _key_of(self, token: str) -> jwt.PyJWK:
        key_id = jwt.get_unverified_header(token).get("kid")
        for refresh in (False, True):
            if refresh and monotonic() - self._fetched_at < REFRESH_SECONDS:
                break
            if refresh:
                self._fetched_at = monotonic()
            known = self._keys.get_signing_keys(refresh=refresh)
            if found := next((key for key in known if key.key_id == key_id), None):
                return found
        raise jwt.InvalidTokenError("no published key has its id")

    def _principal_of(self, claims: dict[str, Any]) -> Principal:
        subject, tenant = claims["sub"], claims.get("tenant", self._settings.tenant)
        if not subject or subject in WILDCARDS:
            raise NotAuthenticatedError("the claim sub is not the id of a user: a token is for one user")
        if not isinstance(tenant, str) or not tenant:
            raise NotAuthenticatedError("the claim tenant is not text: name the tenant, or leave it out")
        words = str(claims.get("scope", "")).split()
        rights = frozenset(right for right in RIGHTS if f"{RIGHT_MARK}{right}" in words)
        return Principal(name=f"jwt:{subject}", tenant=tenant, rights=rights, users=UserPattern(id=subject))
