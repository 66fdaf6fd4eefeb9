"""Of the entities, relations and other names of a reply those are accepted that were said, and no others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    MAX_NAME,
    MAX_RELATIONS,
    SAME_AS,
    NamedEntity,
    NamedRelation,
    UnlinkedName,
)
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.extract_reply import EntityReply, RelationReply, parse_extraction, told_relations
from mnemolog.streams.llm.ports import ExtractionTask
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.builders.prompts import extracted_json, extraction, turn, user

SAID = "I had lunch with Tom from work, and my wife called."


def accepted(*entities: dict[str, Any], task: ExtractionTask | None = None) -> tuple[NamedEntity, ...]:
    task = task or extraction(user(SAID), speaker="Alice")
    reply = facts_reply(fact_json("Alice had lunch with Tom.", excerpt="lunch with Tom", entities=list(entities)))
    parsed = parse_extraction(reply, task)
    assert parsed.value is not None
    assert parsed.complaints == ()
    return parsed.value[0].entities


def entity(name: str, kind: str = "person", role: str = "object") -> dict[str, Any]:
    return {"name": name, "type": kind, "role": role}


@pytest.mark.parametrize("name", ["Tom", "tom", "Tom from work", "my wife", "Alice's wife", "Alice", "the user's wife"])
def test_a_name_that_the_turn_says_or_that_of_the_speaker_is_accepted(name: str) -> None:
    assert accepted(entity(name)) == (NamedEntity(name=name, type="person", role="object"),)


@pytest.mark.parametrize("name", ["Bob", "To", "my husband", "Alice's brother Tim", "", " ", "Tom " * 60])
def test_a_name_that_nobody_said_is_left_out(name: str) -> None:
    assert accepted(entity(name)) == ()


def test_the_name_of_a_message_is_said() -> None:
    task = extraction(Message(role="user", content="I had lunch with Tom", name="Bea"))
    assert [one.name for one in accepted(entity("Bea"), task=task)] == ["Bea"]


@pytest.mark.parametrize(
    ("kind", "role", "expected"),
    [
        ("Person", "object", ("person", "object")),
        ("spaceship", "subject", ("spaceship", "subject")),
        ("no plain word!", "object", ("other", "object")),
        ("person", "owner", ("person", "mention")),
        *((word, "object", ("organisation", "object")) for word in ("Organization", "company")),
        *((word, "object", ("animal", "object")) for word in ("pet", "dog")),
        ("city", "object", ("place", "object")),
        ("software", "object", ("product", "object")),
        ("thing", "object", ("other", "object")),
    ],
)
def test_a_type_is_a_plain_word_and_a_role_one_of_three(kind: str, role: str, expected: tuple[str, str]) -> None:
    assert [(one.type, one.role) for one in accepted(entity("Tom", kind, role))] == [expected]


def test_a_word_that_a_setting_has_as_a_type_is_that_type() -> None:
    task = replace(extraction(user(SAID)), entity_types=("person", "company"))
    found = accepted(entity("Tom", "Company"), entity("my wife", "city"), task=task)
    assert [one.type for one in found] == ["company", "place"]


def test_a_name_counts_once_and_no_fact_names_too_many() -> None:
    assert len(accepted(entity("Tom"), entity("Tom", role="mention"))) == 1
    names = [f"Name{number}" for number in range(500)]
    task = extraction(user("lunch with Tom " + " ".join(names)))
    assert len(accepted(*map(entity, names), task=task)) == MAX_ENTITIES


NAMES = ("my brother Tom", "Ana Keller")
TURN = turn(user("It."), speaker="Alice")


def told(
    *replies: RelationReply,
    entities: Sequence[EntityReply] = (),
    names: Sequence[str] = NAMES,
    said: Sequence[str] = (),
    turn: Turn = TURN,
    other_speaker: str | None = None,
) -> tuple[tuple[NamedRelation, ...], tuple[UnlinkedName, ...]]:
    return told_relations(entities, replies, names=names, said=said, turn=turn, other_speaker=other_speaker)


def relations_of(
    subject: str, predicate: str, object_: str, strength: str = "strong", other_speaker: str | None = None
) -> tuple[NamedRelation, ...]:
    fields = {"subject": subject, "predicate": predicate, "object": object_, "strength": strength}
    reply = RelationReply.model_validate(fields)
    return told(reply, other_speaker=other_speaker)[0]


@pytest.mark.parametrize(
    ("subject", "object_"),
    [("Alice", "Tom"), ("the user", "my brother Tom"), ("I", "Tom"), ("ANA KELLER", "Tom"), ("Ana  Keller", "Tom")],
)
def test_a_relation_between_names_of_the_fact_is_accepted(subject: str, object_: str) -> None:
    (found,) = relations_of(subject, "Has Brother", object_)
    assert (found.subject, found.predicate, found.object) == (" ".join(subject.split()), "brother", object_)


@pytest.mark.parametrize(
    ("subject", "predicate", "object_"),
    [
        ("Alice", "friend", "Bob"),
        ("Tom", "friend", "Tom"),
        ("Alice", "", "Tom"),
        ("Alice", "配偶者", "Tom"),
        ("Alice", "x" * 65, "Tom"),
        ("A" * 500, "friend", "Tom"),
        ("", "friend", "Tom"),
    ],
)
def test_any_other_is_left_out(subject: str, predicate: str, object_: str) -> None:
    assert relations_of(subject, predicate, object_) == ()


def test_a_relation_of_the_user_is_about_who_speaks_and_an_unknown_strength_is_weak() -> None:
    (found,) = relations_of("the user", "sister", "Ana Keller", "certain", other_speaker="Bob")
    assert (found.subject, found.strength) == ("Bob", "weak")


def test_a_fact_has_a_bounded_number_each_once() -> None:
    replies = [
        RelationReply(subject="Alice", predicate=f"knows_{number // 2}", object="Tom", strength="strong")
        for number in range(4 * MAX_RELATIONS)
    ]
    found, _ = told(*replies)
    assert [one.predicate for one in found] == [f"knows_{number}" for number in range(MAX_RELATIONS)]


TALK = ("elizabeth, whom everyone calls bee, sings", "we call her bibi")


ELIZABETH = turn(user("Elizabeth, whom everyone calls Bee, sings"), speaker="Alice")


def relation(one: str, other: str, predicate: str = "same_as") -> RelationReply:
    return RelationReply(subject=one, predicate=predicate, object=other, strength="strong")


@pytest.mark.parametrize("predicate", ["same_as", "also known as", "nickname", "is_alias_of"])
def test_two_names_that_were_said_are_of_one_and_no_relation(predicate: str) -> None:
    said = relation("Elizabeth", "Bee", predicate)
    (same,), unsaid = told(said, names=["Elizabeth", "Bee"], said=TALK, turn=ELIZABETH)
    assert (same.subject, same.predicate, same.object, unsaid) == ("Elizabeth", SAME_AS, "Bee", ())


def test_aliases_of_an_entity_are_read_alike() -> None:
    entity = EntityReply(name="Elizabeth", type="person", role="subject", aliases=("Bee", "Bibi", "Liz", " "))
    long = relation("Elizabeth", "bee " * MAX_NAME)
    capitals = relation("Elizabeth", "ELIZABETH")
    found, unsaid = told(long, capitals, entities=[entity], said=TALK, turn=ELIZABETH)
    assert [(one.subject, one.object) for one in found] == [("Elizabeth", "Bee"), ("Elizabeth", "Bibi")]
    assert {(one.name[:3], one.reason) for one in unsaid} == {("Liz", "not_said"), ("bee", "too_long")}


def test_another_name_of_the_user_is_that_of_who_speaks() -> None:
    (own,), _ = told(relation("the user", "Bee"), said=TALK, turn=ELIZABETH)
    said = (*TALK, "elizabeth")
    (theirs,), _ = told(relation("the user", "Bee"), said=said, turn=ELIZABETH, other_speaker="Elizabeth")
    assert (own.subject, theirs.subject) == ("the user", "Elizabeth")


@pytest.mark.parametrize(
    ("texts", "subject", "predicate", "object_", "mirror"),
    [
        (["Alice flies to Curitiba."], "my mom", "lives_in", "Curitiba", "Alice's mom lives in Curitiba."),
        (["Tom has a new job."], "Tom", "works_at", "Acme", "Tom works at Acme."),
        (["Ben sings."], "the user", "brother", "Ben", "Alice's brother is Ben."),
        (["Ben is happy."], "Ben", "member_of", "Blue Choir", "Ben is member of Blue Choir."),
        (["Ben lost a key."], "Ben", "owns", "Tesla", "Ben owns Tesla."),
        (["Tom moved.", "Ann moved."], "Tom", "wife", "Ann", "Tom's wife is Ann."),
        # a text names both ends
        (["Alice's mom lives in Curitiba."], "my mom", "lives_in", "Curitiba", None),
        (["Alice's brother Ben sings."], "the user", "brother", "Ben", None),
        (["My brother Ben sings."], "Alice", "brother", "my brother Ben", None),
        (["Ben sings.", "Ben is Alice's brother."], "the user", "brother", "Ben", None),
    ],
)
def test_an_inferred_relation_rests_on_a_fact_that_a_search_finds(
    texts: list[str], subject: str, predicate: str, object_: str, mirror: str | None
) -> None:
    said = RelationReply(subject=subject, predicate=predicate, object=object_, strength="strong")
    people = [{"name": name, "type": "person", "role": "mention"} for name in (subject, object_) if name != "the user"]
    facts = [
        extracted_json(text=text, excerpt="all of it", subject=text.split(" ")[0], entities=people, key=None)
        | {"relations": [said.model_dump()] if text == texts[0] else []}
        for text in texts
    ]
    content = f"{' '.join(texts)} I mean {subject} {object_} all of it"
    task = extraction(Message(role="user", content=content), speaker="Alice")
    read = parse_extraction(facts_reply(*facts), task).value or ()
    assert [one.text for one in read] == [*texts, *([mirror] if mirror else [])]
    (bearer,) = [one for one in read if one.relations]
    assert bearer.text == (mirror or texts[0])
    if mirror:
        assert (bearer.certainty, bearer.category, bearer.relations[0].strength) == ("weak", "relationship", "weak")
