"""Names, ties, other names and relations in a sentence are found in the clear cases, and nowhere else."""

import pytest

from mnemolog.schemas.entities import MAX_NAME, SAME_AS, WORDS
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.names import (
    aliases_in,
    ended_relations,
    sentence_entities,
    stated_aliases,
    value_entities,
    value_relations,
)
from tests.support.builders.prompts import turn, user
from tests.support.harnesses.entity_talk import EntityTalk


def found(said: str, subject: str | None = "Alice") -> list[tuple[str, str, str]]:
    return [(one.name, one.type, one.role) for one in sentence_entities(said, subject)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My brother Tom moved out.", [("Alice's brother Tom", "person", "object")]),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Inka Keller in Berlin.", [("Inka Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("I met Liz Keller.", [("Liz Keller", "person", "mention")]),
        ("Tom called.", [("Tom", "other", "mention")]),
        ("Dinner was late.", []),
        ("Inka Keller called.", [("Inka Keller", "other", "mention")]),
        ("Visited Inka in hospital.", [("Inka", "other", "mention")]),
        ("Congrats Liz, that is great.", [("Liz", "other", "mention")]),
        ("I like Tom's car, and the Millers' too.", [("Tom", "other", "mention"), ("Millers", "other", "mention")]),
        ("Nick from the pub plays darts.", [("Nick from the pub", "person", "object")]),
        ("Apart from meetings I had a day off.", []),
        ("I moved to Berlin from my village.", [("Berlin", "place", "mention")]),
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
        ("I sail on Monday in May.", []),
        ("my mother-in-law Eva visits", [("Alice's mother-in-law Eva", "person", "object")]),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


def test_without_a_speaker_the_tie_is_as_it_was_said() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]


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
    (same,) = tuple(stated_aliases(said, "Alice"))
    assert (same.subject, same.predicate, same.object) == ("Alice's uncle Bartholomew", SAME_AS, "Barty")


def told(talk: EntityTalk, said: str) -> None:
    entities, same = sentence_entities(said, "Alice"), tuple(stated_aliases(said, "Alice"))
    fact = ExtractedFact(text=said, excerpt=said, search_text="", entities=entities, relations=same)
    talk.tell(fact, speaker="Alice")


def test_both_names_are_of_one_entity_whose_tie_stays() -> None:
    talk = EntityTalk(user_names=("Alice",))
    told(talk, "My aunt Margarethe bakes.")
    told(talk, "Everyone calls Margarethe Gretel.")
    assert talk.entity("Margarethe").keys("name") == {"margarethe", "gretel"}
    (_, link) = talk.say("Gretel")
    assert (link.entity_id, link.step) == (talk.entity("Margarethe").entity_id, "alias")


TOO_LONG = "B" + "x" * MAX_NAME


def test_a_tie_is_over_where_its_words_were_said_before() -> None:
    said = "I met my wife Ana in Rome but she is no longer my wife."
    assert [(one.predicate, one.object) for one in ended_relations(said, None)] == [("wife", "my wife")]


def test_what_is_too_long_is_no_name() -> None:
    assert value_relations("employer", "Acme", TOO_LONG) == ()
    for subject in (TOO_LONG, "B" + "x" * (MAX_NAME - 5)):
        assert ended_relations("She is no longer my wife Ana.", subject) == ()


def test_a_tie_of_somebody_else_is_not_over() -> None:
    assert ended_relations("Ana is no longer my wife's boss.", "Alice") == ()


def said(text: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The hints of the facts of a sentence of Alice's, with their relations."""
    facts, _ = read_turn(turn(user(text), speaker="Alice"))
    return [(fact.action_hint, [(one.subject, one.predicate, one.object) for one in fact.relations]) for fact in facts]


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("I work at Acme.", ("Alice", "employer", "Acme")),
        ("I live in Berlin.", ("Alice", "home_city", "Berlin")),
        ("My dog is called Rex.", ("Alice", "dog", "Alice's dog Rex")),
        ("My wife is called Ana.", ("Alice", "wife", "Alice's wife Ana")),
        ("Tom is my brother.", ("Alice", "brother", "Alice's brother Tom")),
    ],
)
def test_what_fills_a_slot_is_a_relation(text: str, triple: tuple[str, str, str]) -> None:
    ((hint, relations),) = said(text)
    assert (hint, relations) == ("new", [triple])


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("She is no longer my wife.", ("Alice", "wife", "Alice's wife")),
        ("Ana is no longer my wife.", ("Alice", "wife", "Alice's wife Ana")),
        ("Ana isn't my boss anymore.", ("Alice", "boss", "Alice's boss Ana")),
        ("Ana is not my wife anymore.", ("Alice", "wife", "Alice's wife Ana")),
        ("I no longer work at Acme.", ("Alice", "employer", "Acme")),
        ("I broke up with my girlfriend.", ("Alice", "girlfriend", "Alice's girlfriend")),
        ("Our old dog died.", ("Alice", "dog", "Alice's dog")),
        ("Ana and I are no longer friends.", ("Alice", "friend", "Alice's friend Ana")),
        ("Ana and I aren't neighbours any more.", ("Alice", "neighbour", "Alice's neighbour Ana")),
    ],
)
def test_what_is_over_is_a_relation_of_a_retraction(text: str, triple: tuple[str, str, str]) -> None:
    ((hint, relations),) = said(text)
    assert (hint, relations) == ("retract", [triple])


@pytest.mark.parametrize(
    ("text", "predicates", "name"),
    [
        ("Olga and I broke up.", {"partner"}, "Olga"),
        ("Ines and I got divorced.", {"partner", "spouse"}, "Ines"),
        ("Minka died on Friday.", {"owns"}, "Minka"),
    ],
)
def test_who_is_lost_is_named_alone(text: str, predicates: set[str], name: str) -> None:
    """Whatever they were of what the words may end."""
    (fact,) = read_turn(turn(user(text), speaker="Alice"))[0]
    assert fact.action_hint == "retract"
    assert {WORDS[one.predicate].predicate.name for one in fact.relations} == predicates
    assert len(fact.relations) == len(predicates)
    assert {one.object for one in fact.relations} == {name}
    assert name in {entity.name for entity in fact.entities}


@pytest.mark.parametrize(
    "text",
    [
        "I think Ana is no longer my wife.",
        "Tom said she is no longer my boss.",
        "Maybe Olga and I broke up.",
        "We broke up.",
        "Olga and I broke up the ice.",
        "Ana is not my wife.",
        "Ana and I are not friends.",
        "Ana and Eva are no longer friends.",
        "Ana is no longer my wife's boss.",
    ],
)
def test_what_is_doubtful_or_said_of_others_ends_no_relation(text: str) -> None:
    assert [fact.relations for fact in read_turn(turn(user(text), speaker="Alice"))[0] if fact.relations] == []


@pytest.mark.parametrize(
    "text",
    ["My wife Ana sings.", "My brother no longer smokes.", "I like Berlin.", "If I worked at Acme, I would cry."],
)
def test_nothing_else_is_one(text: str) -> None:
    assert [relations for _, relations in said(text) if relations] == []
