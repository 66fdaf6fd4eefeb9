"""Relations that a fact states, and two names of one: the free one is added, two who are known wait for a person."""

from uuid import UUID

import pytest

from mnemolog.schemas.entities import (
    SAME_AS,
    AnsweredName,
    EntityType,
    KnownEntity,
    NamedRelation,
    Strength,
)
from mnemolog.schemas.entity_events import RelationEnded, RelationStated
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.linker import entity_events
from mnemolog.streams.entities.links import FactLinks, TurnEntities
from mnemolog.streams.entities.resolver import NameContext
from tests.support.builders.commits import added, commit
from tests.support.builders.entities import fact_naming, known_entity, relation, spoken_alias

FINI, JOSEFINE = "Fini", "Josefine"
BOTH = relation(JOSEFINE, SAME_AS, FINI)


def known(number: int, name: str, kind: EntityType = "person", *, is_hidden: bool = False) -> KnownEntity:
    return known_entity(name, number=number, kind=kind, hidden=(spoken_alias(name),) if is_hidden else ())


def found_in(fact: ExtractedFact, *entities: KnownEntity) -> TurnEntities:
    return TurnEntities.of_facts([fact], entities, NameContext(owner="default/alice", source_id="t1"))


def named(*names: str, same: NamedRelation = BOTH) -> ExtractedFact:
    return fact_naming(*names, excerpt="said so", relations=(same,))


def test_another_name_that_nobody_has_is_added_and_somebody_is_proposed_to_be_merged() -> None:
    found = found_in(named(JOSEFINE), known(1, JOSEFINE))
    assert [(one.entity_id, one.alias.text) for one in found.resolver.added] == [(UUID(int=1), FINI)]
    assert not found.resolver.proposed
    found = found_in(named(JOSEFINE), known(1, JOSEFINE), known(2, FINI))
    assert not found.resolver.added
    (merge,) = found.resolver.proposed.values()
    assert (merge.merged.name, merge.into.name, merge.words, merge.is_stated) == (FINI, JOSEFINE, "said so", True)


def test_another_name_that_is_of_something_else_stays_its_name() -> None:
    found = found_in(named(JOSEFINE), known(1, JOSEFINE), known(2, FINI, "place"))
    assert not found.resolver.added
    assert not found.resolver.proposed
    assert [(one.name, one.reason, one.entity_id) for one in found.resolver.unlinked] == [
        (FINI, "name_taken", UUID(int=2))
    ]


@pytest.mark.parametrize(("bearer", "hidden"), [(JOSEFINE, FINI), (FINI, JOSEFINE)])
def test_a_name_that_readers_do_not_see_is_nobodys(bearer: str, hidden: str) -> None:
    found = found_in(named(), known(1, bearer), known(2, hidden, is_hidden=True))
    assert [(one.entity_id, one.alias.text) for one in found.resolver.added] == [(UUID(int=1), hidden)]
    assert not found.resolver.proposed
    assert not found.resolver.unlinked


ANA = known(5, "Ana")
AT_WORK = known_entity("Ana from work", number=6)


@pytest.mark.parametrize("pair", [("Ana", "Bee"), ("Bee", "Ana")])
def test_of_several_who_may_be_meant_nobody_gets_the_other_name(pair: tuple[str, str]) -> None:
    """Ana alone is whom "Ana" means; but the words may be of the other one: Bee is somebody who may be either."""
    same = relation(pair[0], SAME_AS, pair[1])
    found = found_in(named(*pair, same=same), ANA, AT_WORK)
    assert (found.resolver.added, found.resolver.proposed) == ([], {})
    (bee,) = (entity for entity, _ in found.new.values() if entity.name == "Bee")
    assert bee.possible_twins == (ANA.entity_id, AT_WORK.entity_id)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Bee"]
    assert {link.entity_id for link in found.links} >= {ANA.entity_id, bee.entity_id}
    assert [(one.name, one.reason, one.compared) for one in found.resolver.unlinked] == [
        ("Bee", "in_doubt", bee.possible_twins)
    ]


def test_a_model_that_was_asked_links_the_other_name_and_gives_it_to_nobody() -> None:
    same = relation("Ana", SAME_AS, "Bee")
    found = found_in(named("Ana", "Bee", same=same), ANA, AT_WORK)
    told = AnsweredName(
        name="Bee", twins=(ANA.entity_id, AT_WORK.entity_id), entity_id=AT_WORK.entity_id, reason="of work"
    )
    answered = found.answered([told])
    assert AT_WORK.entity_id in {link.entity_id for link in answered.links if link.name == "Bee"}
    assert (answered.resolver.added, answered.resolver.unlinked) == ([], [])


KELLER, SCHMIDT = known(3, "Ana Keller"), known(4, "Ana Schmidt")
MEANT = AnsweredName(name="Ana", twins=(KELLER.entity_id, SCHMIDT.entity_id), entity_id=KELLER.entity_id, reason="told")


def test_the_other_name_is_of_whom_a_model_says_that_the_name_means() -> None:
    same = relation("Ana", SAME_AS, "Bee")
    found = found_in(named("Ana", "Bee", same=same), KELLER, SCHMIDT)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Ana"]
    answered = found.answered([MEANT])
    assert [(one.entity_id, one.alias.text) for one in answered.resolver.added] == [(KELLER.entity_id, "Bee")]
    assert [entity.name for entity, _ in answered.new.values()] == ["the user"]


def test_what_a_turn_tells_is_proposed_whatever_a_model_says_of_other_names() -> None:
    found = found_in(named("Ana", JOSEFINE), known(1, JOSEFINE), known(2, FINI), KELLER, SCHMIDT)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Ana"]
    assert found.answered([MEANT]).resolver.proposed.keys() == {(UUID(int=2), UUID(int=1))}


PASSING = fact_naming(
    "Acme",
    subject="my brother Tom",
    action_hint="retract",
    relations=(relation("Alice", "brother", "Tom", "medium"), relation("Tom", "employer", "Acme")),
)


@pytest.mark.parametrize(
    ("fact", "stated"),
    [
        pytest.param(fact_naming("my son Tom"), [("Tom", "parent", "Alice", "medium")], id="a tie of the inverse"),
        pytest.param(fact_naming("my father Tom"), [("Alice", "parent", "Tom", "medium")], id="a tie in passing"),
        pytest.param(fact_naming("my nephew Tom"), [("Tom", "aunt_or_uncle", "Alice", "medium")], id="a tie both ways"),
        pytest.param(fact_naming("Tom's wife"), [("Tom", "spouse", "Tom's wife", "medium")], id="a tie to another"),
        pytest.param(
            fact_naming("Tom", relations=(relation("the user", "mother_of", "Tom"),)),
            [("Tom", "parent", "Alice", "strong")],
            id="a stated one of the inverse predicate",
        ),
        pytest.param(
            fact_naming("Tom", relations=(relation("Tom", "brother_of", "Alice"),)),
            [("Alice", "sibling", "Tom", "strong")],
            id="the predicate of the registry",
        ),
        pytest.param(
            fact_naming("Tom", relations=(relation("Tom", "mentored_by", "Alice"),)),
            [("Tom", "mentored_by", "Alice", "strong")],
            id="a predicate of one's own",
        ),
        pytest.param(
            fact_naming("Tom", relations=(relation("Alice", "friend", "Tom"),), certainty="weak"),
            [("Alice", "friend", "Tom", "weak")],
            id="a doubtful fact",
        ),
        pytest.param(
            fact_naming("Tom", relations=(relation("Alice", "spouse", "Eva Meier"),)),
            [],
            id="somebody not named",
        ),
        pytest.param(
            PASSING,
            [("Alice", "sibling", "Tom", "medium"), ("Tom", "employer", "Acme", None)],
            id="a retraction ends nothing that it mentions in passing",
        ),
    ],
)
def test_a_fact_states_relations(fact: ExtractedFact, stated: list[tuple[str, str, str, Strength | None]]) -> None:
    assert relations_of(fact, "Alice") == stated


def test_another_speaker_has_relations_of_their_own() -> None:
    assert relations_of(fact_naming("my wife"), "Bob") == [("Bob", "spouse", "my wife", "medium")]


def relations_of(fact: ExtractedFact, speaker: str) -> list[tuple[str, str, str, Strength | None]]:
    context = NameContext(owner="default/alice", source_id="t1", speaker=speaker, user_names=("Alice",))
    found = TurnEntities.of_facts([fact], (), context)
    event = added(fact.text, excerpt=fact.excerpt, subject=fact.subject)
    made = entity_events(FactLinks(found), commit("t1", event).events)
    relations = [one for one in made if isinstance(one, RelationStated | RelationEnded)]
    return [
        (
            found.registry[one.subject_id].name,
            one.predicate,
            found.registry[one.object_id].name,
            one.strength if isinstance(one, RelationStated) else None,
        )
        for one in relations
    ]
