"""Base of the client: its settings, its connections, and the ids that a bound client adds to each call."""

import asyncio
import copy
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Never,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_type_hints,
)
from uuid import UUID

import uuid_utils
from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege, QueryCanceled, UndefinedTable
from psycopg.rows import TupleRow

from mnemolog.client.discovery import with_discovered_servers
from mnemolog.client.inputs import (
    BoundArgs,
    ErrorType,
    FactId,
    ScopeArgs,
    TurnArgs,
    When,
    argument_names,
    check_text,
    checks_of,
    hint_checks,
    kind_of,
    refuse_positional,
    refuse_unknown,
    scope_ids,
    whole_id,
)
from mnemolog.client.producer import RecordProducer
from mnemolog.client.records import Messages, as_messages, build_turn
from mnemolog.client.search_models import QueryEmbedder, SearchModels
from mnemolog.common.logs import get_logger
from mnemolog.errors import (
    InvalidArgumentError,
    LimitExceededError,
    MnemologError,
    QueryError,
    ServerUnavailableError,
    SettingsError,
    UnknownArgumentError,
)
from mnemolog.projections.database import connection_settings, open_pool, prepare_connection
from mnemolog.projections.queries.ids import resolve_fact_id
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, WILDCARDS, ScopeFilter
from mnemolog.projections.stores.turns import fetch_policies, find_exhausted_limit, is_received, may_have_limits
from mnemolog.schemas.costs import NO_PRICES, PriceTable
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, exceeded_turn_size
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings, load_settings

APPLICATION_NAME = "mnemolog-client"
REFUSALS = ("password authentication failed", "no pg_hba.conf entry", "does not exist", "is not permitted to log in")
"""Of Postgres in English. In another language they are taken for an outage, and the message shows them."""


class ReadPool:
    """Hands out connections to the tables at `url`."""

    def __init__(self, url: str, *, size: int, statement_timeout: float) -> None:
        self._url = url
        self._opening = asyncio.Lock()
        self._opened = False
        self._pool = open_pool(
            url,
            min_size=0,
            max_size=size,
            application_name=APPLICATION_NAME,
            statement_timeout=statement_timeout,
            autocommit=True,
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection for one query. Raises `ServerUnavailableError` where Postgres does not answer."""
        try:
            await self._open()
            async with self._pool.connection() as connection:
                yield connection
        except QueryCanceled as error:
            advice = "ask for less, or raise MNEMOLOG_POSTGRES_STATEMENT_TIMEOUT"
            raise ServerUnavailableError(f"Postgres did not answer in time ({_one_line(error)}): {advice}") from error
        except OperationalError as error:
            if _is_refusal(error):
                advice = "correct the user, the password or the database of MNEMOLOG_POSTGRES"
                raise SettingsError(f"Postgres refuses this account ({_one_line(error)}): {advice}") from error
            url = conninfo_to_dict(self._url)  # of which the password is not shown
            server = f"{url.get('host', 'localhost')}:{url.get('port', 5432)}"
            what = f"Postgres at {server} cannot be reached ({_one_line(error)})"
            raise ServerUnavailableError(f"{what}: start it, or correct MNEMOLOG_POSTGRES") from error
        except UndefinedTable as error:
            what = f"this database has no Mnemolog tables ({_one_line(error)})"
            raise SettingsError(f"{what}: run `mnemolog migrate` first") from error
        except InsufficientPrivilege as error:
            advice = "give the account of MNEMOLOG_POSTGRES these rights"
            raise SettingsError(f"Postgres refuses this account ({_one_line(error)}): {advice}") from error
        except DataError as error:
            raise QueryError(f"Postgres cannot take an argument ({_one_line(error)}): correct it") from error
        except InterfaceError as error:
            advice = "on Windows, run AsyncMemoryClient in an asyncio.SelectorEventLoop, or use MemoryClient"
            raise ServerUnavailableError(f"Postgres cannot be used from here ({_one_line(error)}): {advice}") from error

    async def close(self) -> None:
        await self._pool.close()

    async def _open(self) -> None:
        async with self._opening:
            if not self._opened:
                # Fails at once and with the reason, where the pool would silently keep trying.
                settings = connection_settings(self._url, application_name=APPLICATION_NAME)
                async with await AsyncConnection.connect(self._url, **settings) as connection:
                    await prepare_connection(connection)
                await self._pool.open()
                self._opened = True


def _is_refusal(error: OperationalError) -> bool:
    """Whether Postgres answered that it knows no such user, password or database; a failed connection has no code."""
    text = str(error)
    return "FATAL:" in text and any(words in text for words in REFUSALS)


def _one_line(error: Error) -> str:
    return " ".join(str(error).split())


CHECK_TIMEOUT_SECONDS: Final = 1.0
CACHE_TTL: Final = timedelta(seconds=1)
MAX_CACHED_TENANTS: Final = 1000

_log = get_logger(__name__)


class LimitPrecheck:
    """Tells of turns that would be refused for a limit.

    Whether a tenant has limits at all is asked once a second: a limit that was set takes that long to be seen here.
    """

    def __init__(self, prices: PriceTable = NO_PRICES) -> None:
        self._prices = prices
        # By tenant: when it was asked whether it has limits, and the answer.
        self._cache: dict[str, tuple[datetime, bool]] = {}

    async def check(self, pool: ReadPool, turn: Turn, now: datetime) -> None:
        """Raise `LimitExceededError` where a limit of the turn's scope or tenant is used up, or the turn is too large.

        Takes two round trips where the tenant has limits, else none but for one a second. A turn that was published
        before is let through: its second copy does nothing. So is every turn while Postgres is away or not migrated
        yet, or has no answer within a second.
        """
        if self._cached_answer(turn.scope.tenant, now) is False:
            return
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                hit = await self._limit_hit(pool, turn, now)
        except (ServerUnavailableError, SettingsError, TimeoutError) as error:
            _log.debug("limits_not_checked", turn_id=turn.turn_id, error=str(error) or type(error).__name__)
            return
        if hit is not None:
            raise LimitExceededError(turn.turn_id, hit)

    def _cached_answer(self, tenant: str, now: datetime) -> bool | None:
        """Whether a tenant has limits; None where that is to be asked (again)."""
        asked_at, has_limits = self._cache.get(tenant, (now, None))
        return has_limits if timedelta(0) <= now - asked_at < CACHE_TTL else None  # a clock may have been put back

    async def _limit_hit(self, pool: ReadPool, turn: Turn, now: datetime) -> LimitHit | None:
        async with pool.connection() as connection:
            if (limited := self._cached_answer(turn.scope.tenant, now)) is None:
                limited = await may_have_limits(connection, turn.scope.tenant)
                if len(self._cache) >= MAX_CACHED_TENANTS:
                    self._cache.clear()
                self._cache[turn.scope.tenant] = now, limited
            if not limited:
                return None
            rules = (await fetch_policies(connection, turn.scope)).overlay(EffectivePolicy())
            if not rules.limits:
                return None
            refusing = rules if rules.when_spent == "reject" else rules.without_budgets
            hit = exceeded_turn_size(rules, len(turn.to_bytes())) or await find_exhausted_limit(
                connection, turn.scope, refusing, now, self._prices
            )
            if hit is None or await is_received(connection, turn.scope.owner, turn.turn_id):
                return None
            return hit


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


class FactIdReader(ClientBase):
    """Finds the facts that an argument names."""

    async def _fact_id(self, given: FactId, scope: ScopeArgs) -> UUID:
        """The whole id, of a fact of the scope where ids are named: the tables are asked only where they are needed."""
        within = wide_filter(scope)
        if not within.named and (whole := whole_id(given)):
            return whole
        return await self._query(resolve_fact_id, within, given)


def wide_filter(ids: Mapping[str, object]) -> ScopeFilter:
    """What may be meant: ids that are not named may be any."""
    return ScopeFilter(**{name: ANY_OR_NONE if value is None else value for name, value in scope_ids(ids).items()})


def checked_time(given: When) -> datetime:
    """A time that was checked and converted at the call."""
    return cast("datetime", given)
