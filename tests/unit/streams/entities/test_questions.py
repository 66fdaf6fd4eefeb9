"""The step `model`: which names are in doubt, and what an answer makes of them. In doubt a name is of a new entity."""

from dataclasses import replace
from uuid import UUID

import pytest

from mnemolog.schemas.entities import EntityLink, EntityType, KnownEntity, NamedEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.questions import (
    MAX_COMPARED,
    MAX_NAMES,
    MAX_TWINS,
    doubtful_names,
    without_decided,
)
from mnemolog.streams.entities.resolver import NameContext
from tests.support.builders.entities import fact_naming
from tests.support.builders.name_choices import Choose, choose_called, choose_nobody
from tests.support.harnesses.entity_talk import EntityTalk


def known_so_far(*names: str, kind: EntityType = "person") -> EntityTalk:
    """What is known after each of these names was said, in doubt of nobody who is known."""
    talk = EntityTalk()
    for name in names:
        talk.say(name, kind=kind)
    return talk


def choose(place: int) -> Choose:
    """The possible twin at a place of their list."""
    return lambda name: name.twins[place]


def linked(talk: EntityTalk, name: str, *, kind: EntityType = "person") -> tuple[KnownEntity, EntityLink]:
    """Whom a name means that is said now, and its link."""
    link = talk.say(name, kind=kind)[-1]
    return talk.known[link.entity_id], link


def said(*names: str, subject: str | None = None, kind: EntityType = "person") -> ExtractedFact:
    return fact_naming(*names, text=f"Something about {subject} and {', '.join(names)}.", subject=subject, kind=kind)


def found_in(talk: EntityTalk, *facts: ExtractedFact) -> TurnEntities:
    """The entities of a turn, before anybody is asked about them."""
    context = NameContext(owner="default/alice", source_id="now")
    return TurnEntities.of_facts(facts, talk.looked_up(facts, context), context)


@pytest.mark.parametrize(
    ("known", "name", "called"),
    [
        (["Tom from work", "my brother Tom"], "Tom", "Tom from work"),
        (["Ana Keller", "Ana Schmidt"], "Ana", "Ana Schmidt"),
        (["Robert Hill", "Robert Frost"], "Bob", "Robert Frost"),
        (["Carl"], "Carla", "Carl"),
        (["Tom from work"], "Tom from the gym", "Tom from work"),
        (["Tom Miller from work"], "my brother Tom", "Tom Miller from work"),
        (["Peter Thomson"], "Peter Thompson", "Peter Thomson"),
        (["Elizabeth", "Elisabeth"], "Lisa", "Elisabeth"),
        (["my brother Tom", "my brother Ben"], "my brother", "my brother Ben"),
    ],
)
def test_an_answer_is_the_entity_that_the_name_means(known: list[str], name: str, called: str) -> None:
    talk = known_so_far(*known)
    before = len(talk.known)
    talk.choose = choose_called(called)
    entity, link = linked(talk, name)
    assert called in {alias.text for alias in entity.aliases} | {entity.name}
    assert (link.step, link.reason) == ("model", "as the test says")
    assert len(talk.known) == before
    assert set(link.compared) == {one.entity_id for one in talk.asked[0].twins} - {entity.entity_id}


@pytest.mark.parametrize(
    ("known", "name"), [(["Tom from work", "my brother Tom"], "Tom"), (["Carl"], "Carla"), (["Ana K", "Ana S"], "Ana")]
)
def test_where_nobody_can_tell_it_is_a_new_one_with_possible_twins(known: list[str], name: str) -> None:
    talk = known_so_far(*known)
    entity, link = linked(talk, name)
    assert link.step == "new"
    assert len(entity.possible_twins) == len(known) == len(talk.asked[0].twins)


@pytest.mark.parametrize(
    ("known", "name", "kind"),
    [
        (["Ana"], "Ana", "person"),
        (["Ana"], "Ana Keller", "person"),
        (["Robert"], "Bob", "person"),
        (["my wife Ana"], "my wife", "person"),
        (["Ana"], "Zoe", "person"),
        (["Sam"], "another Sam", "person"),
        (["York"], "Yorkshire", "place"),
    ],
)
def test_who_is_found_by_a_rule_or_is_nobody_known_is_not_asked_about(
    known: list[str], name: str, kind: EntityType
) -> None:
    talk = known_so_far(*known, kind=kind)
    linked(talk, name, kind=kind)
    assert talk.asked == ()


def test_a_name_that_only_another_new_one_may_have_is_not_asked_about() -> None:
    talk = known_so_far("Ana Keller", "Ana Schmidt")
    (name,) = doubtful_names(found_in(talk, said("Carl", "Carla", "Ana")))
    assert name.name == "Ana"


def test_a_name_of_one_is_an_alias_from_then_on_and_one_that_several_may_have_stays_in_doubt() -> None:
    talk = known_so_far("Carl")
    talk.choose = choose(0)
    linked(talk, "Carla")
    assert linked(talk, "Carla")[1].step == "alias"
    assert talk.asked == ()
    talk = known_so_far("Tom from work", "my brother Tom")
    talk.choose = choose_called("my brother Tom")
    brother, _ = linked(talk, "Tom")
    assert {alias.text for alias in brother.aliases} == {"Tom", "my brother Tom"}
    talk.choose = choose_called("Tom from work")
    colleague, link = linked(talk, "Tom")
    assert ({alias.text for alias in colleague.aliases}, link.step) == ({"Tom from work"}, "model")


def test_within_a_turn_the_name_is_that_of_who_was_meant() -> None:
    talk = known_so_far("Ana Keller", "Ana Schmidt")
    talk.choose = choose_called("Ana Schmidt")
    first, second, third = talk.tell(said("Ana"), said("my sister Ana"), said("ana"))
    schmidt = talk.entity("Ana Schmidt").entity_id
    assert [links[-1].entity_id for links in (first, second, third)] == [schmidt] * 3
    assert [links[-1].step for links in (first, second, third)] == ["model", "alias", "model"]
    assert {alias.text for alias in talk.known[schmidt].aliases} == {"Ana Schmidt", "my sister Ana"}


def test_an_answer_about_a_person_is_none_about_a_place_of_that_name() -> None:
    talk = known_so_far("Paris Hill", "Paris Stone")
    talk.choose = choose(0)
    person, place = (NamedEntity(name="Paris", type=kind, role="object") for kind in ("person", "place"))
    fact = ExtractedFact(text="It.", excerpt="it", search_text="", entities=(person, place))
    links = talk.tell(fact)[0][1:]
    assert [(talk.known[link.entity_id].type, link.step) for link in links] == [("person", "model"), ("place", "new")]


def test_what_a_model_says_proposes_no_merge() -> None:
    talk = known_so_far("Ana from work", "Ana from the gym", "my wife")
    found = found_in(talk, said("my wife Ana"))
    talk.choose = choose(0)
    answered = found.answered([talk.answer(name) for name in doubtful_names(found)])
    assert answered is not found
    assert answered.resolver.proposed == {}


def test_the_facts_of_the_turn_that_name_it_are_those_that_are_shown() -> None:
    talk = known_so_far("Ana Keller", "Ana Schmidt")
    facts = (said("Bern", kind="place"), said(subject="Ana"), said("Ana"))
    (name,) = doubtful_names(found_in(talk, *facts))
    assert (name.facts, name.about) == (facts[1:], facts[1:2])


def test_two_whom_a_person_has_told_apart_are_not_asked_about() -> None:
    def told_apart(one: UUID, other: UUID) -> set[tuple[UUID, UUID]]:
        return {(other, one)}

    talk = known_so_far("Tom Hill", "Tom Stone", "Tom Wood", "my wife Wilma", "Ana")
    tom, ana = doubtful_names(found_in(talk, said("Tom"), said("my wife Anna")))
    hill_and_stone = told_apart(*(twin.entity_id for twin in tom.twins[:2]))
    (asked,) = without_decided([tom], hill_and_stone)
    assert [twin.name for twin in asked.twins] == ["Tom Wood"]
    assert without_decided([asked], hill_and_stone) == (asked,)
    assert without_decided([replace(tom, twins=tom.twins[:2])], hill_and_stone) == ()
    (wife,) = ana.tied  # who was told apart from my wife is not asked about as my wife
    assert [twin.name for twin in ana.twins] == ["Ana"]
    assert without_decided([ana], {(ana.twins[0].entity_id, wife)}) == ()


def test_who_was_not_asked_about_may_be_meant_all_the_same() -> None:
    talk = known_so_far("Tom Hill", "Tom Stone", "Tom Wood")
    hill, stone, wood = (talk.entity(name).entity_id for name in ("Tom Hill", "Tom Stone", "Tom Wood"))
    talk.told_apart, talk.choose = [(hill, stone)], choose(0)
    entity, link = linked(talk, "Tom")
    assert (link.entity_id, set(link.compared)) == (wood, {hill, stone})
    assert [alias.text for alias in entity.aliases] == ["Tom Wood"]


def test_names_and_possible_twins_are_bounded() -> None:
    surnames = [f"Tom S{chr(97 + place)}{chr(97 + place)}l" for place in range(26)]
    talk = known_so_far(*surnames)
    (name,) = doubtful_names(found_in(talk, said("Tom")))
    assert len(name.twins) == MAX_COMPARED
    (asked,) = without_decided([name], ())
    assert len(asked.twins) == MAX_TWINS


def test_of_many_names_ten_are_asked_about() -> None:
    first = [f"{one}{other}nora" for one in "BCD" for other in "aeiou"]
    talk = EntityTalk()
    talk.say(*first)
    found = found_in(talk, said(*(name[:-1] for name in first)))  # a letter is missing: who is meant is in doubt
    assert len(found.resolver.doubtful) > MAX_NAMES
    assert len(doubtful_names(found)) == MAX_NAMES


@pytest.mark.parametrize("answer", [choose(0), choose_nobody])
def test_answers_change_nothing_of_the_other_names(answer: Choose) -> None:
    talk = known_so_far("Tom Hill", "Tom Stone", "Zoe")
    talk.choose = answer
    links = talk.say("Zoe", "Tom", "Bea")
    named = [(talk.known[link.entity_id].name, link.step) for link in links]
    assert named[1] == ("Zoe", "exact")
    assert named[3] == ("Bea", "new")
