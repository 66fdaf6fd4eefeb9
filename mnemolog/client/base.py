"""What both clients are made of: options, a scope, and methods that one awaits and the other one blocks in."""

import asyncio
import copy
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from datetime import UTC, datetime
from functools import cache, wraps
from time import perf_counter
from types import MethodType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Never,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_type_hints,
    overload,
)
from uuid import UUID

import uuid_utils
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.connections import AT_FORK, CLOSED, Connections
from mnemolog.client.ends import OnEnd
from mnemolog.client.inputs import (
    BoundArgs,
    Check,
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
from mnemolog.client.producer import PUBLISH_TIMEOUT_SECONDS
from mnemolog.errors import (
    InvalidArgumentError,
    InvalidCommandError,
    InvalidTurnError,
    MnemologError,
    QueryError,
    UnknownArgumentError,
)
from mnemolog.projections.queries.ids import resolve_fact_id
from mnemolog.projections.queries.scope_filter import WILDCARDS
from mnemolog.settings import Settings, load_settings

P = ParamSpec("P")
R = TypeVar("R")
Part = TypeVar("Part", bound="ClientBase")


class ClientOptions(TypedDict, total=False):
    """What a client is made with: servers and tenant go before `settings`, and those before the environment."""

    kafka: str | None
    postgres: str | None
    tenant: str | None
    settings: Settings | None
    publish_timeout: float
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    on_end: OnEnd | None


class ClientBase:
    """Settings and connections, and by `scope` a copy that is bound to a user, an agent, an app or a run."""

    _namespace: ClassVar[str] = ""
    """What stands before the names of the methods: `entities.` for those of `memory.entities`."""

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
        timeout = given.get("publish_timeout", PUBLISH_TIMEOUT_SECONDS)
        self._connections = Connections(self._settings, publish_timeout=timeout, now=self._now)
        self._on_end: OnEnd | None = given.get("on_end")
        self._prices = self._settings.price_table
        self._scope: BoundArgs = {}
        self.is_bound = False

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

    def _part(self, kind: type[Part]) -> Part:
        """The same client with the methods of another class."""
        part = object.__new__(kind)
        part.__dict__.update(self.__dict__)
        return part

    async def _query(
        self,
        query: Callable[Concatenate[AsyncConnection[TupleRow], P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        return await self._connections.query(query, *args, **kwargs)

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


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop of a client. Psycopg refuses the one that Windows has by default."""
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


class LoopThread:
    """Runs coroutines in an event loop that has a thread of its own."""

    def __init__(self) -> None:
        self._start()
        AT_FORK.add(self)

    def _start(self) -> None:
        self._starting = threading.Lock()
        self._is_inherited = False
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mnemolog-client", daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """In a forked process, which has no such thread: the next call starts one."""
        self._starting = threading.Lock()
        self._is_inherited = True

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """What the coroutine returns. Raises `MnemologError` where it never could."""
        with self._starting:
            if self._is_inherited and not self._loop.is_closed():
                self._start()
        if self._loop.is_closed() or threading.current_thread() is self._thread:
            coroutine.close()
            raise MnemologError(
                CLOSED if self._loop.is_closed() else "a callback of MemoryClient cannot call it: use AsyncMemoryClient"
            )
        ran = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return ran.result()
        except KeyboardInterrupt:
            ran.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Run the `last` coroutine and end the thread; does nothing in a forked process, which has no such thread."""
        if self._loop.is_closed() or self._is_inherited:
            last.close()
            return
        self.run(last)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """A client whose methods block, and return what those of the other one return when they are awaited."""

    _thread: LoopThread


class Method(Generic[P, R]):
    """Decorates a coroutine function: a method of `AsyncMemoryClient` that is awaited, of `MemoryClient` that blocks.

    What it is given is checked and completed with the ids of a bound client; what is wrong raises `error` or
    `UnknownArgumentError`. Its body calls no public method of the client: in a blocking one that would wait for itself.
    """

    error: ClassVar[ErrorType]
    is_measured: ClassVar[bool] = False

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        signature = inspect.signature(function)

        @cache
        def hints_and_checks() -> tuple[Mapping[str, Any], Mapping[str, Check]]:
            hints = argument_hints(function)
            return hints, hint_checks(hints)

        @wraps(function)
        async def awaited(client: Any, /, *args: Any, **kwargs: Any) -> R:
            name = client._namespace + function.__name__  # noqa: SLF001 - see above
            started, outcome = perf_counter(), "error"
            try:
                hints, checks = hints_and_checks()
                refuse_unknown(kwargs, hints, name)
                try:
                    given = signature.bind(client, *args, **client._completed(kwargs, hints))  # noqa: SLF001 - see above
                except TypeError as fault:
                    raise UnknownArgumentError(f"{name}(): {fault}") from fault
                for place, value in given.arguments.items():
                    bundled = signature.parameters[place].kind is inspect.Parameter.VAR_KEYWORD
                    named = value if bundled else {place: value}
                    checked = {
                        key: checks[key](key, one, self.error) if key in checks else one for key, one in named.items()
                    }
                    given.arguments[place] = checked if bundled else checked[place]
                result = await function(*given.args, **given.kwargs)
                outcome = "ok"
            finally:
                if self.is_measured:
                    from mnemolog.client.metrics import QUERY_SECONDS  # noqa: PLC0415 - Prometheus is a tenth of the import

                    QUERY_SECONDS.labels(operation=name, outcome=outcome).observe(perf_counter() - started)
            return result

        @wraps(function)
        def blocking(client: Any, /, *args: Any, **kwargs: Any) -> R:
            return cast("R", client._thread.run(awaited(client, *args, **kwargs)))  # noqa: SLF001 - see above

        awaited.__signature__ = blocking.__signature__ = _spelt_out(signature)  # type: ignore[attr-defined] # as `inspect` documents it
        self._awaited, self._blocking = awaited, blocking

    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, client: object, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        function = self._blocking if issubclass(owner, Blocking) else self._awaited
        return function if client is None else MethodType(function, client)


class Publish(Method[P, R]):
    """Publishes turns."""

    error = InvalidTurnError


class Order(Method[P, R]):
    """Publishes a command."""

    error = InvalidCommandError


class Read(Method[P, R]):
    """Asks the tables; measured."""

    error = QueryError
    is_measured = True


class Follow(Method[P, R]):
    """Asks how turns and commands ended."""

    error = QueryError


def _spelt_out(signature: inspect.Signature) -> inspect.Signature:
    """The signature with each argument of a bundle (`**scope: Unpack[ScopeArgs]`), as help and editors show it."""
    parameters: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        if one.kind is not one.VAR_KEYWORD:
            parameters.append(one)
            continue
        (bundle,) = get_args(one.annotation)
        for name, hint in bundle.__annotations__.items():
            default = None if type(None) in get_args(hint) else ...
            parameters.append(inspect.Parameter(name, one.KEYWORD_ONLY, default=default, annotation=hint))
    return signature.replace(parameters=parameters)


def checked_time(given: When) -> datetime:
    """A time that a method has converted."""
    return cast("datetime", given)
