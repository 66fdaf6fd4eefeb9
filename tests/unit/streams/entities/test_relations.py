"""Two names that a turn tells to be of one: the free one is added, and two who are known wait for a person."""

from uuid import UUID

import pytest

from mnemolog.schemas.entities import SAME_AS, Alias, AnsweredName, EntityType, KnownEntity, NamedEntity, NamedRelation
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.resolver import NameContext

FINI, JOSEFINE = "Fini", "Josefine"
BOTH = NamedRelation(subject=JOSEFINE, predicate=SAME_AS, object=FINI)


def known(number: int, name: str, kind: EntityType = "person", *, is_hidden: bool = False) -> KnownEntity:
    alias = Alias(text=name, key=name.casefold())
    hidden = (alias,) if is_hidden else ()
    return KnownEntity(entity_id=UUID(int=number), name=name, type=kind, aliases=(alias,), hidden=hidden)


def found_in(fact: ExtractedFact, *entities: KnownEntity) -> TurnEntities:
    return TurnEntities.of_facts([fact], entities, NameContext(owner="default/alice", source_id="t1"))


def named(*names: str, same: NamedRelation = BOTH) -> ExtractedFact:
    people = tuple(NamedEntity(name=name, type="person", role="object") for name in names)
    return ExtractedFact(text="It.", excerpt="said so", search_text="", entities=people, relations=(same,))


def test_another_name_that_nobody_has_is_added() -> None:
    found = found_in(named(JOSEFINE), known(1, JOSEFINE))
    assert [(one.entity_id, one.alias.text) for one in found.resolver.added] == [(UUID(int=1), FINI)]
    assert not found.resolver.proposed


def test_another_name_that_is_somebody_is_proposed_to_be_merged() -> None:
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
AT_WORK = KnownEntity(
    entity_id=UUID(int=6), name="Ana", type="person", aliases=(Alias(text="Ana from work", key="ana (work)"),)
)


@pytest.mark.parametrize("pair", [("Ana", "Bee"), ("Bee", "Ana")])
def test_of_several_who_may_be_meant_nobody_gets_the_other_name(pair: tuple[str, str]) -> None:
    """Ana alone is whom "Ana" means; but the words may be of the other one: Bee is somebody who may be either."""
    same = NamedRelation(subject=pair[0], predicate=SAME_AS, object=pair[1])
    found = found_in(named(*pair).model_copy(update={"relations": (same,)}), ANA, AT_WORK)
    assert (found.resolver.added, found.resolver.proposed) == ([], {})
    (bee,) = (entity for entity, _ in found.new.values() if entity.name == "Bee")
    assert bee.possible_twins == (ANA.entity_id, AT_WORK.entity_id)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Bee"]
    assert {link.entity_id for link in found.links} >= {ANA.entity_id, bee.entity_id}
    assert [(one.name, one.reason, one.compared) for one in found.resolver.unlinked] == [
        ("Bee", "in_doubt", bee.possible_twins)
    ]


def test_a_model_that_was_asked_links_the_other_name_and_gives_it_to_nobody() -> None:
    same = NamedRelation(subject="Ana", predicate=SAME_AS, object="Bee")
    found = found_in(named("Ana", "Bee").model_copy(update={"relations": (same,)}), ANA, AT_WORK)
    told = AnsweredName(
        name="Bee", twins=(ANA.entity_id, AT_WORK.entity_id), entity_id=AT_WORK.entity_id, reason="of work"
    )
    answered = found.answered([told])
    assert AT_WORK.entity_id in {link.entity_id for link in answered.links if link.name == "Bee"}
    assert (answered.resolver.added, answered.resolver.unlinked) == ([], [])


KELLER, SCHMIDT = known(3, "Ana Keller"), known(4, "Ana Schmidt")
MEANT = AnsweredName(name="Ana", twins=(KELLER.entity_id, SCHMIDT.entity_id), entity_id=KELLER.entity_id, reason="told")


def test_the_other_name_is_of_whom_a_model_says_that_the_name_means() -> None:
    same = NamedRelation(subject="Ana", predicate=SAME_AS, object="Bee")
    found = found_in(named("Ana", "Bee", same=same), KELLER, SCHMIDT)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Ana"]
    answered = found.answered([MEANT])
    assert [(one.entity_id, one.alias.text) for one in answered.resolver.added] == [(KELLER.entity_id, "Bee")]
    assert [entity.name for entity, _ in answered.new.values()] == ["the user"]


def test_what_a_turn_tells_is_proposed_whatever_a_model_says_of_other_names() -> None:
    found = found_in(named("Ana", JOSEFINE), known(1, JOSEFINE), known(2, FINI), KELLER, SCHMIDT)
    assert [name.text for name in found.resolver.doubtful.values()] == ["Ana"]
    assert found.answered([MEANT]).resolver.proposed.keys() == {(UUID(int=2), UUID(int=1))}
