"""Of the entities that a reply names those are accepted whose names the turn says, and no other."""

from dataclasses import replace
from typing import Any

import pytest

from mnemolog.schemas.entities import MAX_ENTITIES, NamedEntity
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.builders.prompts import extraction, user

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
    ],
)
def test_a_type_is_a_plain_word_and_a_role_one_of_three(kind: str, role: str, expected: tuple[str, str]) -> None:
    assert [(one.type, one.role) for one in accepted(entity("Tom", kind, role))] == [expected]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("Organization", "organisation"),
        ("company", "organisation"),
        ("city", "place"),
        ("pet", "animal"),
        ("dog", "animal"),
        ("woman", "person"),
        ("software", "product"),
        ("thing", "other"),
        ("medication", "medication"),
    ],
)
def test_another_word_for_a_type_is_that_type(word: str, kind: str) -> None:
    assert [one.type for one in accepted(entity("Tom", word))] == [kind]


def test_a_word_that_a_setting_has_as_a_type_is_that_type() -> None:
    task = replace(extraction(user(SAID)), entity_types=("person", "company"))
    assert [one.type for one in accepted(entity("Tom", "Company"), entity("my wife", "city"), task=task)] == [
        "company",
        "place",
    ]


def test_a_name_counts_once_and_no_fact_names_too_many() -> None:
    assert len(accepted(entity("Tom"), entity("Tom", role="mention"))) == 1
    names = [f"Name{number}" for number in range(500)]
    task = extraction(user("lunch with Tom " + " ".join(names)))
    assert len(accepted(*map(entity, names), task=task)) == MAX_ENTITIES


def test_a_reply_without_entities_is_one_of_a_former_prompt() -> None:
    fact = fact_json("Alice had lunch with Tom.", excerpt="lunch with Tom")
    del fact["entities"]
    parsed = parse_extraction(facts_reply(fact), extraction(user(SAID)))
    assert parsed.value is not None
    assert (parsed.value[0].entities, parsed.complaints) == ((), ())
