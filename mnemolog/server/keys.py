"""API keys: made, found, listed and ended in a table of Postgres that holds no key, only digests."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from mnemolog.client.connections import ReadPool
from mnemolog.errors import ServerUnavailableError
from mnemolog.projections.database import fetch_rows
from mnemolog.projections.sql import queries
from mnemolog.schemas.errors import InvalidArgumentError, MnemologError
from mnemolog.schemas.scope import check_tenant
from mnemolog.server.access import RIGHTS, NotAuthenticatedError, Principal, Right, UserPattern

KEY_MARK: Final = "mnl"
"""What a key begins with, so that scanners of repositories find one that was committed."""
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
FRESH: Final = timedelta(seconds=5)
"""For so long a key that was found is not looked up again: a revoked one works no longer than this."""
KEPT: Final = timedelta(hours=1)
"""For so long a key that was found counts while Postgres is away, so that turns can be published."""
MAX_CACHED: Final = 10_000
_SQL: Final = queries("keys")
_SHAPE: Final = re.compile(rf"{KEY_MARK}_([0-9a-f]{{{2 * _ID_BYTES}}})_[\w-]{{20,100}}", re.ASCII)
INVALID_KEY: Final = "this key is not known, was revoked or has expired: ask for a new one (`mnemolog keys create`)"


class UnknownKeyError(MnemologError, LookupError):
    """No key has this id or name, or several have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is stored of a key: `users` is a pattern, `digest` is of the whole key."""

    key_id: str
    name: str
    tenant: str
    users: str
    rights: list[Right]
    digest: bytes
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    @property
    def principal(self) -> Principal:
        users = UserPattern.read(self.users)
        return Principal(name=f"key:{self.key_id}", tenant=self.tenant, rights=frozenset(self.rights), users=users)


def make_key(
    name: str, *, tenant: str, users: str, rights: Sequence[str], at: datetime, lifetime: timedelta | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown once: `mnl_`, 12 characters to look it up by, and 256 random bits.

    Raises `InvalidArgumentError` for a pattern or a tenant that nobody can have, and where no right is given.
    """
    UserPattern.read(users)
    try:
        check_tenant(tenant)
    except ValueError as error:
        raise InvalidArgumentError(f"tenant {tenant!r:.80} is not valid: {error}") from error
    held = [right for right in RIGHTS if right in rights]
    if not name.strip() or not rights or len(held) < len({*rights}):
        raise InvalidArgumentError(f"a key has a name, and one or more of the rights {', '.join(RIGHTS)}")
    key_id = secrets.token_hex(_ID_BYTES)
    text = f"{KEY_MARK}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    key = ApiKey(
        key_id=key_id,
        name=name,
        tenant=tenant,
        users=users,
        rights=held,
        digest=_digest(text),
        created_at=at,
        expires_at=None if lifetime is None else at + lifetime,
    )
    return key, text


class KeyStore:
    """The keys in Postgres. Every method raises what a `ReadPool` does."""

    def __init__(self, pool: ReadPool, *, now: Callable[[], datetime]) -> None:
        self._pool = pool
        self._now = now
        self._found: dict[str, tuple[datetime, ApiKey]] = {}

    async def principal(self, text: str) -> Principal:
        """Whose key a text is. Raises `NotAuthenticatedError`; while Postgres is away known keys go on."""
        at = self._now()
        shape = _SHAPE.fullmatch(text)
        key = await self._find(shape[1], at) if shape else None
        if key is None or not hmac.compare_digest(key.digest, _digest(text)) or not key.is_valid(at):
            raise NotAuthenticatedError(INVALID_KEY)
        return key.principal

    async def create(self, key: ApiKey) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["insert"], _columns(key))

    async def all(self) -> list[ApiKey]:
        """All keys, also those that have ended, the oldest first."""
        async with self._pool.connection() as connection:
            return await fetch_rows(connection, ApiKey, _SQL["list"], {})

    async def has_valid(self) -> bool:
        at = self._now()
        return any(key.is_valid(at) for key in await self.all())

    async def revoke(self, given: str) -> ApiKey:
        """End the key of an id or a name now. Raises `UnknownKeyError`."""
        key = await self._one(given)
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["revoke"], {"key_id": key.key_id, "at": self._now()})
        return key

    async def rotate(self, given: str, *, grace: timedelta) -> tuple[ApiKey, str]:
        """A new key that may what an old one may, which ends after `grace`. Raises `UnknownKeyError`."""
        at, old = self._now(), await self._one(given)
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        new, text = make_key(old.name, tenant=old.tenant, users=old.users, rights=old.rights, at=at, lifetime=lifetime)
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute(_SQL["expire"], {"key_id": old.key_id, "at": at + grace})
            await connection.execute(_SQL["insert"], _columns(new))
        return new, text

    async def close(self) -> None:
        await self._pool.close()

    async def _one(self, given: str) -> ApiKey:
        """The valid key of an id or a name."""
        at = self._now()
        found = [key for key in await self.all() if given in (key.key_id, key.name) and key.is_valid(at)]
        if len(found) != 1:
            many = "no valid key has" if not found else f"{len(found)} valid keys have"
            raise UnknownKeyError(f"{many} the id or name {given!r:.80}: `mnemolog keys list` shows their ids")
        return found[0]

    async def _find(self, key_id: str, at: datetime) -> ApiKey | None:
        found_at, known = self._found.get(key_id, (None, None))
        if found_at is not None and at - found_at < FRESH:
            return known
        try:
            async with self._pool.connection() as connection:
                rows = await fetch_rows(connection, ApiKey, _SQL["find"], {"key_id": key_id})
        except ServerUnavailableError:
            if found_at is None or at - found_at > KEPT:
                raise
            return known
        if rows:
            if len(self._found) >= MAX_CACHED:
                self._found.clear()
            self._found[key_id] = (at, rows[0])
        return rows[0] if rows else None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _columns(key: ApiKey) -> dict[str, Any]:
    return {one.name: getattr(key, one.name) for one in fields(key)}
