"""Entities and their relations as the client shows them, and by which words callers may name one."""

import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.errors import AmbiguousIdError, QueryError, UnknownEntityError
from mnemolog.projections.queries import entity_graph
from mnemolog.projections.queries.entities import LISTED_RELATIONS, Entity
from mnemolog.schemas.command import AliasEntity, ForgetEntity, RenameEntity, SplitEntity, SummariseEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.types import EntityRelation
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people
from tests.support.harnesses.offline_client import OfflineClient

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncMemoryClient]:
    """People with names, twins and a user of their own."""
    async with named_people(database) as people:
        await people.say("I met my wife Ana in Rome", ("my wife Ana", "person"), ("Rome", "place"))
        await people.say("Ana Keller sails", subject="Ana Keller")
        await people.say("Tom from work sings", subject="Tom from work")
        await people.say("My brother Tom skis", subject="Alice's brother Tom")
        await people.say("I met Ana", ("Ana", "person"), scope=BEN, speaker="Ben")
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


async def test_entities_are_listed_with_their_names_by_type_page_and_scope(client: AsyncMemoryClient) -> None:
    found = await client.entities.list(user_id="alice")
    assert [(one.name, one.type, one.aliases, one.facts, one.is_user) for one in found] == [
        ("Alice", "person", [], 1, True),
        ("Ana", "person", ["my wife Ana", "Ana Keller"], 2, False),
        ("Rome", "place", [], 1, False),
        ("Tom", "other", ["Tom from work"], 1, False),
        ("Tom", "person", ["Alice's brother Tom"], 1, False),
    ]
    assert found[4].possible_twins == [found[3].entity_id]
    assert [one.name for one in await client.entities.list(user_id="alice", type="place")] == ["Rome"]
    first = await client.entities.list(user_id="alice", limit=2)
    for last in (first[-1].entity_id, str(first[-1].entity_id)):
        rest = await client.entities.list(user_id="alice", after=last)
        assert [one.name for one in (*first, *rest)] == ["Alice", "Ana", "Rome", "Tom", "Tom"]
    assert [one.name for one in await client.entities.list(user_id="ben")] == ["Ben", "Ana"]
    assert len(await client.entities.list(user_id="*")) == 7


async def test_an_entity_is_found_by_each_of_its_names_and_its_id(client: AsyncMemoryClient) -> None:
    for name in ("Ana", "ÁNA", "ana keller", "my wife Ana"):
        found = await client.entities.get(name, user_id="alice")
        assert (found.entity.name, [one.name for one in found.names]) == ("Ana", ["Ana", "my wife Ana", "Ana Keller"])
        assert [(one.role, one.fact.text) for one in found.facts] == [
            ("object", "I met my wife Ana in Rome"),
            ("subject", "Ana Keller sails"),
        ]
        assert (await client.entities.get(str(found.entity.entity_id)[:8], user_id="alice")).entity == found.entity
    for unknown in ("Nobody", "deadbeef", "my husband"):
        with pytest.raises(UnknownEntityError, match="no entity"):
            await client.entities.get(unknown, user_id="alice")
    with pytest.raises(AmbiguousIdError, match="more than one entity has the name 'Tom'") as failure:
        await client.entities.get("Tom", user_id="alice")
    assert "(Tom, also Tom from work)" in str(failure.value)
    assert "(Tom, also Alice's brother Tom)" in str(failure.value)
    colleague, brother = [one for one in await client.entities.list(user_id="alice") if one.name == "Tom"]
    assert (await client.entities.get("Tom from work", user_id="alice")).twins == [brother]
    assert (await client.entities.get(str(brother.entity_id), user_id="alice")).twins == [colleague]


async def test_an_explanation_says_whom_a_fact_names_and_how_they_were_found(client: AsyncMemoryClient) -> None:
    (fact,) = [one for one in await client.facts(user_id="alice") if one.text == "My brother Tom skis"]
    explained = await client.explain(fact.fact_id, user_id="alice")
    assert [(one.name, one.role, one.said, one.step, one.compared) for one in explained.entities] == [
        ("Tom", "subject", "Alice's brother Tom", "new", ["Tom"])
    ]
    found = 'its subject is Tom: "Alice\'s brother Tom" was not known before'
    assert f"{found}, and not Tom: known by another tie or origin" in explained.words


async def test_a_person_is_found_by_a_first_name_that_nobody_has_alone(database: str) -> None:
    async with named_people(database) as people:
        await people.say("I met Inka Keller", ("Inka Keller", "person"))
        await people.say("I read Inka Magazine", ("Inka Magazine", "product"))
        await people.say("I met Tom Novak and Tom Meyer", ("Tom Novak", "person"), ("Tom Meyer", "person"))
        async with AsyncMemoryClient(postgres=database) as memory:
            assert (await memory.entities.get("inka", user_id="alice")).name == "Inka Keller"
            assert [one.name for one in await memory.entities.who("Inka", user_id="alice")] == ["Inka Keller"]
            with pytest.raises(AmbiguousIdError, match=r"Tom Novak.*Tom Meyer"):
                await memory.entities.get("Tom", user_id="alice")
            for unknown in ("Ink", "Keller", "Inka Kell"):
                with pytest.raises(UnknownEntityError):
                    await memory.entities.get(unknown, user_id="alice")
            await people.say("I met Tom", ("Tom", "person"))
            assert (await memory.entities.get("Tom", user_id="alice")).name == "Tom"


@dataclass
class Family:
    """People who are talked of, and a client whose commands are carried out."""

    people: NamedPeople
    client: OfflineClient

    async def met(self, name: str, *, scope: Scope | None = None, speaker: str = "Alice") -> None:
        within = scope or Scope(user_id="alice")
        await self.people.say(f"{speaker} met {name}", (name, "person"), scope=within, speaker=speaker)

    async def carried_out(self) -> Commit:
        """The end of the command that the client published last."""
        command = self.client.commands[-1]
        return await self.people.order(command.order, command.scope)

    async def meant(self, name: str, user_id: str = "alice") -> Entity:
        return (await self.client.entities.get(name, user_id=user_id)).entity

    def named(self) -> UUID:
        """The entity that the command names which the client published last."""
        payload = self.client.commands[-1].order
        assert isinstance(payload, RenameEntity | AliasEntity | SplitEntity | ForgetEntity | SummariseEntity)
        return payload.entity_id


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, OfflineClient(postgres=database) as client:
        yield Family(people, client)


@pytest.mark.parametrize(
    ("boss", "into_boss"),
    [("my boss", True), ("my boss Eva", False), ("Alice's boss", False), ("Alice's boss Eva", True)],
)
async def test_my_boss_is_found_before_and_after_a_merge_and_its_undo(
    family: Family, boss: str, *, into_boss: bool
) -> None:
    await family.met(boss)
    await family.met("Tom")
    before, tom = await family.meant("my boss"), await family.meant("Tom")
    one, other = ("Tom", "my boss") if into_boss else ("my boss", "Tom")
    await family.client.entities.merge(one, into=other, user_id="alice")
    merge = await family.carried_out()
    assert (await family.meant("my boss")).entity_id == (before if into_boss else tom).entity_id
    await family.people.undo(merge)
    assert await family.meant("my boss") == before
    await family.client.entities.rename("my boss", "Robin")
    assert (await family.carried_out()).outcome == "done"
    assert (await family.meant("Robin")).entity_id == before.entity_id


async def test_each_command_takes_what_somebody_is(family: Family) -> None:
    await family.met("Alice's wife Ana")
    await family.met("Ana's dog Rex")
    wife, dog = (await family.meant("Ana")).entity_id, (await family.meant("Rex")).entity_id
    client = family.client
    await client.entities.rename("my wife", "Ana Keller")
    assert (family.named(), client.commands[-1].scope.user_id) == (wife, "alice")
    await client.entities.alias("my wife's dog", "Rexi")
    assert family.named() == dog
    await client.entities.alias("Rex", "Annie", moved_from="my wife")
    assert client.commands[-1].order.model_dump()["moved_from"] == wife
    await client.entities.split("my wife", "Bea", names="Annie")
    assert family.named() == wife
    await client.entities.forget("my wife's dog")
    assert family.named() == dog
    await client.entities.summarise("my wife")
    assert family.named() == wife
    await client.entities.merge(["my wife's dog"], into="my wife")
    merge = client.commands[-1].order.model_dump(include={"entity_ids", "into"})
    assert merge == {"entity_ids": (dog,), "into": wife}
    with pytest.raises(UnknownEntityError, match="my husband"):
        await client.entities.forget("my husband")


async def test_somebody_elses_wife_is_not_mine(family: Family) -> None:
    """Ben says "my wife" in Alice's memory: the name is that of his wife, as he said it."""
    await family.met("Tom")
    await family.met("my wife", speaker="Ben")
    assert (await family.meant("my wife")).name == "my wife"
    await family.met("Alice's wife Ana")
    assert (await family.meant("my wife")).name == "Ana"
    assert [one.name for one in await family.client.entities.who("my wife", user_id="alice")] == ["Ana"]
    await family.client.entities.forget("my wife", user_id="alice")
    assert family.named() == (await family.meant("Ana")).entity_id


@pytest.mark.parametrize("bens", ["my wife Bea", "Ben's wife Bea", "Ben's spouse Bea"])
async def test_my_wife_of_several_users_is_an_error_that_lists_them(
    family: Family, bens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await family.met("my wife")
    related: dict[str, Any] = {"relations": [relation("Ben", "spouse", "Bea")]} if "spouse" in bens else {}
    name = "Bea" if related else bens
    await family.people.say(f"I met {name}", (name, "person"), scope=BEN, speaker="Ben", **related)
    mine, bea = await family.meant("my wife"), await family.meant("my wife", "ben")
    with pytest.raises(AmbiguousIdError) as failure:
        await family.client.entities.forget("my wife")
    assert {one for one, _ in failure.value.candidates} == {str(mine.entity_id), str(bea.entity_id)}
    assert f"{bea.entity_id} (user_id 'ben': Bea)" in str(failure.value)
    assert family.client.commands == []
    await family.client.entities.forget("my wife", user_id="ben")
    assert family.named() == bea.entity_id
    monkeypatch.setattr("mnemolog.projections.queries.entity_graph.MAX_USERS", 1)
    assert await family.client.entities.who("my wife", user_id="alice")
    with pytest.raises(Exception, match="more than 1 scopes with a user: give the ids of the one meant"):
        await family.client.entities.who("my wife", user_id="*")


async def test_a_tie_that_a_person_gave_is_found_moved_and_undone(family: Family) -> None:
    async def wife() -> list[str]:
        return [one.name for one in await family.client.entities.who("my wife", user_id="alice")]

    for name in ("Ana", "Bea"):
        await family.met(name)
    await family.client.entities.alias("Ana", "my wife", user_id="alice")
    given = await family.carried_out()
    assert await wife() == ["Ana"]
    await family.client.entities.alias("Bea", "my wife", moved_from="my wife", user_id="alice")
    moved = await family.carried_out()
    assert await wife() == [(await family.meant("my wife")).name] == ["Bea"]
    await family.people.undo(moved)
    assert (await family.meant("my wife")).name == "Ana"
    await family.people.undo(given)
    assert await wife() == []


BEFORE_GLOBEX = "2026-03-05T18:00:00+00:00"
"""After Acme was told, on the fourth day, and before Globex was."""
STATED = [
    ("Alice", "spouse", "Ana"),
    ("Alice", "owns", "Rex"),
    ("Alice", "owns", "Tom"),
    ("Alice", "employer", "Globex"),
    ("Ana", "employer", "Globex"),
    ("Ana", "manager", "Eva"),
]


def relation(subject: str, predicate: str, object_: str) -> dict[str, str]:
    return {"subject": subject, "predicate": predicate, "object": object_, "strength": "strong"}


def triples(found: list[EntityRelation]) -> list[tuple[str, str, str]]:
    return [(one.subject, one.predicate, one.object) for one in found]


@pytest.fixture
async def related(database: str) -> AsyncIterator[AsyncMemoryClient]:
    """People and animals that are something to each other, and two employers of Alice, one after the other."""
    async with named_people(database, lambda one: decision_json(one.number, "REPLACE", *range(1, 2))) as people:
        await people.say("My wife Ana paints", ("my wife Ana", "person"))
        await people.say("I feed my dog Rex", ("my dog Rex", "animal"))
        await people.say("I feed my cat Tom", ("my cat Tom", "animal"))
        for name in ("Acme", "Globex"):
            fields: dict[str, Any] = {"key": "employer", "single_valued": True, "value": name, "subject": "Alice"}
            works = [relation("Alice", "works at", name)]
            await people.say(f"I work at {name}", (name, "organisation"), relations=works, **fields)
        works = [relation("Ana", "employer", "Globex")]
        await people.say("Ana works at Globex", ("Globex", "organisation"), subject="Ana", relations=works)
        await people.say("Ana's boss Eva sings", ("Ana's boss Eva", "person"), subject="Ana's boss Eva")
        await people.say("My friend Ana dances", ("my friend Ana", "person"), scope=BEN, speaker="Ben")
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


async def test_relations_that_hold_are_listed_as_they_were_stated(related: AsyncMemoryClient, database: str) -> None:
    assert triples(await related.entities.relations(user_id="alice")) == STATED
    every = await related.entities.relations(user_id="alice", all_versions=True)
    assert [one.object for one in every if not one.is_active] == ["Acme"]
    assert triples(await related.entities.relations(user_id="ben")) == [("Ben", "friend", "Ana")]
    assert len(await related.entities.relations(user_id="*")) == len(STATED) + 1
    assert triples(await related.entities.relations(user_id="alice", limit=1)) == STATED[-1:]
    old, new = await related.entities.relations("Alice", predicate="employer", all_versions=True, user_id="alice")
    texts = {fact.fact_id: fact.text for fact in await related.facts(user_id="alice", all_versions=True)}
    evidence = [[texts[fact_id] for fact_id in one.evidence] for one in (old, new)]
    assert evidence == [["I work at Acme"], ["I work at Globex"]]
    assert (old.until, new.until, new.strength, new.is_contested) == (new.since, None, 0.8, False)
    async with await psycopg.AsyncConnection.connect(database) as connection:
        query = """SELECT subject, predicate, object FROM memory.relationships
            WHERE user_id = 'alice' AND is_active AND NOT is_mirror ORDER BY recorded_at, object"""
        rows = await (await connection.execute(query)).fetchall()
    assert sorted(rows) == sorted(STATED)


async def test_relations_of_one_entity_are_read_from_it(related: AsyncMemoryClient) -> None:
    of_ana = [("Ana", "spouse", "Alice"), ("Ana", "employer", "Globex"), ("Ana", "manager", "Eva")]
    assert triples(await related.entities.relations("Ana", user_id="alice")) == of_ana
    assert triples(await related.entities.relations("my wife", user_id="alice")) == of_ana
    assert triples(await related.entities.relations("Globex", predicate="employees", user_id="alice")) == []
    employees = [("Globex", "employee", "Alice"), ("Globex", "employee", "Ana")]
    assert triples(await related.entities.relations("Globex", predicate="employee", user_id="alice")) == employees
    assert triples(await related.entities.relations(predicate="wife", user_id="alice")) == STATED[:1]
    with pytest.raises(UnknownEntityError):
        await related.entities.relations("Nobody", user_id="alice")
    globex, alice = [await related.entities.get(name, user_id="alice") for name in ("Globex", "Alice")]
    assert triples(globex.relations) == employees
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


async def test_neighbours_are_found_within_two_hops_over_what_holds(related: AsyncMemoryClient) -> None:
    near = await related.entities.neighbours("Alice", user_id="alice")
    assert [(one.entity.name, one.hops) for one in near] == [("Ana", 1), ("Rex", 1), ("Tom", 1), ("Globex", 1)]
    far = await related.entities.neighbours("Alice", hops=2, user_id="alice")
    (eva,) = [one for one in far if one.hops == 2]
    assert (eva.entity.name, triples(eva.path)) == ("Eva", [("Alice", "spouse", "Ana"), ("Ana", "manager", "Eva")])
    assert await related.entities.neighbours("Acme", hops=2, user_id="alice") == []
    for hops in (0, 3, -1):
        with pytest.raises(QueryError, match=f"hops is {hops}"):
            await related.entities.neighbours("Alice", hops=hops, user_id="alice")


async def test_who_somebody_is_in_one_scope(related: AsyncMemoryClient) -> None:
    for asked, names in (
        ("my wife", ["Ana"]),
        ("my husband", []),
        ("meine Frau", ["Ana"]),
        ("my cat Tom", ["Tom"]),
        ("my cat Tim", []),
        ("my employer", ["Globex"]),
        ("my wife's boss", ["Eva"]),
        ("Globex's employee", ["Alice", "Ana"]),
        ("Eva", ["Eva"]),
        ("wife", ["Ana"]),
        ("Frau", ["Ana"]),
        ("Nobody's wife", []),
        ("my wife's wife's wife's wife's wife's wife's wife", []),
        ("she", []),
    ):
        assert [one.name for one in await related.entities.who(asked, user_id="alice")] == names, asked
    for asked, name in (("my wife", "Ana"), ("Ana's boss", "Eva"), ("my dog", "Rex")):
        assert (await related.entities.get(asked, user_id="alice")).entity.name == name
    with pytest.raises(UnknownEntityError, match="my husband"):
        await related.entities.get("my husband", user_id="alice")
    with pytest.raises(AmbiguousIdError, match="Globex's employee"):
        await related.entities.get("Globex's employee", user_id="alice")
    assert await related.entities.who("my wife", user_id="ben") == []
    assert [one.user_id for one in await related.entities.who("my friend", user_id="ben")] == ["ben"]


async def test_a_graph_has_the_relations_that_were_stated_last(
    related: AsyncMemoryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect.signature(related.entities.relations).parameters["limit"].default == LISTED_RELATIONS == 1000
    monkeypatch.setattr(entity_graph, "LISTED_RELATIONS", 1)
    assert triples((await related.entities.graph(user_id="alice")).relations) == STATED[-1:]


async def test_the_graph_has_what_is_related_and_nothing_of_others(related: AsyncMemoryClient) -> None:
    graph = await related.entities.graph(user_id="alice")
    assert [one.name for one in graph.entities] == ["Alice", "Ana", "Rex", "Tom", "Globex", "Eva"]
    assert triples(graph.relations) == STATED
    assert graph.mermaid.splitlines()[:2] == ["flowchart LR", '    e0["Alice"]']
    assert '    e0 -->|"spouse"| e1' in graph.mermaid.splitlines()
    assert "-.->" not in graph.mermaid
    assert "-.->" in (await related.entities.graph(all_versions=True, user_id="alice")).mermaid


async def test_several_employers_are_contested(database: str) -> None:
    async with named_people(database) as people:
        for name in ("Acme", "Globex"):
            works = relation("Alice", "works at", name)
            await people.say(f"I work at {name}", (name, "organisation"), relations=[works])
    async with AsyncMemoryClient(postgres=database) as memory:
        found = await memory.entities.relations(user_id="alice")
    assert [(one.object, one.is_contested) for one in found] == [("Acme", True), ("Globex", True)]


async def test_every_reading_takes_both_times(related: AsyncMemoryClient) -> None:
    then: dict[str, Any] = {"user_id": "alice", "believed_at": BEFORE_GLOBEX}
    true_then: dict[str, Any] = {"user_id": "alice", "true_at": BEFORE_GLOBEX}
    assert triples(await related.entities.relations(**then)) == [*STATED[:3], ("Alice", "employer", "Acme")]
    known_now = await related.entities.relations("Alice", predicate="employer", **true_then)
    assert triples(known_now) == [("Alice", "employer", "Acme")]
    later = await related.entities.relations("Alice", predicate="employer", **then, true_at="2026-12-01")
    assert [(one.object, one.until) for one in later] == [("Acme", None)]
    assert await related.entities.relations(user_id="alice", believed_at="2026-03-01") == []
    near = await related.entities.neighbours("Alice", hops=2, **then)
    assert [one.entity.name for one in near] == ["Ana", "Rex", "Tom", "Acme"]
    graph = await related.entities.graph(**true_then)
    assert [one.name for one in graph.entities] == ["Alice", "Ana", "Rex", "Tom", "Acme"]
    for times in (then, true_then):
        assert [one.name for one in await related.entities.who("my employer", **times)] == ["Acme"]
    assert await related.entities.who("my wife's boss", **then) == []
    with pytest.raises(QueryError, match="true_at has no zone"):
        await related.entities.graph(user_id="alice", true_at="2026-03-05T18:00:00")


async def test_an_entity_is_shown_as_it_was_known(related: AsyncMemoryClient) -> None:
    then: dict[str, Any] = {"user_id": "alice", "believed_at": BEFORE_GLOBEX}
    employer = await related.entities.get("my employer", **then)
    assert (employer.entity.name, [one.fact.text for one in employer.facts]) == ("Acme", ["I work at Acme"])
    assert triples(employer.relations) == [("Acme", "employee", "Alice")]
    assert [one.change for one in employer.timeline] == ["learned", "named", "related"]
    alice = await related.entities.get("Alice", **then)
    assert (alice.profile.values, alice.summary) == ({"employer": "Acme"}, None)
    assert "I work at Globex" not in alice.profile.texts
    globex = await related.entities.get("Globex", **then)
    assert (globex.names, globex.facts, globex.relations, globex.timeline) == ([], [], [], [])
