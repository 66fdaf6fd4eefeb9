"""Other names that a reply tells of those whom a fact names: only what was said in the conversation is told."""

import pytest

from mnemolog.schemas.entities import MAX_NAME, SAME_AS
from mnemolog.streams.llm.extract_reply import EntityReply, RelationReply, alias_relations, named_relations
from tests.support.builders.prompts import turn, user

SAID = ("elizabeth, whom everyone calls bee, sings", "we call her bibi")


TURN = turn(user("Elizabeth, whom everyone calls Bee, sings"), speaker="Alice")


def relation(one: str, other: str, predicate: str = "same_as") -> RelationReply:
    return RelationReply(subject=one, predicate=predicate, object=other, strength="strong")


@pytest.mark.parametrize("predicate", ["same_as", "also known as", "nickname", "is_alias_of"])
def test_two_names_that_were_said_are_of_one_and_no_relation(predicate: str) -> None:
    replies = [relation("Elizabeth", "Bee", predicate)]
    (told,), unsaid = alias_relations([], replies, SAID, TURN, None)
    assert (told.subject, told.predicate, told.object, unsaid) == ("Elizabeth", SAME_AS, "Bee", ())
    assert named_relations(replies, ["Elizabeth", "Bee"], TURN, None) == ()


def test_aliases_of_an_entity_are_read_alike() -> None:
    entity = EntityReply(name="Elizabeth", type="person", role="subject", aliases=("Bee", "Bibi", "Liz", " "))
    told, unsaid = alias_relations([entity], [], SAID, TURN, None)
    assert [(one.subject, one.object) for one in told] == [("Elizabeth", "Bee"), ("Elizabeth", "Bibi")]
    assert [(one.name, one.reason) for one in unsaid] == [("Liz", "not_said")]


def test_a_name_that_is_too_long_or_the_same_is_not_told() -> None:
    long = "bee " * MAX_NAME
    told, unsaid = alias_relations(
        [], [relation("Elizabeth", long), relation("Elizabeth", "ELIZABETH")], SAID, TURN, None
    )
    assert told == ()
    assert [one.reason for one in unsaid] == ["too_long"]


def test_what_another_speaker_says_of_the_user_is_about_that_speaker() -> None:
    (own,), _ = alias_relations([], [relation("the user", "Bee")], SAID, TURN, None)
    (theirs,), _ = alias_relations([], [relation("the user", "Bee")], (*SAID, "elizabeth"), TURN, "Elizabeth")
    assert (own.subject, theirs.subject) == ("the user", "Elizabeth")
