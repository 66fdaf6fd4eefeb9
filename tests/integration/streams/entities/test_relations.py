"""Relations through the real stages and tables: stated, ended, changed, in both directions, in one scope."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
EMPLOYER: dict[str, Any] = {"key": "employer", "single_valued": True, "category": "professional"}
Triple = tuple[str, str, str]


def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that takes the known facts for what has changed, and keeps what says that something is over."""
    known = [label for label, _ in conflict.candidates]
    is_end = conflict.fact.action_hint == "retract"
    return decision_json(conflict.number, "ADD") if is_end else decision_json(conflict.number, "REPLACE", *known)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, judge) as harness:
        yield harness


def relation(subject: str, predicate: str, object_: str, strength: str = "strong") -> dict[str, str]:
    return {"subject": subject, "predicate": predicate, "object": object_, "strength": strength}


async def relations(people: NamedPeople, scope: Scope = ALICE, *, mirrors: bool = False) -> dict[Triple, bool]:
    query = """SELECT s.name, predicate, o.name, is_active, is_mirror
        FROM relations_of_scope('default', %s, '', '', '') AS r
        JOIN entities s ON s.entity_id = r.subject_id JOIN entities o ON o.entity_id = r.object_id"""
    rows = await people.rows(query, scope.user_id)
    return {(one, predicate, other): holds for one, predicate, other, holds, mirror in rows if mirror == mirrors}


async def say_employer(people: NamedPeople, name: str) -> None:
    related = [relation("Alice", "works at", name)]
    await people.say(
        f"I work at {name}", (name, "organisation"), subject="Alice", value=name, relations=related, **EMPLOYER
    )


async def test_a_model_states_relations_with_its_facts(people: NamedPeople) -> None:
    await say_employer(people, "Acme")
    assert await relations(people) == {("Alice", "employer", "Acme"): True}
    assert await relations(people, mirrors=True) == {("Acme", "employee", "Alice"): True}


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("my son Tom", ("Tom", "parent", "Alice")),
        ("my father Tom", ("Alice", "parent", "Tom")),
        ("my nephew Tom", ("Tom", "aunt_or_uncle", "Alice")),
    ],
)
async def test_a_tie_is_kept_in_the_direction_of_its_predicate(people: NamedPeople, said: str, triple: Triple) -> None:
    await people.say(f"{said} sings", (said, "person"), subject="Alice")
    assert await relations(people) == {triple: True}


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        (relation("Tom", "brother_of", "Alice"), ("Alice", "sibling", "Tom")),
        (relation("the user", "mother of", "Tom"), ("Tom", "parent", "Alice")),
        (relation("Tom", "mentored by", "Alice"), ("Tom", "mentored_by", "Alice")),
    ],
)
async def test_a_relation_is_kept_by_the_predicate_of_the_registry(
    people: NamedPeople, said: dict[str, str], triple: Triple
) -> None:
    await people.say("I called Tom", ("Tom", "person"), relations=[said])
    assert await relations(people) == {triple: True}


async def test_names_state_relations_in_passing(people: NamedPeople) -> None:
    await people.say("I sail with my brother Tom", ("my brother Tom", "person"))
    await people.say("Tom's wife is ill", subject="Tom's wife")
    assert await relations(people) == {("Alice", "sibling", "Tom"): True, ("Tom", "spouse", "Tom's wife"): True}
    strengths = "SELECT DISTINCT strength FROM relationship_evidence"
    assert await people.rows(strengths) == [("medium",)]


async def test_a_doubtful_fact_states_a_weak_relation(people: NamedPeople) -> None:
    friend = relation("Alice", "friend", "Tom")
    await people.say("Maybe Tom is a friend", ("Tom", "person"), relations=[friend], certainty="weak")
    assert await people.rows("SELECT strength FROM relationship_evidence") == [("weak",)]


async def test_a_new_value_takes_the_relation_of_the_old_one(people: NamedPeople) -> None:
    await say_employer(people, "Acme")
    await say_employer(people, "Globex")
    assert await relations(people) == {("Alice", "employer", "Acme"): False, ("Alice", "employer", "Globex"): True}


async def test_a_statement_ends_a_relation_whose_fact_stays(people: NamedPeople) -> None:
    await people.say("I sail with my wife Ana", ("my wife Ana", "person"))
    over = relation("Alice", "wife", "Ana")
    ended = await people.say("Ana left me", ("Ana", "person"), action_hint="retract", relations=[over])
    assert [event.event for event in ended.entity_events] == ["fact_linked", "relation_ended"]
    assert await relations(people) == {("Alice", "spouse", "Ana"): False}
    assert await people.rows("SELECT count(*) FROM facts WHERE status = 'active'") == [(2,)]


async def test_what_a_retraction_names_in_passing_is_not_over(people: NamedPeople) -> None:
    await people.say("I sail with my brother Tom", ("my brother Tom", "person"))
    passing = relation("Alice", "brother", "Tom", "medium")
    await people.say(
        "My brother Tom left Acme",
        ("Acme", "organisation"),
        subject="my brother Tom",
        action_hint="retract",
        relations=[passing, relation("Tom", "employer", "Acme")],
    )
    assert await relations(people) == {("Alice", "sibling", "Tom"): True}
    ended = "SELECT predicate FROM relationships JOIN relationship_evidence USING (relation_id) WHERE strength IS NULL"
    assert await people.rows(ended) == [("employer",)]


async def test_what_is_said_again_states_what_was_not_stated_before(people: NamedPeople) -> None:
    friend, cousin = relation("Alice", "friend", "Tom"), relation("Alice", "cousin", "Tom")
    await people.say("I met Tom", ("Tom", "person"), relations=[friend])
    again = await people.say("I met Tom", ("Tom", "person"), relations=[friend, cousin])
    assert [event.event for event in again.entity_events] == ["fact_linked", "relation_stated"]
    assert await relations(people) == {("Alice", "friend", "Tom"): True, ("Alice", "cousin", "Tom"): True}


async def test_a_relation_with_somebody_who_was_not_named_is_left_out(people: NamedPeople) -> None:
    await people.say("I met Tom", ("Tom", "person"), relations=[relation("Alice", "spouse", "Eva Meier")])
    assert await relations(people) == {}


async def test_another_speaker_has_relations_of_their_own(people: NamedPeople) -> None:
    await people.say("I sail")
    await people.say("I ski with my wife", ("my wife", "person"), speaker="Bob")
    assert await relations(people) == {("Bob", "spouse", "my wife"): True}


async def test_a_rebuild_gives_equal_relations(people: NamedPeople, database: str) -> None:
    await say_employer(people, "Acme")
    await say_employer(people, "Globex")
    await people.say("I met my wife Ana", ("my wife Ana", "person"))
    over = relation("Alice", "wife", "Ana")
    await people.say("Ana left me", ("Ana", "person"), action_hint="retract", relations=[over])
    before = await relations(people)
    report = await rebuild(database, TableLogSource(people.pipeline.pool))
    assert report.equal
    rows = {table.table: table.rebuilt_rows for table in report.tables}
    assert (rows["relationships"], rows["relationship_evidence"]) == (3, 4)
    assert await relations(people) == before
