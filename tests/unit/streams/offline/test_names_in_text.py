"""Names, ties, other names and relations in a sentence are found in the clear cases, and nowhere else."""

import pytest

from mnemolog.schemas.entities import MAX_NAME, SAME_AS
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.resolver import same_as_pairs
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.names_in_text import (
    aliases_in,
    aliases_told,
    ended_relations,
    names_heard,
    relations_of_others,
    sentence_entities,
    stated_in_text,
    value_entities,
    value_relations,
)
from tests.support.builders.prompts import turn, user
from tests.support.harnesses.entity_talk import EntityTalk


def found(said: str, subject: str | None = "Alice", *, before: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    entities = sentence_entities(said, subject, names_heard(before))
    return [(one.name, one.type, one.role) for one in entities]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        *(
            (said, [(f"Alice's {name}", "person", "object")])
            for said, name in (
                ("My brother Tom moved out.", "brother Tom"),
                ("My wife is Ana.", "wife Ana"),
                ("My boss is Tom Meyer and she sings.", "boss Tom Meyer"),
                ("Inka is my neighbour.", "neighbour Inka"),
                ("Inka, my boss, agreed.", "boss Inka"),
                ("He is my boss.", "boss"),
                ("Inka is no longer my boss.", "boss Inka"),
                ("Inka is not my boss.", "boss"),
                ("My neighbour is called Inka.", "neighbour Inka"),
                ("My dentist is Dr. Okafor.", "dentist Dr. Okafor"),
                ("my mother-in-law Eva visits", "mother-in-law Eva"),
            )
        ),
        *(
            (said, [(name, "other", "mention")])
            for said, name in (
                ("Tom called.", "Tom"),
                ("Inka Keller called.", "Inka Keller"),
                ("Visited Inka in hospital.", "Inka"),
                ("Congrats Liz, that is great.", "Liz"),
                ("I met another Tom at the gym.", "another Tom"),
            )
        ),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Inka Keller in Berlin.", [("Inka Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("I met Liz Keller.", [("Liz Keller", "person", "mention")]),
        ("I like Tom's car, and the Millers' too.", [("Tom", "other", "mention"), ("Millers", "other", "mention")]),
        ("Nick from the pub plays darts.", [("Nick from the pub", "person", "object")]),
        ("I moved to Berlin from my village.", [("Berlin", "place", "mention")]),
        ("I spoke to Mr. Novak today.", [("Mr. Novak", "person", "mention")]),
        ("My boss is German.", [("Alice's boss", "person", "object"), ("German", "other", "mention")]),
        ("Liz's brother Tom left.", [("Liz's brother Tom", "person", "object")]),
        (
            "My kids Leo and Kim are ill.",
            [("Leo", "person", "object"), ("Kim", "person", "object"), ("Alice's kids", "group", "object")],
        ),
        *((said, []) for said in ("Inka called.", "Dinner was late.", "I sail on Monday in May.")),
        ("Apart from meetings I had a day off.", []),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


@pytest.mark.parametrize(
    ("before", "said", "names"),
    [
        ("I met Inka Keller.", "Inka called.", ["Inka"]),
        ("My sister Alexandra is here.", "Alex called.", ["Alex"]),
        ("My sister Inka is here.", "Then she left. Inge called.", []),
        ("I met An in Ulm.", "An is feeling better.", ["An"]),  # a small word too: where it is or has something
        ("My friend Will called.", "Will has a cold.", ["Will"]),
        ("My friend Will called.", "Will be back soon.", []),
        ("I met Ana in Ulm.", "An is feeling better.", []),
        ("My friend May called.", "May is lovely.", []),
    ],
)
def test_a_name_that_was_said_before_may_begin_a_sentence(before: str, said: str, names: list[str]) -> None:
    assert found(said, before=(before,)) == [(name, "other", "mention") for name in names]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("home_city", "Bern", [("Bern", "place")]),
        ("employer", "Acme", [("Acme", "organisation")]),
        ("dog", "Rex", [("Alice's dog Rex", "animal")]),
        ("brother", "Tom", [("Alice's brother Tom", "person")]),
        ("allergy", "nuts", []),
        ("birthday", "14 June", []),
    ],
)
def test_the_value_of_a_key_may_be_a_name(key: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.name, one.type) for one in value_entities(key, value, "Alice")] == expected


def test_without_a_speaker_the_tie_is_as_it_was_said_and_what_is_too_long_is_no_name() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]
    assert found("My brother Tom met Inka.", "S" * 200) == [("Inka", "other", "mention")]
    assert found(f"I met {'A' * 300} and Inka.") == [("Inka", "other", "mention")]
    assert value_entities("dog", "R" * 300, "Alice") == value_entities("employer", "R" * 300, "Alice") == ()


@pytest.mark.parametrize(
    ("said", "bearer", "alias"),
    [
        ("Everyone calls Margarethe Gretel, by the way.", "Margarethe", "Gretel"),
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
        *("Everyone calls her late.", "Everyone calls Wanda Petrov for help.", "They called Wanda."),
        *("My friends call Wanda Petrov on Sundays.", "I met Ana, called Ben and went home.", "Jonathan goes by bus."),
        *("Nobody calls Margarethe Gretel.", "Margarethe is not called Gretel.", "She is also called Gretel."),
        *("Margarethe is called Gretel in the film.", "Everyone calls Margarethe Grandma.", "Jonathan goes by Monday."),
        *("I like Marc, dit Paul.", "The office is called Alpha.", "Bob and Tom are called Smith."),
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


TOO_LONG = "B" + "x" * MAX_NAME


def test_a_tie_is_over_where_its_words_were_said_before_and_not_where_it_is_of_somebody_else() -> None:
    said = "I met my wife Ana in Rome but she is no longer my wife."
    assert [(one.predicate, one.object) for one in ended_relations(said, None)] == [("wife", "my wife")]
    assert ended_relations("Ana is no longer my wife's boss.", "Alice") == ()


def test_what_is_too_long_is_in_no_relation() -> None:
    assert value_relations("employer", "Acme", TOO_LONG) == ()
    for subject in (TOO_LONG, "B" + "x" * (MAX_NAME - 5)):
        assert ended_relations("She is no longer my wife Ana.", subject) == ()


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom works at Rolls-Royce.", ("Alice's brother Tom", "employer", "Rolls-Royce")),
        ("My wife Ana Keller works at Bosch.", ("Alice's wife Ana Keller", "employer", "Bosch")),
        ("My sister works at Bosch in Ulm.", ("Alice's sister", "employer", "Bosch")),
        ("My aunt Eva lives in Leeds with her dog.", ("Alice's aunt Eva", "lives_in", "Leeds")),
        ("My band is called The Wet Socks.", ("Alice", "member_of", "The Wet Socks")),
    ],
)
def test_a_sentence_states_where_others_work_and_live_and_a_club(said: str, triple: tuple[str, str, str]) -> None:
    assert [(one.subject, one.predicate, one.object) for one in stated_in_text(said, "Alice")] == [triple]


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom quit his job at Acme.", ("Alice's brother Tom", "employer", "Acme")),
        ("My aunt no longer lives in Leeds.", ("Alice's aunt", "lives_in", "Leeds")),
    ],
)
def test_a_sentence_ends_where_others_worked_and_lived(said: str, triple: tuple[str, str, str]) -> None:
    (ended,) = relations_of_others(said, "Alice", ended=True)
    assert (ended.subject, ended.predicate, ended.object) == triple


@pytest.mark.parametrize(
    "said",
    [
        *("My sister works at night.", "My sister works at Christmas.", "My sister's husband works at Bosch."),
        *("My sister met a man who sings and works at Bosch.", "My aunt Eva lives in fear.", "My band is called off."),
        *("My aunt Eva lived in Leeds.", "My mother says my brother works at Bosch.", "My company is called Acme."),
        *("My brother doesn't work at Bosch.", "My brother no longer works at Bosch."),
    ],
)
def test_a_sentence_states_nothing_that_it_does_not_say(said: str) -> None:
    assert stated_in_text(said, "Alice") == ()


def last_of(*said: str) -> tuple[str | None, list[tuple[str, str]]]:
    """The subject of the last fact of Alice's, and which names it tells to be of one."""
    *_, fact = read_turn(turn(user(" ".join(said)), speaker="Alice"))[0]
    return fact.subject, list(same_as_pairs(fact))


@pytest.mark.parametrize(
    ("before", "said", "subject", "alias"),
    [
        ("My sister Beatrix is a vet.", "Everyone calls her Bee.", "Alice's sister Beatrix", "Bee"),
        ("My sister is a vet.", "We all call her Bee for short.", "Alice's sister", "Bee"),
        ("My uncle Bartholomew sings.", 'They just call him "Barty".', "Alice's uncle Bartholomew", "Barty"),
    ],
)
def test_who_is_meant_gets_the_name(before: str, said: str, subject: str, alias: str) -> None:
    assert last_of(before, said) == (subject, [(subject, alias)])


@pytest.mark.parametrize(
    ("before", "said"),
    [
        *((before, "Everyone calls her Bee.") for before in ("My brother Beat came.", "It rains.")),
        ("My sister Beatrix and my aunt Olga came.", "Everyone calls her Bee."),
        *(
            ("My sister Beatrix is a vet.", said)
            for said in (
                *("They call her late.", "They called her Friday.", "We call her Mom.", "I call her Sunday."),
                *("Nobody calls her Bee.", "They call her Bee in the film."),
            )
        ),
    ],
)
def test_in_doubt_nobody_gets_a_name(before: str, said: str) -> None:
    assert last_of(before, said)[1] == []
