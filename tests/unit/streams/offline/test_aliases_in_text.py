"""That somebody is called something else as well is found in plain forms only; it gives one entity two names."""

import pytest

from mnemolog.schemas.entities import SAME_AS
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.offline.names_in_text import aliases_in, aliases_told, names_heard, sentence_entities
from tests.support.harnesses.entity_talk import EntityTalk


@pytest.mark.parametrize(
    ("said", "bearer", "alias"),
    [
        ("Everyone calls Margarethe Gretel, by the way.", "Margarethe", "Gretel"),
        ("Everybody just calls Wanda Petrov Wanderlust.", "Wanda Petrov", "Wanderlust"),
        ('Everybody calls my uncle Bartholomew "Barty".', "my uncle Bartholomew", "Barty"),
        ("Jonathan goes by Johnno.", "Jonathan", "Johnno"),
        ("My cousin Augustus, also known as Gus, lives in Leeds.", "My cousin Augustus", "Gus"),
        ("Wanda Petrov aka Wanderlust runs the club.", "Wanda Petrov", "Wanderlust"),
        ("Gus is short for Augustus.", "Augustus", "Gus"),
        ("Margarethe is usually called Gretel by everyone.", "Margarethe", "Gretel"),
        ("Augustus's nickname is Gus!", "Augustus", "Gus"),
        ("Wanda Petrov is now called Wanda Iwanow.", "Wanda Petrov", "Wanda Iwanow"),
    ],
)
def test_another_name_is_found(said: str, bearer: str, alias: str) -> None:
    assert {(one.bearer, one.alias) for one in aliases_in(said)} == {(bearer, alias)}


@pytest.mark.parametrize(
    "said",
    [
        "Everyone calls her late.",
        "Everyone calls Wanda Petrov for help.",
        "They called Wanda.",
        "My friends call Wanda Petrov on Sundays.",
        "I met Ana, called Ben and went home.",
        "Nobody calls Margarethe Gretel.",
        "Margarethe is not called Gretel.",
        "Margarethe is called Gretel in the film.",
        "Everyone calls Margarethe Grandma.",
        "Jonathan goes by bus.",
        "Jonathan goes by Monday.",
        "She is also called Gretel.",
        "I like Marc, dit Paul.",
        "The office is called Alpha.",
        "Bob and Tom are called Smith.",
        "Alle nennen Margarethe nur Oma.",
    ],
)
def test_nothing_else_is_another_name(said: str) -> None:
    assert list(aliases_in(said)) == []


def test_a_sentence_names_the_bearer_and_tells_both_names() -> None:
    said = "Everyone calls my uncle Bartholomew Barty."
    assert [one.name for one in sentence_entities(said, "Alice")] == ["Alice's uncle Bartholomew"]
    (same,) = aliases_told(said, "Alice")
    assert (same.subject, same.predicate, same.object) == ("Alice's uncle Bartholomew", SAME_AS, "Barty")
    assert names_heard(["Everyone calls Margarethe Gretel."]) == {"margarethe", "gretel"}


def told(talk: EntityTalk, said: str) -> None:
    entities, same = sentence_entities(said, "Alice"), aliases_told(said, "Alice")
    fact = ExtractedFact(text=said, excerpt=said, search_text="", entities=entities, relations=same)
    talk.tell(fact, speaker="Alice")


def test_both_names_are_of_one_entity_whose_tie_stays() -> None:
    talk = EntityTalk(user_names=("Alice",))
    told(talk, "My aunt Margarethe bakes.")
    told(talk, "Everyone calls Margarethe Gretel.")
    assert talk.entity("Margarethe").keys("name") == {"margarethe", "gretel"}
    (_, link) = talk.say("Gretel")
    assert (link.entity_id, link.step) == (talk.entity("Margarethe").entity_id, "alias")


def test_somebody_new_has_both_names() -> None:
    talk = EntityTalk(user_names=("Alice",))
    told(talk, "My uncle Bartholomew, nicknamed Barty, sings.")
    bartholomew = talk.entity("Bartholomew")
    assert bartholomew.keys("name") == {"bartholomew", "barty"}
    assert len(bartholomew.keys("tie")) == 1


def test_the_name_of_somebody_who_is_known_is_not_taken_away() -> None:
    talk = EntityTalk(user_names=("Alice",))
    told(talk, "I met Gretel from work.")
    told(talk, "My aunt Margarethe bakes.")
    told(talk, "Everyone calls Margarethe Gretel.")
    assert talk.entity("Margarethe").keys("name") == {"margarethe"}
