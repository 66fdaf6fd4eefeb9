"""The servers and models that a client and its bound copies share: Kafka, Postgres, and the check of limits."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege, QueryCanceled, UndefinedTable
from psycopg.rows import TupleRow

from mnemolog.client.discovery import with_discovered_servers
from mnemolog.client.ends import EndWatch, OnEnd
from mnemolog.client.producer import RecordProducer
from mnemolog.common.logs import get_logger
from mnemolog.errors import LimitExceededError, MnemologError, QueryError, ServerUnavailableError, SettingsError
from mnemolog.projections.database import connection_settings, open_pool, prepare_connection
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.costs import NO_PRICES, PriceTable
from mnemolog.schemas.policy import EffectivePolicy, exceeded_turn_size
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings

if TYPE_CHECKING:
    from mnemolog.client.search_models import SearchModels
    from mnemolog.streams.runtime.dry_run import DryRun

P = ParamSpec("P")
R = TypeVar("R")
APPLICATION_NAME: Final = "mnemolog-client"
OTHER_LOOP: Final = (
    "this client is in use in another event loop: make an AsyncMemoryClient in each loop, or use MemoryClient, which "
    "any number of threads may share"
)
REFUSALS: Final = (
    "password authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "is not permitted to log in",
)
"""What Postgres answers in English where it knows no such user, password or database. A refusal in another language is
taken for an outage; the message shows it. A connection that fails has no SQLSTATE to go by."""
CHECK_TIMEOUT_SECONDS: Final = 1.0
CACHE_TTL: Final = timedelta(seconds=1)
MAX_CACHED_TENANTS: Final = 1000
CLOSED: Final = "this client is closed: make a new one"

_log = get_logger(__name__)


class ForgetsAtFork(Protocol):
    """Has what a forked process cannot use."""

    def forget(self) -> None:
        """Let go of it, without ending what the parent process uses."""


AT_FORK: Final = WeakSet[ForgetsAtFork]()
_INHERITED: Final[list[object]] = []
"""What was let go of: its end would be that of the connections of the parent."""


def _forget_all() -> None:
    for one in AT_FORK:
        one.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


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
        """A connection for one query. Raises `ServerUnavailableError`, `SettingsError` and `QueryError`."""
        try:
            async with self._opening:
                if not self._opened:
                    # Fails at once and with the reason, where the pool would silently keep trying.
                    settings = connection_settings(self._url, application_name=APPLICATION_NAME)
                    async with await AsyncConnection.connect(self._url, **settings) as first:
                        await prepare_connection(first)
                    await self._pool.open()
                    self._opened = True
            async with self._pool.connection() as connection:
                yield connection
        except Error as error:
            if (explained := self._explained(error)) is None:
                raise
            raise explained from error

    async def close(self) -> None:
        await self._pool.close()

    def _explained(self, error: Error) -> MnemologError | None:
        """Our error for an error of the driver, with what to do; None for an error that a caller cannot cause."""
        reason = " ".join(str(error).split())
        explained: MnemologError
        match error:
            case QueryCanceled():
                advice = "ask for less, or raise MNEMOLOG_POSTGRES_STATEMENT_TIMEOUT"
                explained = ServerUnavailableError(f"Postgres did not answer in time ({reason}): {advice}")
            case OperationalError() if "FATAL:" in str(error) and any(words in str(error) for words in REFUSALS):
                advice = "correct the user, the password or the database of MNEMOLOG_POSTGRES"
                explained = SettingsError(f"Postgres refuses this account ({reason}): {advice}")
            case OperationalError():
                url = conninfo_to_dict(self._url)  # of which the password is not shown
                server = f"{url.get('host', 'localhost')}:{url.get('port', 5432)}"
                what = f"Postgres at {server} cannot be reached ({reason})"
                explained = ServerUnavailableError(f"{what}: start it, or correct MNEMOLOG_POSTGRES")
            case UndefinedTable():
                explained = SettingsError(
                    f"this database has no Mnemolog tables ({reason}): run `mnemolog migrate` first"
                )
            case InsufficientPrivilege():
                advice = "give the account of MNEMOLOG_POSTGRES these rights"
                explained = SettingsError(f"Postgres refuses this account ({reason}): {advice}")
            case DataError():
                explained = QueryError(f"Postgres cannot take an argument ({reason}): correct it")
            case InterfaceError():
                advice = "on Windows, run AsyncMemoryClient in an asyncio.SelectorEventLoop, or use MemoryClient"
                explained = ServerUnavailableError(f"Postgres cannot be used from here ({reason}): {advice}")
            case _:
                return None
        return explained


class LimitPrecheck:
    """Refuses turns that the pipeline would refuse for a limit, before they are published.

    Whether a tenant has limits at all is asked once a second: a new limit takes that long to be seen here.
    """

    def __init__(self, prices: PriceTable = NO_PRICES) -> None:
        self._prices = prices
        # By tenant: when the tables were asked whether it has limits, and the answer.
        self._cache: dict[str, tuple[datetime, bool]] = {}

    async def check(self, pool: ReadPool, turn: Turn, now: datetime) -> None:
        """Raise `LimitExceededError` where a limit of the turn's scope or tenant is used up, or the turn is too large.

        Takes two round trips where the tenant has limits, else none but for one a second. A turn that was published
        before is let through: its second copy does nothing. So is every turn while Postgres is away or not migrated
        yet, or has no answer within a second.
        """
        if self._cached_answer(turn.scope.tenant, now) is False:
            return
        from mnemolog.projections.stores import turns  # noqa: PLC0415 - who only reads does without

        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS), pool.connection() as connection:
                if (limited := self._cached_answer(turn.scope.tenant, now)) is None:
                    limited = await turns.may_have_limits(connection, turn.scope.tenant)
                    if len(self._cache) >= MAX_CACHED_TENANTS:
                        self._cache.clear()
                    self._cache[turn.scope.tenant] = now, limited
                if not limited:
                    return
                rules = (await turns.fetch_policies(connection, turn.scope)).overlay(EffectivePolicy())
                if not rules.limits:
                    return
                refusing = rules if rules.when_spent == "reject" else rules.without_budgets
                hit = exceeded_turn_size(rules, len(turn.to_bytes())) or await turns.find_exhausted_limit(
                    connection, turn.scope, refusing, now, self._prices
                )
                if hit is not None and not await turns.is_received(connection, turn.scope.owner, turn.turn_id):
                    raise LimitExceededError(turn.turn_id, hit)
        except (ServerUnavailableError, SettingsError, TimeoutError) as error:
            _log.debug("limits_not_checked", turn_id=turn.turn_id, error=str(error) or type(error).__name__)

    def _cached_answer(self, tenant: str, now: datetime) -> bool | None:
        """Whether a tenant has limits; None where the tables are to be asked (again)."""
        asked_at, has_limits = self._cache.get(tenant, (now, None))
        return has_limits if timedelta(0) <= now - asked_at < CACHE_TTL else None  # a clock may have been put back


class Connections:
    """The servers and models that a client and its bound copies share; each is opened at its first use."""

    def __init__(self, settings: Settings, *, publish_timeout: float, now: Callable[[], datetime]) -> None:
        self.limit_precheck = LimitPrecheck(settings.price_table)
        self._settings = settings
        self._publish_timeout = publish_timeout
        self._now = now
        self._lock = asyncio.Lock()
        self._producer: RecordProducer | None = None
        self._read_pool: ReadPool | None = None
        self._dry_run: DryRun | None = None
        self._ends: EndWatch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        AT_FORK.add(self)

    def forget(self) -> None:
        """Let go of all servers and models; the next call opens them anew."""
        if self._producer is not None:
            self._producer.abandon()
        models = self.__dict__.pop("search_models", None)
        _INHERITED.extend((self._producer, self._read_pool, self._dry_run, self._ends, models))
        self._producer = self._read_pool = self._dry_run = self._ends = self._loop = None
        self._lock = asyncio.Lock()

    def _use_this_loop(self) -> None:
        """What another loop has opened is of no use here; raises `MnemologError` while that one may use it."""
        running = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not running:
            if not self._loop.is_closed():
                raise MnemologError(OTHER_LOOP)
            self.forget()
        self._loop = running

    @cached_property
    def search_models(self) -> "SearchModels":
        from mnemolog.client.search_models import SearchModels  # noqa: PLC0415 - with providers of models: at a search

        return SearchModels(self._settings)

    async def producer(self) -> RecordProducer:
        self._use_this_loop()
        async with self._lock:
            if self._producer is not None and self._producer.needs_reconnect:
                await self._producer.close()
                self._producer = None
            if self._producer is None:
                settings = self._discovered("kafka")
                self._producer = await RecordProducer.connect(
                    settings.kafka_address,
                    prefix=settings.topic_prefix,
                    compression=settings.compression,
                    timeout_seconds=self._publish_timeout,
                    command_token=settings.command_token,
                )
            return self._producer

    def read_pool(self) -> ReadPool:
        self._use_this_loop()
        if self._read_pool is None:
            settings = self._discovered("postgres")
            self._read_pool = ReadPool(
                settings.postgres or "",
                size=settings.postgres_pool_size,
                statement_timeout=settings.postgres_statement_timeout,
            )
        return self._read_pool

    def watch(self, on_end: OnEnd, look: Callable[[Result], Awaitable[Result | str]], *, in_thread: bool) -> EndWatch:
        """What calls `on_end`, made at its first use."""
        if self._ends is None:
            self._ends = EndWatch(on_end, look, in_thread=in_thread)
        return self._ends

    async def query(
        self,
        query: Callable[Concatenate[AsyncConnection[TupleRow], P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """What a query gives over one of the connections to the tables.

        One that the server ended while the query ran is replaced, and the query, which only reads, asked again.
        """
        left = self._settings.postgres_pool_size
        while True:
            connection: AsyncConnection[TupleRow] | None = None
            try:
                async with self.read_pool().connection() as connection:
                    return await query(connection, *args, **kwargs)
            except ServerUnavailableError:
                if connection is None or not connection.closed or not left:
                    raise
                left -= 1

    @property
    def dry_run_waits_for(self) -> str:
        """What a dry run that takes long waits for."""
        return self._dry_run.waits_for if self._dry_run else "Postgres"

    async def dry_run(self) -> "DryRun":
        """The stages, made at the first dry run and kept; libraries and models are loaded in a thread."""
        async with self._lock:
            if self._dry_run is None:
                settings = self._discovered("postgres")

                def build() -> "DryRun":
                    # A program without dry runs does not load the stages: a fifth of a second.
                    from mnemolog.streams.runtime.dry_run import DryRun  # noqa: PLC0415

                    return DryRun(settings, clock=self._now)

                self._dry_run = await asyncio.to_thread(build)
                await self._dry_run.open()
            return self._dry_run

    def _discovered(self, server: str) -> Settings:
        if self._closed:
            raise MnemologError(CLOSED)
        return with_discovered_servers(self._settings, needed=[server])

    async def connect(self) -> None:
        """Open all servers, and load the model that embeds questions."""
        async with self.read_pool().connection():
            await self.producer()
        await self.search_models.embed("warm-up")

    async def ping(self) -> None:
        """Raises `ServerUnavailableError` where a server does not answer."""
        async with self.read_pool().connection() as connection:
            await connection.execute("SELECT 1")
        await (await self.producer()).ping()

    async def close(self) -> None:
        self._closed = True
        for opened in (self._ends, self._producer, self._read_pool, self._dry_run, self.__dict__.get("search_models")):
            if opened is not None:
                await opened.close()
        self._ends = self._producer = self._read_pool = self._dry_run = None
