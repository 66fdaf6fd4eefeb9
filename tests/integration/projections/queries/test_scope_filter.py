"""What the wildcards of a scope find, with every query that takes a scope."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import product
from typing import Any, get_args

import pytest

from mnemolog.projections.database import RowConnection
from mnemolog.projections.queries import scope_filter
from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.pending import pending as pending_facts
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.quality import decision_quality
from mnemolog.projections.queries.results import Axis, Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter, matching_scopes
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.command import DeleteAll, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from tests.support.builders.commits import added, commit, day, fact_id_at, pending, replaced, skipped, with_decision
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

SCOPES = [
    *(
        Scope(user_id=user, agent_id=agent, app_id=app, run_id=run)
        for user, agent, app, run in product(("ann", None), ("bot", None), ("web", None), ("r1", None))
        if user or agent
    ),
    Scope(user_id="bob"),
    Scope(tenant="other", user_id="ann"),
]
FILTERS: list[dict[str, Any]] = [
    {"user_id": user, "agent_id": agent, "app_id": app, "run_id": run}
    for user, agent, app, run in product(("ann", "*", "**", None), ("*", "**", None), ("web", "*", None), ("**", None))
    if user or agent
]
EVERYWHERE = dict.fromkeys(SCOPE_FIELDS[1:], "**")
FEW_FILTERS: list[dict[str, Any]] = [
    *(EVERYWHERE, dict.fromkeys(SCOPE_FIELDS[1:], "*")),
    *({"user_id": "*"}, {"user_id": "ann", "app_id": "**"}, {"agent_id": "*", "run_id": "*"}),
]


def name_of(scope: Scope) -> str:
    return "-".join(scope.columns.values())


def events_of(scope: Scope) -> list[Commit]:
    """Of each scope one active fact, one pending, one unresolved, one replaced by a model, and one repeated."""
    name = name_of(scope)
    known = commit(f"1-{name}", added(f"tea {name}"), added(f"old {name}"), scope=scope)
    replacing = replaced(f"new {name}", fact_id_at(known, 1))
    drafts = (
        *(pending(f"maybe {name}", fact_id_at(known)), added(f"doubt {name}", unresolved=True)),
        *(with_decision(replacing, by="model", model="m1", prompt_version="p"), skipped(fact_id_at(known))),
    )
    return [known, commit(f"2-{name}", *drafts, scope=scope, at=day(1))]


@pytest.fixture
async def db(database: str) -> AsyncIterator[ProjectedDatabase]:
    async with ProjectedDatabase.open(database) as stored:
        await stored.apply(*(made for scope in SCOPES for made in events_of(scope)))
        yield stored


def expected_of(wanted: dict[str, Any]) -> set[str]:
    return {name_of(one) for one in SCOPES if is_in(one, wanted)}


def is_in(scope: Scope, wanted: dict[str, Any]) -> bool:
    """What the documentation says: None is not set, "*" any value that is set, "**" both."""
    if scope.tenant != "default":
        return False
    for field in SCOPE_FIELDS[1:]:
        match wanted.get(field):
            case "**":
                continue
            case "*" if getattr(scope, field) is not None:
                continue
            case value if value != getattr(scope, field):
                return False
    return True


def names(texts: Iterable[str]) -> set[str]:
    return {text.split(" ", 1)[1] for text in texts}


QUERIES: dict[str, Callable[[RowConnection, ScopeFilter], Awaitable[Iterable[Any]]]] = {
    "all versions": lambda conn, scope: facts(conn, scope, all_versions=True, at=day(3)),
    "as of": lambda conn, scope: facts_as_of(conn, scope, believed_at=day(3), true_at=day(3)),
    "search": lambda conn, scope: search(conn, scope, "tea", None, SearchOptions(limit=100), at=day(3)),
    "pending": lambda conn, scope: pending_facts(conn, scope, day(3)),
    "unresolved": lambda conn, scope: unresolved(conn, scope, day(3)),
}


async def test_every_query_for_facts_takes_wildcards(db: ProjectedDatabase) -> None:
    for wanted in FILTERS:
        found = await facts(db.conn, ScopeFilter(**wanted), at=day(3))
        assert names(fact.text for fact in found) == expected_of(wanted), wanted
    for (name, query), wanted in product(QUERIES.items(), FEW_FILTERS):
        rows = await query(db.conn, ScopeFilter(**wanted))
        texts = [row.text if isinstance(row, Fact) else row.fact.text for row in rows]
        assert names(texts) == expected_of(wanted), (name, wanted)


async def test_figures_take_wildcards_and_lose_no_scope_of_a_tenant(db: ProjectedDatabase) -> None:
    for wanted in FEW_FILTERS:
        scope, expected = ScopeFilter(**wanted), expected_of(wanted)
        for axis in get_args(Axis):
            changed = await diff(db.conn, scope, day(1), day(3), axis=axis)
            assert names(change.text or "" for change in changed.replaced) == expected, wanted
            assert changed.skipped == (len(expected) if axis == "believed" else 0)
        quality = await decision_quality(db.conn, scope, day(0), day(3))
        proposed = sum(one.overwrites for one in quality.overwrites)  # those carried out, and those held back
        carried_out = sum(one.carried_out for one in quality.overwrites)
        counts = (proposed, carried_out, quality.held.held, quality.unresolved)
        assert counts == (2 * len(expected), *[len(expected)] * 3), wanted
    everybody = await decision_quality(db.conn, None, day(0), day(3))
    assert everybody.unresolved == len(SCOPES)


async def matching_names(db: ProjectedDatabase, payload: DeleteAll | Undo, wanted: dict[str, Any]) -> set[str]:
    return {name_of(one) async for page in matching_scopes(db.conn, payload, ScopeFilter(**wanted)) for one in page}


async def test_a_command_for_many_scopes_takes_wildcards_in_pages(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for payload in (DeleteAll(), Undo(model="m1", since=day(0), until=day(3))):
        for wanted in FEW_FILTERS:
            assert await matching_names(db, payload, wanted) == expected_of(wanted), wanted
    monkeypatch.setattr(scope_filter, "SCOPE_PAGE", 2)
    sizes = [len(page) async for page in matching_scopes(db.conn, DeleteAll(), ScopeFilter(**EVERYWHERE))]
    assert (sum(sizes), set(sizes[:-1])) == (len(expected_of(EVERYWHERE)), {2})


async def test_deleting_by_a_filter_concerns_the_scopes_that_hold_what_it_lets_through(db: ProjectedDatabase) -> None:
    in_run = DeleteAll(filters=parse_filter({"run_id": "r1"}))
    assert await matching_names(db, in_run, EVERYWHERE) == {name_of(one) for one in SCOPES if one.run_id == "r1"}
    nothing = DeleteAll(filters=parse_filter({"memory": "nothing like it"}))
    assert await matching_names(db, nothing, EVERYWHERE) == set()
