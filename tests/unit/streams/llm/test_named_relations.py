"""Which relations of a reply are accepted: those between whom the fact names, by words that are predicates."""

import pytest

from mnemolog.schemas.entities import MAX_RELATIONS, NamedRelation
from mnemolog.streams.llm.extract_reply import RelationReply, named_relations
from tests.support.builders.prompts import turn, user

NAMES = ("my brother Tom", "Ana Keller")
TURN = turn(user("It."), speaker="Alice")


def accepted(
    subject: str, predicate: str, object_: str, strength: str = "strong", other_speaker: str | None = None
) -> tuple[NamedRelation, ...]:
    reply = RelationReply(subject=subject, predicate=predicate, object=object_, strength=strength)
    return named_relations([reply], NAMES, TURN, other_speaker)


@pytest.mark.parametrize("subject", ["Alice", "the user", "I", "ANA KELLER", "Ana  Keller"])
@pytest.mark.parametrize("object_", ["Tom", "my brother Tom"])
def test_a_relation_between_names_of_the_fact_is_accepted(subject: str, object_: str) -> None:
    (found,) = accepted(subject, "Has Brother", object_)
    assert (found.subject, found.predicate, found.object) == (" ".join(subject.split()), "brother", object_)


@pytest.mark.parametrize(
    ("subject", "predicate", "object_"),
    [
        ("Alice", "friend", "Bob"),
        ("Bob", "friend", "Alice"),
        ("Tom", "friend", "Tom"),
        ("Alice", "", "Tom"),
        ("Alice", "配偶者", "Tom"),
        ("Alice", "x" * 65, "Tom"),
        ("A" * 500, "friend", "Tom"),
        ("", "friend", "Tom"),
    ],
)
def test_any_other_is_left_out(subject: str, predicate: str, object_: str) -> None:
    assert accepted(subject, predicate, object_) == ()


def test_what_another_speaker_says_of_the_user_is_about_that_speaker() -> None:
    assert accepted("the user", "sister", "Ana Keller", other_speaker="Bob")[0].subject == "Bob"


def test_an_unknown_strength_is_weak() -> None:
    assert accepted("Alice", "friend", "Tom", "certain")[0].strength == "weak"


def test_a_fact_has_a_bounded_number_each_once() -> None:
    replies = [
        RelationReply(subject="Alice", predicate=f"knows_{number // 2}", object="Tom", strength="strong")
        for number in range(4 * MAX_RELATIONS)
    ]
    found = named_relations(replies, NAMES, TURN, None)
    assert [one.predicate for one in found] == [f"knows_{number}" for number in range(MAX_RELATIONS)]
