"""What new facts take over from the facts that they are made of, and what a repetition says besides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from mnemolog.schemas.entities import MAX_LINKS, Alias, KnownEntity, Role
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import LinkedFact, StoredRelation
from mnemolog.streams.entities.links import FactLinks, TurnEntities, said_again
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
    known_facts = {one.fact_id: one for one in sources}
    names = FactLinks(found, known_facts, reads_texts=reads_texts)
    names.read([event])
    return found, names


def roles(found: TurnEntities, names: FactLinks) -> dict[str, str]:
    (links,) = names.links.values()
    return {found.registry[link.entity_id].name: link.role for link in links}


def event_of(draft: Draft) -> MemoryEvent:
    (event,) = commit("t1", draft).events
    return event


def promoted(
    text: str, original: LinkedFact, known: Sequence[KnownEntity] = (), subject: str | None = None
) -> tuple[TurnEntities, FactLinks]:
    """The entities of a fact of another scope that is said again where others are `known`."""
    fact, in_run = said_again(fact_naming(text=text, subject=subject), original)
    found = TurnEntities.of_facts([fact], known, replace(CONTEXT, in_run=in_run))
    names = FactLinks(found)
    names.read([event_of(added(text, subject=fact.subject))])
    return found, names


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
    found, names = promoted("My wife sings", old)
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
    old = linked((ANA, "subject"), (BEN, "object"), subject="Ana", relations=[friend])
    here = known_entity("Ana", "Ben")
    _, names = promoted("Ana met Ben", old, [USER, here], subject="Ana")
    ((links,), (relations,)) = names.links.values(), names.relations.values()
    assert ([link.entity_id for link in links], relations) == ([here.entity_id], ())


BROTHER = known_entity("Tom", tie_alias("brother", "my brother", USER.entity_id))
WORK = known_entity("Tom from work")
WIFE = known_entity(tie_alias("wife", "my wife", USER.entity_id))
BOSS = known_entity("Eva", tie_alias("boss", "Tom's boss Eva", BROTHER.entity_id))


@pytest.mark.parametrize(
    ("text", "subject", "entity", "here", "meant"),
    [
        ("Ana sings", "Ana", ANA, WIFE, WIFE),
        ("Ana sings", "Ana", ANA, known_entity("Ana", number=5), known_entity("Ana", number=5)),
        ("Tom lives in Oslo", "Tom", BROTHER, WORK, None),
        ("Tom lives in Oslo", "Tom", WORK, BROTHER, None),
        ("Tom lives in Oslo", "Tom", WORK, WORK, WORK),
        ("Tom lives in Oslo", "Tom", BROTHER, BROTHER, BROTHER),
        ("Tom lives in Oslo", "Tom", BROTHER, known_entity(tie_alias("friend", "my friend Tom", USER.entity_id)), None),
        (
            "My brother lives in Oslo",
            "my brother",
            BROTHER,
            known_entity("Tom", number=6),
            known_entity("Tom", number=6),
        ),
        ("Tom's boss Eva sails", "Tom's boss Eva", BOSS, known_entity("Eva from work"), None),
        ("Alex sings", "Alex", known_entity("Alex", "Alexandra"), known_entity("Alexander"), None),
        ("Alex sings", "Alex", known_entity("Alex", "Alexandra"), known_entity("Alex", "Alexander"), None),
        ("Alex sings", "Alex", known_entity("Alex", "Alexandra"), known_entity("Alexandra"), known_entity("Alexandra")),
        ("Bee sings", "Bee", known_entity("Elizabeth", "Bee"), known_entity("Elizabeth"), known_entity("Elizabeth")),
        ("Ana sings", "Ana", known_entity("Ana Keller", "Ana"), known_entity("Ana Schmidt", "Ana"), None),
    ],
)
def test_a_promoted_fact_is_about_whom_all_that_is_known_there_means_here(
    text: str, subject: str, entity: KnownEntity, here: KnownEntity, meant: KnownEntity | None
) -> None:
    """What only tells the entity from its namesakes states no relation."""
    original = replace(
        linked((entity, "subject"), subject=subject), entities={USER.entity_id: USER, entity.entity_id: entity}
    )
    found, names = promoted(text, original, [USER, here], subject=subject)
    (links,) = names.links.values()
    assert ({link.entity_id for link in links} & {here.entity_id}) == ({meant.entity_id} if meant else set())
    assert [one for relations in names.relations.values() for one in relations] == []
    about = found.subject_of(said_again(fact_naming(text=text, subject=subject), original)[0])
    assert about == meant.entity_id if meant else about in found.new


def test_ties_that_go_in_a_circle_end() -> None:
    one, other = known_entity("Uma"), known_entity("Ugo")
    ring = [
        one.model_copy(update={"aliases": (*one.aliases, tie(other))}),
        other.model_copy(update={"aliases": (*other.aliases, tie(one))}),
    ]
    found, names = promoted("Uma met Ugo", linked((USER, "subject"), *((who, "object") for who in ring)))
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
        (said("I met Ana Keller", "Ana Keller"), (USER, ANA), {"Ana": "object"}),  # a name of hers that is new
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


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ("Tom sails", ["Tom"]),
        ("My brother Tom sails", ["Tom", "my brother"]),
        ("Tom, my brother, sails", ["Tom", "my brother"]),
        ("My brother sails", ["my brother"]),
        ("He sails", ["Tom"]),
    ],
)
def test_a_promoted_fact_tells_the_names_alone_that_it_says(text: str, aliases: list[str]) -> None:
    original = replace(
        linked((BROTHER, "subject"), subject="Tom"), entities={one.entity_id: one for one in (USER, BROTHER)}
    )
    found, _ = promoted(text, replace(original, subject=None), [USER])
    ((new, _),) = found.new.values()
    assert [alias.text for alias in new.aliases] == aliases
