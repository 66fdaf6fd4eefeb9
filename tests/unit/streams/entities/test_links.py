"""What new facts take over from the facts that they are made of, and what a repetition says besides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.entities import MAX_LINKS, Alias, KnownEntity, Role
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact, PromotedFrom
from mnemolog.schemas.stored import LinkedFact, StoredRelation
from mnemolog.streams.entities.links import FactLinks, FactLinksBuilder, TurnEntities
from mnemolog.streams.entities.resolver import NameContext
from tests.support.builders.commits import (
    START_TIME,
    Draft,
    added,
    commit,
    confirmed,
    corrected,
    merged,
    pending,
    replaced,
)
from tests.support.builders.entities import fact_naming, known_entity, relation, tie_alias

CONTEXT = NameContext(owner="default/alice", source_id="t1", speaker="Alice", user_names=("Alice",))
OLD, OTHER = UUID(int=10), UUID(int=11)


USER = known_entity("Alice", is_user=True)
ANA = known_entity("Ana", tie_alias("wife", "my wife Ana", USER.entity_id))
BEN = known_entity("Ben")
MARRIED = StoredRelation(
    subject_id=USER.entity_id,
    predicate="spouse",
    object_id=ANA.entity_id,
    inverse="spouse",
    strength="strong",
    ended_at=None,
)


def linked(
    *named: tuple[KnownEntity, Role],
    fact_id: UUID = OLD,
    text: str = "",
    subject: str | None = None,
    relations: Sequence[StoredRelation] = (),
) -> LinkedFact:
    entities = {one.entity_id: one for one in (USER, ANA, BEN, *(one for one, _ in named))}
    links = [(one.entity_id, role) for one, role in named]
    return LinkedFact(
        fact_id=fact_id,
        text=text,
        subject=subject,
        true_from=START_TIME,
        links=links,
        relations=relations,
        entities=entities,
    )


def carried(
    event: MemoryEvent,
    *sources: LinkedFact,
    known: Sequence[KnownEntity] = (USER, ANA, BEN),
    facts: Sequence[ExtractedFact] = (),
    reads_texts: bool = False,
) -> tuple[TurnEntities, FactLinks]:
    found = TurnEntities.of_facts(facts, known, CONTEXT)
    builder = FactLinksBuilder(found, {one.fact_id: one for one in sources}, reads_texts=reads_texts)
    return found, builder.build([event])


def roles(found: TurnEntities, names: FactLinks) -> dict[str, str]:
    (links,) = names.links.values()
    return {found.registry[link.entity_id].name: link.role for link in links}


def event_of(draft: Draft) -> MemoryEvent:
    (event,) = commit("t1", draft).events
    return event


def promoted(text: str, **fields: Any) -> MemoryEvent:
    """A fact that was promoted from another scope, where it had the id `OLD`."""
    origin = PromotedFrom(fact_id=OLD, source_id="run", said_at=START_TIME)
    return event_of(added(text, **fields)).model_copy(update={"promoted_from": origin})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Alice's wife is ÁNA, a nurse", {"Alice": "subject", "Ana": "object"}),
        ("My wife is a nurse", {"Alice": "subject", "Ana": "object"}),
        ("Diana is a nurse", {"Alice": "subject"}),
    ],
)
def test_a_new_text_names_whom_it_still_says(text: str, named: dict[str, str]) -> None:
    old = linked((USER, "subject"), (ANA, "object"), relations=[MARRIED])
    found, names = carried(event_of(corrected(text, OLD)), old)
    assert roles(found, names) == named
    (relations,) = names.relations.values()
    assert [one.key for one in relations] == [(USER.entity_id, "spouse", ANA.entity_id)] * ("Ana" in named)


def test_a_denial_states_nothing_and_an_end_goes_over_with_its_time() -> None:
    ended_at = START_TIME + timedelta(days=1)
    over = replace(MARRIED, strength=None, ended_at=ended_at)
    for known, ends in ((MARRIED, []), (over, [ended_at])):
        old = linked((USER, "subject"), (ANA, "object"), relations=[known])
        _, names = carried(event_of(corrected("Ana is not Alice's wife", OLD, action_hint="retract")), old)
        (relations,) = names.relations.values()
        assert [one.ended_at for one in relations] == ends


def test_a_subject_goes_over_with_a_source_of_the_same_subject() -> None:
    toms = [known_entity("Tom"), known_entity("Tom Miller", "Tom")]
    old = linked((toms[1], "subject"), subject="Tom")
    event = event_of(corrected("Tom sails", OLD, subject="Tom"))
    found, names = carried(event, old, known=(USER, *toms))
    assert roles(found, names) == {"Tom Miller": "subject"}


@pytest.mark.parametrize("draft", [merged, pending])
def test_a_merged_text_names_whom_its_parts_named(draft: Callable[..., Draft]) -> None:
    parts = [linked((USER, "subject"), (ANA, "object")), linked((USER, "subject"), (BEN, "object"), fact_id=OTHER)]
    fields = {} if draft is merged else {"action": "merge"}
    found, names = carried(event_of(draft("Alice met Ana", OLD, OTHER, **fields)), *parts)
    assert roles(found, names) == {"Alice": "subject", "Ana": "object"}
    found, names = carried(event_of(draft("They met", OLD, OTHER, **fields)), *parts)
    assert roles(found, names) == {"Alice": "subject", "Ana": "object", "Ben": "object"}


def test_what_a_turn_replaces_is_none_of_its_parts() -> None:
    found, names = carried(event_of(replaced("Ana sails", OLD)), linked((USER, "subject"), (BEN, "object")))
    assert roles(found, names) == {"Alice": "subject"}


def test_a_promoted_fact_names_its_own_and_is_called_by_what_it_says() -> None:
    old = linked((USER, "subject"), (ANA, "object"), relations=[MARRIED])
    found, names = carried(promoted("My wife sings"), old, known=())
    assert [(one.name, sorted(alias.kind for alias in one.aliases)) for one in found.registry] == [
        ("Alice", ["name", "user"]),
        ("my wife", ["tie"]),
    ]
    (relations,) = names.relations.values()
    user, wife = found.registry
    assert [one.key for one in relations] == [(user.entity_id, "spouse", wife.entity_id)]


def test_two_of_another_scope_who_are_one_here_are_nothing_to_each_other() -> None:
    friend = StoredRelation(
        subject_id=ANA.entity_id,
        predicate="friend",
        object_id=BEN.entity_id,
        inverse="friend",
        strength="strong",
        ended_at=None,
    )
    old = linked((ANA, "subject"), (BEN, "object"), relations=[friend])
    here = known_entity("Ana", "Ben")
    _, names = carried(promoted("Ana met Ben"), old, known=(USER, here))
    ((links,), (relations,)) = names.links.values(), names.relations.values()
    assert ([link.entity_id for link in links], relations) == ([here.entity_id], ())


def test_a_promoted_name_is_found_by_a_tie_that_is_known_here() -> None:
    here = known_entity(tie_alias("wife", "my wife", USER.entity_id))
    found, names = carried(promoted("Ana sings"), linked((USER, "subject"), (ANA, "object")), known=(USER, here))
    (links,) = names.links.values()
    assert links[-1].entity_id == here.entity_id
    assert [one.alias.text for one in found.resolver.added] == ["Ana"]


def test_ties_that_go_in_a_circle_end() -> None:
    one, other = known_entity("Uma"), known_entity("Ugo")
    ring = [
        one.model_copy(update={"aliases": (*one.aliases, tie(other))}),
        other.model_copy(update={"aliases": (*other.aliases, tie(one))}),
    ]
    found, names = carried(promoted("Uma met Ugo"), linked((USER, "subject"), *((who, "object") for who in ring)))
    assert set(roles(found, names)) == {"Alice", "Uma", "Ugo"}


def tie(owner: KnownEntity) -> Alias:
    return tie_alias("friend", f"{owner.name}'s friend", owner.entity_id)


def said(text: str, *names: str, subject: str | None = None, predicate: str | None = None) -> ExtractedFact:
    relations = (relation("Alice", predicate, names[0]),) if predicate else ()
    return fact_naming(*names, text=text, subject=subject, relations=relations)


@pytest.mark.parametrize(
    ("fact", "known", "told"),
    [
        (said("I met Ana", "Ana"), (USER, ANA), {}),
        (said("I met Ana", "Ana", predicate="friend"), (USER, ANA), {"Ana": "object"}),
        (said("I met Ana and Ben", "Ana", "Ben"), (USER, ANA, BEN), {"Ben": "object"}),
        (said("I met Ana Maria", "Ana Maria"), (USER, ANA), {"Ana": "object"}),  # a name of hers that is new
        (said("I met Ana", "Ana", predicate="friend"), (USER, known_entity("Anastasia"), ANA), {"Ana": "object"}),
        (said("Ben met Ana", "Ana", subject="Ben"), (USER, ANA, BEN), {}),  # of another one
    ],
)
def test_a_repetition_tells_what_the_known_fact_does_not(
    fact: ExtractedFact, known: Sequence[KnownEntity], told: dict[str, str]
) -> None:
    event = event_of(confirmed(OLD, fact.text))
    found, names = carried(event, linked((USER, "subject"), (ANA, "object")), known=known, facts=[fact])
    assert roles(found, names) == told


def test_a_name_of_a_repetition_that_may_be_one_of_the_fact_says_nothing() -> None:
    toms = [known_entity("Tom", tie(ANA)), known_entity("Tom", tie(BEN)).model_copy(update={"entity_id": UUID(int=8)})]
    event = event_of(confirmed(OLD, "I met Tom"))
    known_fact = linked((USER, "subject"), (toms[0], "object"))
    fact = said("I met Tom", "Tom", predicate="friend")
    found, names = carried(event, known_fact, known=(USER, ANA, BEN, *toms), facts=[fact])
    assert found.new
    assert (roles(found, names), *names.relations.values()) == ({}, ())


def test_known_names_are_looked_for_only_where_nobody_read_the_text_and_a_bounded_number_is_linked() -> None:
    for reads_texts in (False, True):
        found, names = carried(event_of(added("Ben called")), reads_texts=reads_texts)
        assert roles(found, names) == {"Alice": "subject"} | ({"Ben": "mention"} if reads_texts else {})
    many = [known_entity(f"Person{chr(97 + number // 20)}{chr(97 + number % 20)}") for number in range(60)]
    text = " ".join(one.name for one in many) + " and nobody else" * 5000
    _, names = carried(event_of(added(text)), known=(USER, *many), reads_texts=True)
    assert [len(links) for links in names.links.values()] == [MAX_LINKS]
