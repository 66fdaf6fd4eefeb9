"""The base of the client: its options, the scope that it is bound to, and the checks of every public method."""

import copy
import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, Final, Never, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast, get_type_hints
from uuid import UUID

import uuid_utils
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.connections import Connections
from mnemolog.client.inputs import (
    BoundArgs,
    ErrorType,
    FactId,
    ScopeArgs,
    When,
    argument_hints,
    check_text,
    hint_checks,
    kind_of,
    refuse_positional,
    refuse_unknown,
    whole_id,
    wide_filter,
)
from mnemolog.errors import InvalidArgumentError, QueryError, UnknownArgumentError
from mnemolog.projections.queries.ids import resolve_fact_id
from mnemolog.projections.queries.scope_filter import WILDCARDS
from mnemolog.settings import Settings, load_settings

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
DEFAULT_PUBLISH_TIMEOUT: Final = 30.0


class ClientOptions(TypedDict, total=False):
    """What a client is made with: servers and tenant go before `settings`, and those before the environment."""

    kafka: str | None
    postgres: str | None
    tenant: str | None
    settings: Settings | None
    publish_timeout: float
    now: Callable[[], datetime]
    new_id: Callable[[], str]


class ClientBase:
    """Settings and connections, and by `scope` a copy that is bound to a user, an agent, an app or a run."""

    def __init__(self, *positional: Never, **options: Unpack[ClientOptions]) -> None:
        refuse_positional(positional, ClientOptions.__annotations__, "MemoryClient")
        refuse_unknown(options, ClientOptions.__annotations__, "MemoryClient")
        checks = hint_checks(get_type_hints(ClientOptions))
        given: dict[str, Any] = {
            name: checks[name](name, value, InvalidArgumentError) if name in checks else value
            for name, value in options.items()
        }
        if not isinstance(given.get("settings"), Settings | None):
            raise InvalidArgumentError(f"settings must be Settings, not {kind_of(given['settings'])}")
        servers = {name: given[name] for name in ("kafka", "postgres", "tenant") if given.get(name) is not None}
        settings: Settings | None = given.get("settings")
        self._settings = settings.model_copy(update=servers) if settings else load_settings(**servers)
        self._now: Callable[[], datetime] = given.get("now", lambda: datetime.now(UTC))
        self._new_id: Callable[[], str] = given.get("new_id", lambda: str(uuid_utils.uuid7()))
        timeout = given.get("publish_timeout", DEFAULT_PUBLISH_TIMEOUT)
        self._connections = Connections(self._settings, publish_timeout=timeout, now=self._now)
        self._prices = self._settings.price_table
        self._scope: BoundArgs = {}
        self.is_bound = False

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(settings=settings)

    def scope(self, *positional: Never, **ids: Unpack[BoundArgs]) -> Self:
        """The same client bound to a scope: its methods take these ids where a call does not give them.

        `alice = memory.scope(user_id="alice")`, then `alice.search("home")`. An id that a call gives goes first, None
        unsets it. Connections are shared: closing the bound client does nothing, close the one it was made of.
        """
        refuse_positional(positional, BoundArgs.__annotations__, "scope")
        refuse_unknown(ids, BoundArgs.__annotations__, "scope")
        for name, value in ids.items():
            if value is not None:
                check_text(name, value, QueryError)
        bound = copy.copy(self)
        bound._scope = {**self._scope, **ids}  # noqa: SLF001 - its own class
        bound.is_bound = True
        return bound

    def __repr__(self) -> str:
        ids = ", ".join(f"{name}={value!r}" for name, value in self._scope.items())  # never where the servers are
        return f"{type(self).__name__}({ids})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is still queued and disconnect; does nothing on what `scope` gives."""
        if not self.is_bound:
            await self._connections.close()

    async def _query(
        self,
        query: Callable[Concatenate[AsyncConnection[TupleRow], P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        async with self._connections.read_pool().connection() as connection:
            return await query(connection, *args, **kwargs)

    async def _fact_id(self, given: FactId, scope: ScopeArgs) -> UUID:
        """The whole id of a fact, which is in the scope where ids are named.

        The tables are asked only for the beginning of an id, or where ids are named.
        """
        within = wide_filter(scope)
        if not within.named and (whole := whole_id(given)):
            return whole
        return await self._query(resolve_fact_id, within, given)

    def _completed(self, given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
        """What a call gives, with the ids of a bound client and the tenant where the method takes them."""
        bound = {name: value for name, value in self._scope.items() if name in known}
        if bound.get("user_id") in WILDCARDS and "agent_id" not in known:
            del bound["user_id"]  # where a user only tells turns of one id apart, a wildcard names nobody
        complete: dict[str, Any] = {**bound, **given}
        if "tenant" in known:
            complete["tenant"] = complete.get("tenant") or self._settings.tenant
        return complete


def checked(error: ErrorType) -> Callable[[type[T]], type[T]]:
    """Make the public methods of a client class check what they are given, and take the ids of a bound client.

    What is wrong raises `error` or `UnknownArgumentError`. It decorates the class, so that the methods keep the types
    and overloads that they are written with.
    """

    def decorate(cls: type[T]) -> type[T]:
        for name, method in list(vars(cls).items()):
            if not name.startswith("_") and inspect.iscoroutinefunction(method):
                setattr(cls, name, _checked(method, error))
        return cls

    return decorate


def _checked(method: Callable[..., Coroutine[Any, Any, R]], error: ErrorType) -> Callable[..., Coroutine[Any, Any, R]]:
    hints, signature = argument_hints(method), inspect.signature(method)
    checks = hint_checks(hints)

    def checked_value(name: str, value: object) -> object:
        check = checks.get(name)
        return check(name, value, error) if check else value

    @wraps(method)
    async def call(self: ClientBase, /, *args: Any, **kwargs: Any) -> R:
        refuse_unknown(kwargs, hints, method.__name__)
        try:
            given = signature.bind(self, *args, **self._completed(kwargs, hints))
        except TypeError as fault:
            raise UnknownArgumentError(f"{method.__name__}(): {fault}") from fault
        for name, value in given.arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                value.update({key: checked_value(key, one) for key, one in value.items()})
            else:
                given.arguments[name] = checked_value(name, value)
        return await method(*given.args, **given.kwargs)

    return call


def checked_time(given: When) -> datetime:
    """A time that `checked` has converted."""
    return cast("datetime", given)
