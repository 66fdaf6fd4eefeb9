"""Base of the client: its settings, its connections, and the ids that a bound client adds to each call."""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Never, ParamSpec, Self, TypedDict, TypeVar, Unpack, get_type_hints

import uuid_utils
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.discovery import with_discovered_servers
from mnemolog.client.inputs.arguments import (
    BoundArgs,
    TurnArgs,
    argument_names,
    refuse_positional,
    refuse_unknown,
)
from mnemolog.client.inputs.checks import ErrorType, check_text, checks_of, hint_checks, kind_of
from mnemolog.client.inputs.messages import Messages, as_messages
from mnemolog.client.inputs.record_builder import build_turn
from mnemolog.client.limit_check import LimitPrecheck
from mnemolog.client.producer import RecordProducer
from mnemolog.client.queries.embedder import QueryEmbedder
from mnemolog.client.queries.search_models import SearchModels
from mnemolog.client.read_pool import ReadPool
from mnemolog.errors import InvalidArgumentError, MnemologError, QueryError, UnknownArgumentError
from mnemolog.projections.queries.fact_rows import WILDCARDS
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings, load_settings

if TYPE_CHECKING:
    from mnemolog.streams.runtime.dry_run import DryRun

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
DEFAULT_PUBLISH_TIMEOUT = 30.0
CLOSED = "this client is closed: make a new one"


class ClientOptions(TypedDict, total=False):
    """What a client is made with: servers and tenant go before `settings`, and those before the environment."""

    kafka: str | None
    postgres: str | None
    tenant: str | None
    settings: Settings | None
    publish_timeout: float
    now: Callable[[], datetime]
    new_id: Callable[[], str]


class Connections:
    """What a client and its bound copies share, each opened at its first use."""

    def __init__(self, settings: Settings, *, publish_timeout: float, now: Callable[[], datetime]) -> None:
        self.limit_precheck = LimitPrecheck(settings.price_table)
        self.query_embedder = QueryEmbedder(settings)
        self.search_models = SearchModels(settings)
        self._settings = settings
        self._publish_timeout = publish_timeout
        self._now = now
        self._lock = asyncio.Lock()
        self._producer: RecordProducer | None = None
        self._read_pool: ReadPool | None = None
        self._dry_run: DryRun | None = None
        self._closed = False

    async def producer(self) -> RecordProducer:
        async with self._lock:
            if self._producer is not None and self._producer.needs_reconnect:
                await self._producer.close()
                self._producer = None
            if self._producer is None:
                settings = self._discovered("kafka")
                self._producer = await RecordProducer.connect(
                    settings.kafka or "",
                    prefix=settings.topic_prefix,
                    compression=settings.compression,
                    timeout_seconds=self._publish_timeout,
                    command_token=settings.command_token,
                )
            return self._producer

    def read_pool(self) -> ReadPool:
        if self._read_pool is None:
            settings = self._discovered("postgres")
            self._read_pool = ReadPool(
                settings.postgres or "",
                size=settings.postgres_pool_size,
                statement_timeout=settings.postgres_statement_timeout,
            )
        return self._read_pool

    @property
    def dry_run_waits_for(self) -> str:
        """What a dry run that takes long waits for."""
        return self._dry_run.waits_for if self._dry_run else "Postgres"

    async def dry_run(self) -> "DryRun":
        """The stages, made at the first dry run and kept; libraries and models are loaded in a thread."""
        async with self._lock:
            if self._dry_run is None:
                self._dry_run = await asyncio.to_thread(_build_dry_run, self._discovered("postgres"), self._now)
                await self._dry_run.open()
            return self._dry_run

    def _discovered(self, server: str) -> Settings:
        if self._closed:
            raise MnemologError(CLOSED)
        return with_discovered_servers(self._settings, needed=[server])

    async def close(self) -> None:
        self._closed = True
        for opened in (self._producer, self._read_pool, self._dry_run, self.query_embedder, self.search_models):
            if opened is not None:
                await opened.close()
        self._producer = self._read_pool = self._dry_run = None


class ClientBase:
    """Settings and connections, and by `scope` a copy that is bound to a user, an agent, an app or a run."""

    def __init__(self, *positional: Never, **options: Unpack[ClientOptions]) -> None:
        refuse_positional(positional, ClientOptions.__annotations__, "MemoryClient")
        given = _checked_options(options)
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
        return client_repr(type(self).__name__, self._scope)

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

    def _completed(self, given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
        """What a call gives, with the ids of a bound client and the tenant where the method takes them."""
        bound = {name: value for name, value in self._scope.items() if name in known}
        if bound.get("user_id") in WILDCARDS and "agent_id" not in known:
            del bound["user_id"]  # where a user only tells turns of one id apart, a wildcard names nobody
        complete: dict[str, Any] = {**bound, **given}
        if "tenant" in known:
            complete["tenant"] = complete.get("tenant") or self._settings.tenant
        return complete

    def _build_turn(self, messages: Messages, arguments: TurnArgs) -> tuple[Turn, tuple[str, ...]]:
        """The turn, and notes on what was left out of its messages."""
        read, notes = as_messages(messages)
        complete: TurnArgs = {
            **arguments,
            "turn_id": arguments.get("turn_id") or self._new_id(),
            "occurred_at": arguments.get("occurred_at") or self._now(),
        }
        return build_turn(read, complete, max_bytes=self._settings.max_turn_bytes), notes


def _checked_options(options: ClientOptions) -> dict[str, Any]:
    """The options of a new client. Raises `UnknownArgumentError` or `InvalidArgumentError` that names the wrong one."""
    refuse_unknown(options, ClientOptions.__annotations__, "MemoryClient")
    checks = hint_checks(get_type_hints(ClientOptions))
    given: dict[str, Any] = {
        name: checks[name](name, value, InvalidArgumentError) if name in checks else value
        for name, value in options.items()
    }
    if not isinstance(given.get("settings"), Settings | None):
        raise InvalidArgumentError(f"settings must be Settings, not {kind_of(given['settings'])}")
    return given


def client_repr(name: str, scope: BoundArgs) -> str:
    """`MemoryClient(user_id='alice')`: what a client is bound to; never where its servers are."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in scope.items())})"


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
    known, checks, signature = argument_names(method), checks_of(method), inspect.signature(method)

    def checked_value(name: str, value: object) -> object:
        check = checks.get(name)
        return check(name, value, error) if check else value

    @wraps(method)
    async def call(self: ClientBase, /, *args: Any, **kwargs: Any) -> R:
        refuse_unknown(kwargs, known, method.__name__)
        try:
            given = signature.bind(self, *args, **self._completed(kwargs, known))
        except TypeError as fault:
            raise UnknownArgumentError(f"{method.__name__}(): {fault}") from fault
        for name, value in given.arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                value.update({key: checked_value(key, one) for key, one in value.items()})
            else:
                given.arguments[name] = checked_value(name, value)
        return await method(*given.args, **given.kwargs)

    return call


def _build_dry_run(settings: Settings, now: Callable[[], datetime]) -> "DryRun":
    from mnemolog.streams.runtime.dry_run import DryRun  # noqa: PLC0415 - a program without dry runs does not load it

    return DryRun(settings, clock=now)
