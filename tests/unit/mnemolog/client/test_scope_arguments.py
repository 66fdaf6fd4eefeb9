"""Every method takes the ids of a scope; a bound client has them in every call; a wrong keyword is named."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mnemolog import MemoryClient, MnemologError
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.base import ClientBase
from mnemolog.client.connections import LimitPrecheck
from mnemolog.client.inputs import ScopeArgs, scope_and_filter, wide_filter
from mnemolog.client.results import summed_up
from mnemolog.errors import QueryError, UnknownArgumentError
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import Findings
from mnemolog.projections.stores.turns import fetch_policies
from mnemolog.schemas.costs import NO_PRICES
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings
from tests.support.builders.hits import a_hit
from tests.support.harnesses.offline_client import AT, OfflineClient
from tests.unit.mnemolog.client.test_commands import F1

OWN_SCOPE = {"user_id": "alice", "agent_id": "bot", "app_id": "chat", "run_id": "r1"}

WITHIN = ScopeFilter(tenant="acme", user_id="alice", agent_id="bot", app_id="**", run_id="**")


class AnswerlessError(Exception):
    """The query is known, and nothing more is asked of the test."""


class QueryRecorder(OfflineClient):
    """Records what would be queried."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        if settings:
            self._settings = settings
        self.arguments: list[Any] = []
        self.answer: Any = []
        setattr(self, "_query", self._recorded)  # noqa: B010 - also for `entities` and `admin` of the client

    async def _recorded(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        self.arguments += [*args, *kwargs.values()]
        self.asked = query
        if self.answer is None:
            raise AnswerlessError
        return self.answer

    @property
    def filter(self) -> ScopeFilter:
        given = (
            one for argument in self.arguments for one in (argument if isinstance(argument, tuple) else (argument,))
        )
        (found,) = (one for one in given if isinstance(one, ScopeFilter))
        return found


def searching(client: AsyncMemoryClient) -> Callable[..., Awaitable[Any]]:
    """A search whose query answers with a hit."""
    setattr(client, "answer", Findings(hits=(a_hit(),)))  # noqa: B010 -- the recorder's
    return lambda **ids: client.search("x", **ids)


SCOPED: dict[str, Callable[[AsyncMemoryClient], Callable[..., Awaitable[Any]]]] = {
    "search": searching,
    "facts": lambda c: c.facts,
    "facts as of": lambda c: lambda **ids: c.facts(believed_at=AT, **ids),
    "profile": lambda c: c.profile,
    "pending": lambda c: c.pending,
    "unresolved": lambda c: c.unresolved,
    "diff": lambda c: lambda **ids: c.diff(AT, **ids),
    "quality": lambda c: c.admin.quality,
    "entities": lambda c: c.entities.list,
}


@pytest.fixture(autouse=True)
def without_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    async def embed(*_: object) -> Any:
        return None, None

    monkeypatch.setattr("mnemolog.client.search_models.SearchModels.embed", embed)


@pytest.mark.parametrize("name", SCOPED)
async def test_ids_of_a_call_go_before_those_of_the_bound_client_and_reach_the_query(name: str) -> None:
    client = QueryRecorder()
    bound = client.scope(tenant="acme", **OWN_SCOPE)
    whole = ScopeFilter(tenant="acme", **OWN_SCOPE)
    for call, ids, expected in (
        (SCOPED[name](client), {**OWN_SCOPE, "tenant": "acme"}, whole),
        (SCOPED[name](bound), {}, whole),
        (
            SCOPED[name](bound),
            {"user_id": "bob", "agent_id": None, "run_id": None, "tenant": None},
            ScopeFilter(tenant="default", user_id="bob", app_id="chat"),
        ),
    ):
        client.arguments.clear()
        await call(**ids)
        assert client.filter == expected


async def test_quality_is_of_the_whole_tenant_unless_bound() -> None:
    client = QueryRecorder()
    await client.admin.quality()
    assert client.filter == ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
    client.arguments.clear()
    await client.scope(user_id="alice").admin.quality()
    assert client.filter == ScopeFilter(user_id="alice", agent_id="**", app_id="**", run_id="**")


async def test_policies_are_the_tenants_and_on_a_bound_client_those_of_the_scope() -> None:
    client = QueryRecorder()
    await client.admin.policies()
    await client.scope(user_id="alice").admin.policies()
    assert client.asked is fetch_policies
    of_tenant, of_scope = client.arguments
    assert (of_tenant.user_id, of_scope) == (None, Scope(user_id="alice"))
    await client.scope(user_id="alice").admin.set_policy({"add_only": True})
    await client.admin.set_policy({"add_only": True})
    assert [command.order.model_dump()["level"] for command in client.commands] == ["scope", "tenant"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda c: c.status("t1"), ["acme", "t1", "alice", None, NO_PRICES, False]),
        (lambda c: c.why_not("t1"), ["acme", "t1", "alice"]),
        (lambda c: c.history(F1), [WITHIN, F1]),
        (lambda c: c.explain(str(F1)), [WITHIN, str(F1)]),
        (lambda c: c.get(F1), [WITHIN, F1]),
        (lambda c: c.status("t1", user_id=None, tenant="other"), ["other", "t1", None, None, NO_PRICES, False]),
    ],
)
async def test_questions_about_one_turn_or_fact_take_the_tenant_and_the_user(
    call: Callable[[AsyncMemoryClient], Awaitable[Any]], expected: list[Any]
) -> None:
    client = QueryRecorder()
    client.answer = None
    with pytest.raises(AnswerlessError):
        await call(client.scope(tenant="acme", user_id="alice", agent_id="bot"))
    assert client.arguments == expected


async def test_the_tenant_of_the_settings_holds_where_none_is_given() -> None:
    client = QueryRecorder(Settings(tenant="acme"))
    await client.history(F1, tenant=None)
    await client.facts(user_id="alice")
    assert client.arguments[0] == client.filter.tenant == "acme"
    client.arguments.clear()
    client.answer = Result(turn_id="t1", status="stored")
    await client.scope(user_id="*").status("t1")  # whose turn is meant is left open
    assert client.arguments == ["acme", "t1", None, None, NO_PRICES, False]


@pytest.mark.parametrize("given", [summed_up("c1", []), Result(turn_id="t1", status="stored", notes=("a dry run",))])
async def test_what_was_never_published_has_ended(given: Result) -> None:
    """Such as a command that matched no scope: the tables never have it, and waiting for it would not end."""
    client = QueryRecorder()
    assert [await client.wait(given, timeout=5), await client.status(given)] == [given, given]


async def test_turns_and_commands_of_a_bound_client_have_its_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(*_: object) -> None: ...

    monkeypatch.setattr(LimitPrecheck, "check", check)
    client = OfflineClient()
    bound = client.scope(user_id="alice").scope(agent_id="bot")
    await bound.add("I live in Bern.", turn_id="t1")
    await bound.delete(F1)
    turn, command = client.producer.records
    assert Turn.from_bytes(turn.value).scope == Scope(user_id="alice", agent_id="bot")
    assert command.key == b"default/alice"


def test_the_blocking_client_is_bound_alike() -> None:
    with MemoryClient(settings=Settings()) as client:
        bound = client.scope(user_id="alice")
        assert bound._scope == bound.entities._scope == bound.admin._scope == {"user_id": "alice"}
        assert client._scope == {}


def test_wrong_ids_of_a_bound_client_are_named() -> None:
    client: Any = OfflineClient()
    with pytest.raises(UnknownArgumentError, match="did you mean 'user_id'"):
        client.scope(user="alice")
    with pytest.raises(UnknownArgumentError, match="it takes actor, agent_id, app_id, run_id, tenant, user_id"):
        client.scope(zzz=1)


def test_the_end_of_a_bound_blocking_client_leaves_the_other_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(*_: object, **__: object) -> Any:
        return []

    monkeypatch.setattr(ClientBase, "_query", answer)
    with MemoryClient(settings=Settings()) as client:
        with client.scope(user_id="alice") as bound:
            bound.close()
        assert client.facts(user_id="alice") == bound.facts() == []
    for closed in (client, bound):
        with pytest.raises(MnemologError, match="this client is closed: make a new one"):
            closed.facts(user_id="alice")


FORGETFUL = """
import os, sys
from mnemolog import MemoryClient, Settings
from mnemolog.client.connections import Connections
async def closed(connections):
    print("closed", os.getpid() == parent, flush=True)
Connections.close = closed
parent = os.getpid()
with MemoryClient(settings=Settings()):
    pass
kept = MemoryClient(settings=Settings())
if os.fork():
    os.wait()
sys.exit()
"""


def test_a_blocking_client_that_nobody_closes_is_closed_where_its_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", FORGETFUL], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (["closed True"] * 2, "")


async def test_the_end_of_a_bound_client_leaves_the_connections_open() -> None:
    client = OfflineClient()
    async with client.scope(user_id="alice") as bound:
        await bound.close()
    assert not client._connections._closed
    await client.close()
    for closed in (client, bound):
        with pytest.raises(MnemologError, match="this client is closed: make a new one"):
            await closed.facts(user_id="alice")
    alone = AsyncMemoryClient(settings=Settings())
    await alone.close()
    with pytest.raises(MnemologError, match="this client is closed"):
        await alone.add_many([])


def test_an_empty_id_is_not_any_id_and_no_filter_takes_its_place() -> None:
    empty: ScopeArgs = {"tenant": "default", "user_id": ""}
    with pytest.raises(QueryError, match="an id in the scope is empty"):
        scope_and_filter(empty, {"OR": [{"user_id": "bob"}]})
    with pytest.raises(QueryError, match="an id in the scope is empty"):
        wide_filter(empty)
    assert wide_filter({"tenant": "default", "user_id": "ann"}).run_id == "**"
