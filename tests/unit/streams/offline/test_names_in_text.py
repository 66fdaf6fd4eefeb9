"""Names, ties, other names and relations in a sentence are found in the clear cases, and nowhere else."""

import pytest

from mnemolog.schemas.entities import MAX_NAME, SAME_AS
from mnemolog.schemas.facts import ExtractedFact
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
from tests.support.harnesses.entity_talk import EntityTalk


def found(said: str, subject: str | None = "Alice", *, before: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    entities = sentence_entities(said, subject, names_heard(before))
    return [(one.name, one.type, one.role) for one in entities]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My brother Tom moved out.", [("Alice's brother Tom", "person", "object")]),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Inka Keller in Berlin.", [("Inka Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("I met Liz Keller.", [("Liz Keller", "person", "mention")]),
        ("Tom called.", [("Tom", "other", "mention")]),
        ("Inka called.", []),
        ("Dinner was late.", []),
        ("Inka Keller called.", [("Inka Keller", "other", "mention")]),
        ("Visited Inka in hospital.", [("Inka", "other", "mention")]),
        ("Congrats Liz, that is great.", [("Liz", "other", "mention")]),
        ("I like Tom's car, and the Millers' too.", [("Tom", "other", "mention"), ("Millers", "other", "mention")]),
        ("Nick from the pub plays darts.", [("Nick from the pub", "person", "object")]),
        ("Apart from meetings I had a day off.", []),
        ("I moved to Berlin from my village.", [("Berlin", "place", "mention")]),
        ("I met another Tom at the gym.", [("another Tom", "other", "mention")]),
        ("I spoke to Mr. Novak today.", [("Mr. Novak", "person", "mention")]),
        ("My wife is Ana.", [("Alice's wife Ana", "person", "object")]),
        ("My boss is Tom Meyer and she sings.", [("Alice's boss Tom Meyer", "person", "object")]),
        ("My boss is German.", [("Alice's boss", "person", "object"), ("German", "other", "mention")]),
        (
            "My kids are Tom and Ana.",
            [("Alice's kids", "group", "object"), ("Tom", "other", "mention"), ("Ana", "other", "mention")],
        ),
        ("Inka is my neighbour.", [("Alice's neighbour Inka", "person", "object")]),
        ("Inka, my boss, agreed.", [("Alice's boss Inka", "person", "object")]),
        ("He is my boss.", [("Alice's boss", "person", "object")]),
        ("This is my brother.", [("Alice's brother", "person", "object")]),
        ("She is no longer my boss.", [("Alice's boss", "person", "object")]),
        ("Inka is no longer my boss.", [("Alice's boss Inka", "person", "object")]),
        ("Inka is not my boss.", [("Alice's boss", "person", "object")]),
        ("My neighbour is called Inka.", [("Alice's neighbour Inka", "person", "object")]),
        ("My dentist is Dr. Okafor.", [("Alice's dentist Dr. Okafor", "person", "object")]),
        ("Liz's brother Tom left.", [("Liz's brother Tom", "person", "object")]),
        (
            "My kids Leo and Kim are ill.",
            [("Leo", "person", "object"), ("Kim", "person", "object"), ("Alice's kids", "group", "object")],
        ),
        ("I sail on Monday in May.", []),
        ("my mother-in-law Eva visits", [("Alice's mother-in-law Eva", "person", "object")]),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


def test_without_a_speaker_the_tie_is_as_it_was_said() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]


@pytest.mark.parametrize(
    ("before", "said", "name"),
    [
        ("I met Inka Keller.", "Inka called.", "Inka"),
        ("My sister Alexandra is here.", "Alex called.", "Alex"),
        ("My sister Inka is here.", "Then she left. Inge called.", None),
    ],
)
def test_a_name_that_was_said_before_may_begin_a_sentence(before: str, said: str, name: str | None) -> None:
    assert found(said, before=(before,)) == ([] if name is None else [(name, "other", "mention")])


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


def test_what_is_too_long_for_a_name_is_none() -> None:
    assert found("My brother Tom met Inka.", "S" * 200) == [("Inka", "other", "mention")]
    assert found(f"I met {'A' * 300} and Inka.") == [("Inka", "other", "mention")]
    assert value_entities("dog", "R" * 300, "Alice") == value_entities("employer", "R" * 300, "Alice") == ()


@pytest.mark.parametrize(
    ("said", "before", "names"),
    [
        ("An is feeling better.", ("I met An in Ulm.",), ["An"]),
        ("Will has a cold.", ("My friend Will called.",), ["Will"]),
        ("Will be back soon.", ("My friend Will called.",), []),
        ("An is feeling better.", ("I met Ana in Ulm.",), []),
        ("May is lovely.", ("My friend May called.",), []),
    ],
)
def test_a_name_that_is_a_small_word_too_is_known_where_it_was_said_and_is_or_has_something(
    said: str, before: tuple[str, ...], names: list[str]
) -> None:
    assert [name for name, *_ in found(said, before=before)] == names


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


TOO_LONG = "B" + "x" * MAX_NAME


def test_a_tie_is_over_where_its_words_were_said_before() -> None:
    said = "I met my wife Ana in Rome but she is no longer my wife."
    assert [(one.predicate, one.object) for one in ended_relations(said, None)] == [("wife", "my wife")]


def test_what_is_too_long_is_no_name() -> None:
    assert value_relations("employer", "Acme", TOO_LONG) == ()
    for subject in (TOO_LONG, "B" + "x" * (MAX_NAME - 5)):
        assert ended_relations("She is no longer my wife Ana.", subject) == ()


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom works at Rolls-Royce.", ("Alice's brother Tom", "employer", "Rolls-Royce")),
        ("My wife Ana Keller works at Bosch.", ("Alice's wife Ana Keller", "employer", "Bosch")),
        ("My brother Tom Meyer works at Acme.", ("Alice's brother Tom Meyer", "employer", "Acme")),
        ("My sister works at Bosch in Ulm.", ("Alice's sister", "employer", "Bosch")),
        ("My aunt Eva lives in Leeds with her dog.", ("Alice's aunt Eva", "lives_in", "Leeds")),
        ("My band is called The Wet Socks.", ("Alice", "member_of", "The Wet Socks")),
    ],
)
def test_a_sentence_states_where_others_work_and_live_and_the_name_of_a_club(
    said: str, triple: tuple[str, str, str]
) -> None:
    assert [(one.subject, one.predicate, one.object) for one in stated_in_text(said, "Alice")] == [triple]


@pytest.mark.parametrize(
    "said",
    [
        "My sister works at night.",
        "My sister works at Christmas.",
        "My sister's husband works at Bosch.",
        "My sister met a man who sings and works at Bosch.",
        "My aunt Eva lives in fear.",
        "My aunt Eva lived in Leeds.",
        "My mother says my brother works at Bosch.",
        "My brother doesn't work at Bosch.",
        "My brother no longer works at Bosch.",
        "My band is called off.",
        "My company is called Acme.",
    ],
)
def test_a_sentence_states_nothing_that_it_does_not_say(said: str) -> None:
    assert stated_in_text(said, "Alice") == ()


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom no longer works at Acme.", ("Alice's brother Tom", "employer", "Acme")),
        ("My brother Tom quit his job at Acme.", ("Alice's brother Tom", "employer", "Acme")),
        ("My aunt no longer lives in Leeds.", ("Alice's aunt", "lives_in", "Leeds")),
    ],
)
def test_a_sentence_ends_where_others_worked_and_lived(said: str, triple: tuple[str, str, str]) -> None:
    found = relations_of_others(said, "Alice", ended=True)
    assert [(one.subject, one.predicate, one.object) for one in found] == [triple]


def test_a_tie_of_somebody_else_is_not_over() -> None:
    assert ended_relations("Ana is no longer my wife's boss.", "Alice") == ()
