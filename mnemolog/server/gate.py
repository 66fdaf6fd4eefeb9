"""The gate that every request passes: who asks, whether it may, how often, and whose memory it reaches."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Final, Protocol
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from starlette.requests import HTTPConnection

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import BoundArgs
from mnemolog.client.search import listed_scopes
from mnemolog.schemas.errors import MnemologError
from mnemolog.server.access import (
    EVERYBODY,
    RIGHTS,
    ForbiddenError,
    NotAuthenticatedError,
    Principal,
    Right,
    authorise,
)
from mnemolog.server.keys import KEY_MARK

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
NO_CREDENTIALS: Final = (
    "this request has no key: send one as `Authorization: Bearer KEY` or `X-API-Key: KEY` (`mnemolog keys create`)"
)
COOKIE: Final = "mnemolog_key"
"""In which the page keeps a key or a token; the routes of the API do not look at it."""
MAX_BUCKETS: Final = 10_000


class TooManyRequestsError(MnemologError):
    """A principal sends more requests than this server takes of one; `retry_after` is in whole seconds."""

    def __init__(self, rate: float, retry_after: int) -> None:
        super().__init__(f"more than {rate:g} requests a second: send the next one after {retry_after} s")
        self.retry_after = retry_after


class Credentials(Protocol):
    """Tells whose a key or a token is."""

    async def principal(self, text: str) -> Principal: ...


class RateLimit:
    """A bucket of tokens for each principal of this process: `rate` a second, and as many at once as two seconds give.

    With a rate of 0 there is no limit.
    """

    def __init__(self, rate: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Raises `TooManyRequestsError`."""
        if not self._rate:
            return
        full, now = max(1.0, 2 * self._rate), self._clock()
        left, at = self._buckets.get(name, (full, now))
        left = min(full, left + (now - at) * self._rate)
        if left < 1:
            raise TooManyRequestsError(self._rate, math.ceil((1 - left) / self._rate))
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets.clear()
        self._buckets[name] = (left - 1, now)


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may: the only way to a memory is `memory`, which asks `authorise`."""

    principal: Principal
    _client: AsyncMemoryClient

    def scope(self, ids: Mapping[str, str | None]) -> BoundArgs:
        """The scope that these ids mean for the principal. Raises `ForbiddenError`."""
        return authorise(self.principal, ids)

    def memory(self, ids: Mapping[str, str | None]) -> AsyncMemoryClient:
        """A client that is bound to the scope that these ids mean, and to the actor. Raises `ForbiddenError`."""
        return self._client.scope(**self.scope(ids))

    def scopes(self, several: object) -> list[Mapping[str, str | None]] | None:
        """The scopes that a search asks together, each authorised by itself. Raises `ForbiddenError`, `QueryError`."""
        if several is None:
            return None
        scopes = listed_scopes(several)
        if any("tenant" in ids for ids in scopes):
            raise ForbiddenError("the tenant is that of the key: leave it out of `any`")
        return [{**ids, "user_id": self.scope(ids).get("user_id")} if "user_id" in ids else ids for ids in scopes]


class Gate:
    """Authenticates by keys, or by tokens; without both, whoever comes over the loopback may do everything."""

    def __init__(
        self,
        client: AsyncMemoryClient,
        *,
        tenant: str,
        keys: Credentials | None,
        tokens: Credentials | None = None,
        rate: float = 0.0,
    ) -> None:
        self._client = client
        self._keys = keys
        self._tokens = tokens
        self._rate_limit = RateLimit(rate)
        self._open = Principal(name="local", tenant=tenant, rights=frozenset(RIGHTS), users=EVERYBODY)

    async def access(self, connection: HTTPConnection, right: Right, credentials: str | None = None) -> Access:
        """What a request may that needs a right. Raises `ForbiddenError`, and as `admit`."""
        access = await self.admit(connection, credentials)
        access.principal.require(right)
        return access

    async def admit(self, connection: HTTPConnection, credentials: str | None = None) -> Access:
        """What a request, or any ASGI scope in `HTTPConnection`, may; `credentials` go before those of its headers.

        Raises `NotAuthenticatedError`, `ForbiddenError`, `TooManyRequestsError` and `ServerUnavailableError`.
        """
        principal = await self._principal(connection, credentials)
        self._rate_limit.take(principal.name)
        return Access(principal, self._client)

    async def _principal(self, connection: HTTPConnection, text: str | None) -> Principal:
        if self._keys is None and self._tokens is None:
            _check_local(connection)
            return self._open
        if text is None:
            kind, _, token = connection.headers.get("authorization", "").partition(" ")
            text = token.strip() if kind.lower() == "bearer" else connection.headers.get("x-api-key", "")
        if not text:
            raise NotAuthenticatedError(NO_CREDENTIALS)
        is_key = text.startswith(f"{KEY_MARK}_")
        known = self._keys if is_key else self._tokens
        if known is None:
            raise NotAuthenticatedError(f"this server takes no {'keys' if is_key else 'tokens'}: {NO_CREDENTIALS}")
        return await known.principal(text)


def _check_local(connection: HTTPConnection) -> None:
    """Raise `ForbiddenError` where a web page of another site makes the browser ask: it would read all memory."""
    asked = f"//{connection.headers.get('host', '')}"
    for named in (asked, connection.headers.get("origin") or asked):
        try:
            is_local = urlsplit(named).hostname in LOOPBACK
        except ValueError:  # half a pair of brackets
            is_local = False
        if not is_local:
            raise ForbiddenError("without keys this server answers programs of this machine alone: make a key")


def refuse_unknown_query(request: Request) -> None:
    """Raise `RequestValidationError` for a name that the route does not know: what it should narrow would stay wide."""
    if unknown := request.query_params.keys() - _names_in_query(request.scope["route"].dependant):
        fault = {"type": "unknown_query", "msg": "this route has no such parameter in its query", "input": ""}
        raise RequestValidationError([fault | {"loc": ("query", name)} for name in sorted(unknown)])


def _names_in_query(dependant: Dependant) -> set[str]:
    own = {one.alias for one in dependant.query_params}
    return own.union(*map(_names_in_query, dependant.dependencies))


UserId = Annotated[str | None, Query(description="whose memory")]
OtherId = Annotated[str | None, Query(description="another id of the scope; not set unless given")]


def ids_in_query(
    user_id: UserId = None, agent_id: OtherId = None, app_id: OtherId = None, run_id: OtherId = None
) -> dict[str, str | None]:
    return {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}


Ids = Annotated[dict[str, str | None], Depends(ids_in_query)]
_bearer = HTTPBearer(auto_error=False, description="a key, or a JSON Web Token")
_api_key = APIKeyHeader(name="X-API-Key", auto_error=False, description="a key")


@dataclass(frozen=True, slots=True)
class Authorise:
    """The dependency by which a route names the right that it asks for; its value is the access."""

    right: Right
    by_cookie: bool = False

    async def __call__(
        self,
        request: Request,
        _bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
        _api_key: Annotated[str | None, Security(_api_key)] = None,
    ) -> Access:
        gate: Gate = request.app.state.gate
        return await gate.access(request, self.right, request.cookies.get(COOKIE, "") if self.by_cookie else None)


Publisher = Annotated[Access, Depends(Authorise("publish"))]
Reader = Annotated[Access, Depends(Authorise("read"))]
Commander = Annotated[Access, Depends(Authorise("command"))]
Administrator = Annotated[Access, Depends(Authorise("admin"))]


def memory_to_read(access: Reader, ids: Ids) -> AsyncMemoryClient:
    return access.memory(ids)


Memory = Annotated[AsyncMemoryClient, Depends(memory_to_read)]
"""A memory to read, of the ids in the query of the request."""
