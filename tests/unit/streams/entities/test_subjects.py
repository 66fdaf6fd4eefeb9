"""Whether two facts are about one entity, by the entities of their subjects."""

import pytest

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.resolver import NameContext
from mnemolog.streams.entities.subjects import entity_relation, with_subject_relations
from mnemolog.streams.text.differences import EntityRelation
from tests.support.builders.decisions import TODAY, known_fact, matched_fact
from tests.support.builders.entities import known_entity

MIRA = known_entity("Mira", number=1)
TWIN = known_entity("Mira", number=2, twins=[MIRA.entity_id])


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        (MIRA, MIRA, "same"),
        (MIRA, TWIN, "twin"),
        (TWIN, MIRA, "twin"),
        (MIRA, known_entity("Ben"), "other"),
        (MIRA, known_entity("Mira Kovac"), "other"),
        (MIRA, known_entity("Mira Kovac", kind="other"), "twin"),
        (MIRA, known_entity(is_user=True), None),
        (known_entity("Sam", kind="animal"), known_entity(is_user=True), "other"),
        (known_entity("Florence", kind="place"), known_entity(is_user=True), "other"),
        (MIRA, known_entity("Alice", is_user=True), "other"),
        (known_entity("The user's company", kind="organisation"), known_entity(is_user=True), "other"),
        (MIRA, None, None),
    ],
)
def test_two_subjects_are_one_entity_or_not(
    one: KnownEntity, other: KnownEntity | None, relation: EntityRelation | None
) -> None:
    assert entity_relation(one, other) == relation


@pytest.mark.parametrize(
    ("said_of", "known_of", "relation"),
    [
        ("Alice", "Ana", "other"),
        (None, "Ana", None),
        ("the user", "Ana", "other"),
        ("Ben", "Ana", "other"),
        ("Ana Keller", "Ana", None),
        ("Ana", "Ana", None),
        ("Ana", None, None),
        ("a friend", None, "other"),
        ("a friend", "a friend", "other"),
        ("our doctor", "the boss", "other"),
        ("the boss", "the boss", None),
        ("her mother", "Ana", "other"),
        ("my friends", None, "other"),
        (None, "a colleague", "other"),
        ("Ana", "his brother", "other"),
    ],
)
def test_the_words_of_a_known_fact_tell_whom_it_is_about_where_no_entity_does(
    said_of: str | None, known_of: str | None, relation: EntityRelation | None
) -> None:
    """As after somebody was forgotten and the facts have stayed."""
    fact = matched_fact(known_fact(subject=known_of), subject=said_of)
    turn = MatchedFacts(
        source_id="t1",
        scope=Scope(user_id="alice"),
        origin=Origin(topic="turns", partition=0, offset=0),
        occurred_at=TODAY,
        published_at=TODAY,
        speaker="Alice",
        user_names=("Alice",),
        facts=(fact,),
    )
    context = NameContext(owner=turn.owner, source_id="t1", speaker="Alice", user_names=("Alice",))
    found = TurnEntities.of_facts([fact.fact], (), context)
    ((known,),) = [one.candidates for one in with_subject_relations(turn, found).facts]
    assert known.subject_relation == relation
