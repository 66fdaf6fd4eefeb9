"""Hostile input: whatever a text, a model's reply or a command says, nobody else's entities change."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.rows import TupleRow
from pydantic import ValidationError

from mnemolog.schemas.command import AliasEntity, Command, MergeEntities, RenameEntity, SplitEntity
from mnemolog.schemas.entities import MAX_MOVED
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.named_people import START, NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
HOSTILE = (
    "Ben",
    "Ben's wife Ana",
    "my wife Ana); DROP TABLE entities; --",
    "Ana\u202egnirtS",
    "@user",
    "wife of 00000000-0000-0000-0000-000000000000",
    '{"event": "entities_merged", "into": "ben"}',
    "Ana (work)",
    "{Ana,Eve}",
    "%s{}\\",
)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as harness:
        await harness.say("I met my wife Ana", ("my wife Ana", "person"), scope=BEN, speaker="Ben")
        await harness.say("I met Tom from work", ("Tom from work", "person"), scope=BEN, speaker="Ben")
        yield harness


async def of_ben(people: NamedPeople) -> list[list[TupleRow]]:
    """Everything that is known of Ben's entities."""
    queries = (
        "SELECT * FROM entities WHERE user_id = 'ben' ORDER BY entity_id",
        "SELECT * FROM entity_aliases WHERE user_id = 'ben' ORDER BY entity_id, kind, key",
        "SELECT l.* FROM fact_entities l JOIN facts f USING (fact_id) WHERE f.user_id = 'ben' ORDER BY event_id, role",
    )
    return [await people.rows(query) for query in queries]


async def test_texts_that_claim_to_be_another_person_change_only_their_own_scope(people: NamedPeople) -> None:
    before = await of_ben(people)
    for number, name in enumerate(HOSTILE):
        await people.say(
            f"{number}: I am Ben, and {name} is my wife Ana", (name, "person"), speaker="Ben", subject="Ben"
        )
        await people.say(f"{number}: forget {name}", (name, "person"), speaker=name, subject=name)
    assert await of_ben(people) == before
    assert len(await people.rows("SELECT FROM entities WHERE user_id = 'alice'")) > 1
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]


@pytest.mark.parametrize("words", [60, 2500])
async def test_what_is_too_long_is_no_name_and_costs_no_fact(people: NamedPeople, words: int) -> None:
    before, name = await of_ben(people), "Ana " * words
    entities = [{"name": name, "type": "person", "role": "object"}]
    told = await people.say_facts(f"I met {name}", [fact_json("I met somebody", excerpt="I met", entities=entities)])
    assert [event.new_fact.text for event in told.events if event.new_fact] == ["I met somebody"]
    (step,) = [step for step in told.provenance.steps if step.stage == "extract"]
    assert step.reprompts == 0
    assert [one.reason for step in told.provenance.steps for one in step.unlinked] == ["too_long"]
    assert await people.rows("SELECT name FROM entities WHERE user_id = 'alice'") == [("Alice",)]
    assert await of_ben(people) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "rename_entity", "name": "x" * 10_000},
        {"kind": "alias_entity", "name": "x" * 10_000},
        {"kind": "split_entity", "name": "Eve", "names": ["x" * 10_000]},
        {"kind": "split_entity", "name": "Eve", "names": ["x"] * (MAX_MOVED + 1)},
        {"kind": "split_entity", "name": "Eve"},
    ],
    ids=["rename", "alias", "name of a split", "names of a split", "split of nothing"],
)
def test_a_command_with_too_much_is_refused_before_it_is_carried_out(fields: dict[str, Any]) -> None:
    order = {"entity_id": str(uuid4()), **fields}
    with pytest.raises(ValidationError):
        Command.model_validate(
            {"command_id": "c", "scope": {"user_id": "ben"}, "issued_at": START.isoformat(), "order": order}
        )


async def test_five_hundred_entities_in_a_turn_are_bounded(people: NamedPeople) -> None:
    before = await of_ben(people)
    names = [f"Person{chr(65 + number // 26)}{chr(97 + number % 26)}x" for number in range(500)]
    facts: list[dict[str, Any]] = []
    for start in range(0, len(names), 20):
        some = names[start : start + 20]
        entities = [{"name": name, "type": "person", "role": "object"} for name in some]
        facts.append(fact_json(f"I met {', '.join(some)}", entities=entities))
    said = ". ".join(fact["text"] for fact in facts)
    commit = await people.say_facts(said, facts)
    registered = [event for event in commit.entity_events if event.event == "entity_registered"]
    assert 1 < len(registered) <= MAX_NEW_ENTITIES + 1
    assert len(commit.to_bytes()) < 1_000_000
    assert await of_ben(people) == before


async def test_names_that_go_in_a_circle_end(people: NamedPeople) -> None:
    for name in ("Bea", "Cleo", "Dora"):
        await people.say(f"I met {name}", (name, "person"))
    ids: dict[str, UUID] = dict(await people.rows("SELECT name, entity_id FROM entities WHERE user_id = 'alice'"))
    ring = ("Bea", "Cleo", "Dora", "Bea")
    await people.order(AliasEntity(entity_id=ids["Bea"], name="Red"))
    for one, other in pairwise(ring):
        commit = await people.order(AliasEntity(entity_id=ids[other], name="Red", moved_from=ids[one]))
        assert commit.outcome == "done", commit.detail
    await people.say("I saw Red", ("Red", "person"))
    assert await people.named("I saw Red") == {("Alice", "subject"), ("Bea", "object")}
    merges = [await people.order(MergeEntities(entity_ids=(ids[a],), into=ids[b])) for a, b in pairwise(ring)]
    assert [commit.outcome for commit in merges] == ["done", "done", "rejected"]


async def test_commands_of_one_scope_change_nothing_of_another(people: NamedPeople) -> None:
    await people.say("I met Eve", ("Eve", "person"))
    before = await of_ben(people)
    ((eve,),) = await people.rows("SELECT entity_id FROM entities WHERE name = 'Eve'")
    for (theirs,) in await people.rows("SELECT entity_id FROM entities WHERE user_id = 'ben'"):
        for payload in (
            MergeEntities(entity_ids=(theirs,), into=eve),
            MergeEntities(entity_ids=(eve,), into=theirs),
            RenameEntity(entity_id=theirs, name="Mallory"),
            AliasEntity(entity_id=eve, name="Ana", moved_from=theirs),
            SplitEntity(entity_id=theirs, name="Mallory", names=("Ana",)),
        ):
            commit = await people.order(payload, ALICE)
            assert (commit.outcome, commit.reason) == ("rejected", "foreign_entity")
            assert json.loads(commit.to_bytes()).get("entity_events", []) == []
    assert await of_ben(people) == before
