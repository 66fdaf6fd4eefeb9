"""Relations as the client shows them: lists, neighbours, who somebody is, and the graph."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from mnemolog import AmbiguousIdError, AsyncMemoryClient, EntityRelation, QueryError, UnknownEntityError
from mnemolog.schemas.scope import Scope
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
HOSTILE = 'Bob"] --> x["<script>alert(1)</script>`#'


def relation(subject: str, predicate: str, object_: str) -> dict[str, str]:
    return {"subject": subject, "predicate": predicate, "object": object_, "strength": "strong"}


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncMemoryClient]:
    async with named_people(database, lambda one: decision_json(one.number, "REPLACE", *range(1, 2))) as people:
        await fill(people)
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


async def fill(people: NamedPeople) -> None:
    await people.say("My wife Ana paints", ("my wife Ana", "person"))
    await people.say("I feed my dog Rex", ("my dog Rex", "animal"))
    await people.say("I feed my cat Tom", ("my cat Tom", "animal"))
    await say_employer(people, "Acme")
    await say_employer(people, "Globex")
    works = relation("Ana", "employer", "Globex")
    await people.say("Ana works at Globex", ("Globex", "organisation"), subject="Ana", relations=[works])
    await people.say("Ana's boss Eva sings", ("Ana's boss Eva", "person"), subject="Ana's boss Eva")
    await people.say("My friend Ana dances", ("my friend Ana", "person"), scope=BEN, speaker="Ben")


async def say_employer(people: NamedPeople, name: str) -> None:
    fields: dict[str, Any] = {"key": "employer", "single_valued": True, "value": name, "subject": "Alice"}
    related = [relation("Alice", "works at", name)]
    await people.say(f"I work at {name}", (name, "organisation"), relations=related, **fields)


def triples(found: list[EntityRelation]) -> list[tuple[str, str, str]]:
    return [(one.subject, one.predicate, one.object) for one in found]


STATED = [
    ("Alice", "spouse", "Ana"),
    ("Alice", "owns", "Rex"),
    ("Alice", "owns", "Tom"),
    ("Alice", "employer", "Globex"),
    ("Ana", "employer", "Globex"),
    ("Ana", "manager", "Eva"),
]


async def test_relations_that_hold_are_listed_as_they_were_stated(client: AsyncMemoryClient) -> None:
    assert triples(await client.relations(user_id="alice")) == STATED
    every = await client.relations(user_id="alice", all_versions=True)
    assert [one.object for one in every if not one.is_active] == ["Acme"]
    assert triples(await client.relations(user_id="ben")) == [("Ben", "friend", "Ana")]
    assert len(await client.relations(user_id="*")) == len(STATED) + 1


async def test_relations_of_one_are_read_from_it(client: AsyncMemoryClient) -> None:
    assert triples(await client.relations("Ana", user_id="alice")) == [
        ("Ana", "spouse", "Alice"),
        ("Ana", "employer", "Globex"),
        ("Ana", "manager", "Eva"),
    ]
    assert triples(await client.relations("Globex", predicate="employees", user_id="alice")) == []
    assert triples(await client.relations("Globex", predicate="employee", user_id="alice")) == [
        ("Globex", "employee", "Alice"),
        ("Globex", "employee", "Ana"),
    ]
    assert triples(await client.relations(predicate="wife", user_id="alice")) == STATED[:1]
    with pytest.raises(UnknownEntityError):
        await client.relations("Nobody", user_id="alice")


async def test_a_relation_names_its_evidence_and_its_times(client: AsyncMemoryClient) -> None:
    old, new = await client.relations("Alice", predicate="employer", all_versions=True, user_id="alice")
    texts = {fact.fact_id: fact.text for fact in await client.facts(user_id="alice", all_versions=True)}
    assert ([texts[one] for one in old.evidence], [texts[one] for one in new.evidence]) == (
        ["I work at Acme"],
        ["I work at Globex"],
    )
    assert (old.until, new.until, new.strength, new.is_contested) == (new.since, None, "strong", False)


async def test_several_of_one_at_a_time_are_contested(database: str) -> None:
    async with named_people(database) as people:
        for name in ("Acme", "Globex"):
            works = relation("Alice", "works at", name)
            await people.say(f"I work at {name}", (name, "organisation"), relations=[works])
    async with AsyncMemoryClient(postgres=database) as memory:
        found = await memory.relations(user_id="alice")
    assert [(one.object, one.is_contested) for one in found] == [("Acme", True), ("Globex", True)]


async def test_neighbours_are_found_within_two_hops_over_what_holds(client: AsyncMemoryClient) -> None:
    near = await client.neighbours("Alice", user_id="alice")
    assert [(one.entity.name, one.hops) for one in near] == [("Ana", 1), ("Rex", 1), ("Tom", 1), ("Globex", 1)]
    far = await client.neighbours("Alice", hops=2, user_id="alice")
    (eva,) = [one for one in far if one.hops == 2]
    assert (eva.entity.name, triples(eva.path)) == ("Eva", [("Alice", "spouse", "Ana"), ("Ana", "manager", "Eva")])
    assert [one.entity.name for one in await client.neighbours("Acme", hops=2, user_id="alice")] == []


@pytest.mark.parametrize("hops", [0, 3, -1])
async def test_other_hops_are_refused(client: AsyncMemoryClient, hops: int) -> None:
    with pytest.raises(QueryError, match=f"hops is {hops}"):
        await client.neighbours("Alice", hops=hops, user_id="alice")


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("my wife", ["Ana"]),
        ("my husband", []),
        ("meine Frau", ["Ana"]),
        ("my dog", ["Rex"]),
        ("my cat Tom", ["Tom"]),
        ("my cat Tim", []),
        ("my employer", ["Globex"]),
        ("my wife's boss", ["Eva"]),
        ("Ana's employer", ["Globex"]),
        ("Globex's employee", ["Alice", "Ana"]),
        ("Eva", ["Eva"]),
        ("wife", ["Ana"]),
        ("Frau", ["Ana"]),
        ("employer", ["Globex"]),
        ("Nobody's wife", []),
        ("my wife's wife's wife's wife's wife's wife's wife", []),
        ("she", []),
    ],
)
async def test_who_somebody_is(client: AsyncMemoryClient, asked: str, names: list[str]) -> None:
    assert [one.name for one in await client.who(asked, user_id="alice")] == names


@pytest.mark.parametrize(("asked", "name"), [("my wife", "Ana"), ("Ana's boss", "Eva"), ("my dog", "Rex")])
async def test_an_entity_is_shown_by_what_it_is(client: AsyncMemoryClient, asked: str, name: str) -> None:
    """Whether or not it was ever called so: the offline rules write "Alice's wife Ana"."""
    assert (await client.entity(asked, user_id="alice")).entity.name == name
    assert triples(await client.relations(asked, user_id="alice")) == triples(
        await client.relations(name, user_id="alice")
    )


async def test_an_entity_that_nobody_is_or_several_are_is_an_error(client: AsyncMemoryClient) -> None:
    with pytest.raises(UnknownEntityError, match="my husband"):
        await client.entity("my husband", user_id="alice")
    with pytest.raises(AmbiguousIdError, match="Globex's employee"):
        await client.entity("Globex's employee", user_id="alice")


async def test_who_is_asked_of_one_scope(client: AsyncMemoryClient) -> None:
    assert [one.name for one in await client.who("my wife", user_id="ben")] == []
    (friend,) = await client.who("my friend", user_id="ben")
    assert friend.user_id == "ben"


async def test_an_entity_has_its_relations_profile_and_timeline(client: AsyncMemoryClient) -> None:
    globex = await client.entity("Globex", user_id="alice")
    assert triples(globex.relations) == [("Globex", "employee", "Alice"), ("Globex", "employee", "Ana")]
    alice = await client.entity("Alice", user_id="alice")
    assert alice.profile.values == {"employer": "Globex"}
    assert "I work at Acme" not in alice.profile.texts
    assert "I work at Globex" in alice.profile.texts
    assert [(one.change, one.text) for one in alice.timeline if "Acme" in one.text or "Globex" in one.text] == [
        ("learned", "I work at Acme"),
        ("related", "Alice employer Acme"),
        ("ended", "I work at Acme"),
        ("learned", "I work at Globex"),
        ("related", "Alice employer Globex"),
    ]


async def test_the_graph_has_what_is_related_and_nothing_of_others(client: AsyncMemoryClient) -> None:
    graph = await client.graph(user_id="alice")
    assert [one.name for one in graph.entities] == ["Alice", "Ana", "Rex", "Tom", "Globex", "Eva"]
    assert triples(graph.relations) == STATED
    assert graph.mermaid.splitlines()[:2] == ["flowchart LR", '    e0["Alice"]']
    assert '    e0 -->|"spouse"| e1' in graph.mermaid.splitlines()
    every = await client.graph(all_versions=True, user_id="alice")
    assert "-.->" in every.mermaid
    assert "-.->" not in graph.mermaid


async def test_a_hostile_name_is_a_label(database: str) -> None:
    async with named_people(database) as people:
        friend = relation("Alice", "friend", HOSTILE)
        await people.say(f"I know {HOSTILE}", (HOSTILE, "person"), relations=[friend])
    async with AsyncMemoryClient(postgres=database) as memory:
        graph = await memory.graph(user_id="alice")
    assert [one.name for one in graph.entities] == ["Alice", HOSTILE]
    assert len(graph.mermaid.splitlines()) == 1 + 2 + 1
    assert "<" not in graph.mermaid
    assert graph.mermaid.count('"') == 2 * (2 + 1)


BEFORE_GLOBEX = "2026-03-05T18:00:00+00:00"
"""After Acme was told, on the fourth day, and before Globex was."""


async def test_relations_are_those_that_were_known_then_to_hold_then(client: AsyncMemoryClient) -> None:
    then = await client.relations(user_id="alice", believed_at=BEFORE_GLOBEX)
    assert triples(then) == [*STATED[:3], ("Alice", "employer", "Acme")]
    known_now = await client.relations("Alice", predicate="employer", user_id="alice", true_at=BEFORE_GLOBEX)
    assert triples(known_now) == [("Alice", "employer", "Acme")]
    later = await client.relations(
        "Alice", predicate="employer", user_id="alice", believed_at=BEFORE_GLOBEX, true_at="2026-12-01"
    )
    assert [(one.object, one.until) for one in later] == [("Acme", None)]
    assert triples(await client.relations(user_id="alice", believed_at="2026-03-01")) == []


async def test_neighbours_the_graph_and_who_take_both_times(client: AsyncMemoryClient) -> None:
    near = await client.neighbours("Alice", hops=2, user_id="alice", believed_at=BEFORE_GLOBEX)
    assert [one.entity.name for one in near] == ["Ana", "Rex", "Tom", "Acme"]
    graph = await client.graph(user_id="alice", true_at=BEFORE_GLOBEX)
    assert [one.name for one in graph.entities] == ["Alice", "Ana", "Rex", "Tom", "Acme"]
    for times in ({"believed_at": BEFORE_GLOBEX}, {"true_at": BEFORE_GLOBEX}):
        assert [one.name for one in await client.who("my employer", user_id="alice", **times)] == ["Acme"]
    assert [one.name for one in await client.who("my wife's boss", user_id="alice", believed_at=BEFORE_GLOBEX)] == []
    with pytest.raises(QueryError, match="true_at has no zone"):
        await client.graph(user_id="alice", true_at="2026-03-05T18:00:00")


async def test_an_entity_is_shown_as_it_was_known(client: AsyncMemoryClient) -> None:
    then = await client.entity("my employer", user_id="alice", believed_at=BEFORE_GLOBEX)
    assert (then.entity.name, [one.fact.text for one in then.facts]) == ("Acme", ["I work at Acme"])
    assert triples(then.relations) == [("Acme", "employee", "Alice")]
    assert [one.change for one in then.timeline] == ["learned", "named", "related"]
    alice = await client.entity("Alice", user_id="alice", believed_at=BEFORE_GLOBEX)
    assert (alice.profile.values, alice.summary) == ({"employer": "Acme"}, None)
    assert "I work at Globex" not in alice.profile.texts
    globex = await client.entity("Globex", user_id="alice", believed_at=BEFORE_GLOBEX)
    assert (globex.names, globex.facts, globex.relations, globex.timeline) == ([], [], [], [])


async def test_sql_users_see_the_same(client: AsyncMemoryClient, database: str) -> None:
    assert await client.relations(user_id="alice")
    async with await psycopg.AsyncConnection.connect(database) as connection:
        query = """SELECT subject, predicate, object FROM memory.relationships
            WHERE user_id = 'alice' AND is_active AND NOT is_mirror ORDER BY recorded_at, object"""
        rows = await (await connection.execute(query)).fetchall()
    assert sorted(rows) == sorted(STATED)
