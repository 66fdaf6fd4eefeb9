"""Each step that finds the entity of a name: what it finds, what it leaves apart, and what it leaves in doubt."""

# ruff: noqa: RUF001 -- names of many languages

import pytest

from mnemolog.schemas.entities import EntityType, ResolutionStep
from mnemolog.streams.entities.resolver import EntityRegistry, NameContext, NoNameError, given_alias
from tests.support.harnesses.entity_talk import EntityTalk

Expected = tuple[str | None, ResolutionStep, int]
CONTEXT = NameContext(owner="default/alice", source_id="c1")


def step_of(known: list[str], name: str, *, kind: EntityType = "person") -> Expected:
    """What a name means after others were said: the entity's name, how it was found, and how many twins it has."""
    talk = EntityTalk()
    for one in known:
        talk.say(one, kind=kind)
    before = set(talk.known)
    _, link = talk.say(name, kind=kind)
    entity = talk.known[link.entity_id]
    return (entity.name if link.entity_id in before else None), link.step, len(entity.possible_twins)


EQUAL_NAMES: list[tuple[list[str], str, Expected]] = [
    (["Ana"], "ana", ("Ana", "exact", 0)),
    (["Ana"], "ÁNA", ("Ana", "exact", 0)),
    (["Ana Keller"], "Ana  Keller", ("Ana Keller", "exact", 0)),
    (["Анна"], "АННА", ("Анна", "exact", 0)),
    (["Dr. Anna Weiss"], "Anna Weiss", ("Dr. Anna Weiss", "exact", 0)),
    (["Mr. Miller"], "Mrs. Miller", (None, "new", 0)),
    (["the Millers"], "Millers", ("the Millers", "exact", 0)),
    (["Benedikt Huber"], "Ben Huber", ("Benedikt Huber", "prefix", 0)),
    (["Benedikt Huber"], "Ben Maier", (None, "new", 0)),
    (["Jana Huber"], "Jan Huber", (None, "new", 1)),
    (["Sam"], "another Sam", (None, "new", 1)),
    (["my friend Sam", "another Sam"], "Sam", (None, "new", 2)),
]
TIES: list[tuple[list[str], str, Expected]] = [
    (["my wife Ana"], "my wife", ("Ana", "tie", 0)),
    (["my wife"], "my wife Ana", ("my wife", "tie", 0)),
    (["my wife", "my wife Ana"], "Ana", ("my wife", "alias", 0)),
    (["our dog Rex"], "our dog", ("Rex", "tie", 0)),
    (["Ana"], "my wife Ana", ("Ana", "exact", 0)),
    (["my brother Tom"], "my brother Tom", ("Tom", "exact", 0)),
    (["my brother Tom"], "Tom", ("Tom", "exact", 0)),
    (["meine Frau Ana"], "my wife", ("Ana", "tie", 0)),
    (["my brother Tom"], "my brother Ben", (None, "new", 0)),
    (["my brother Tom", "my brother Ben"], "my brother", (None, "new", 2)),
    (["my brother Tom", "my brother Ben", "my brother"], "my brother", ("my brother", "tie", 2)),
    (["my wife Ana"], "my husband", (None, "new", 0)),
    (["my husband Karl"], "my late husband Karl", ("Karl", "exact", 0)),
    (["my husband Karl"], "my late husband", ("Karl", "tie", 0)),
    (["my wife Ana"], "my ex-wife Ana", ("Ana", "exact", 0)),
    (["my ex-wife Ana"], "my wife Ana", ("Ana", "exact", 0)),
    (["my dog Rex"], "my new dog", (None, "new", 1)),
    (["my dog Rex", "my new dog"], "my new dog", ("my new dog", "tie", 1)),
    (["my dog"], "my new dog Bello", (None, "new", 1)),
    (["my new dog Bello"], "my new dog Bello", ("Bello", "exact", 0)),
    (["my new dog Bello"], "my dog Bello", ("Bello", "exact", 0)),
    (["my kids Leo and Mia"], "my kids", ("my kids Leo and Mia", "tie", 0)),
    (["my parents"], "my grandparents", (None, "new", 0)),
]
TWO_OF_ONE_NAME: list[tuple[list[str], str, Expected]] = [
    (["Tom from work"], "my brother Tom", (None, "new", 1)),
    (["my brother Tom"], "Tom from work", (None, "new", 1)),
    (["my brother Tom"], "my husband Tom", (None, "new", 1)),
    (["Tom from work"], "Tom from the gym", (None, "new", 1)),
    (["Tom from work", "my brother Tom"], "Tom", (None, "new", 2)),
    (["Tom from work", "my brother Tom", "Tom"], "Tom", ("Tom", "exact", 2)),
    (["Tom from work", "my brother Tom"], "Tom from work", ("Tom", "exact", 0)),
]
PARTS_OF_NAMES: list[tuple[list[str], str, Expected]] = [
    (["Ana"], "Ana Keller", ("Ana", "prefix", 0)),
    (["Ana Keller"], "Ana", ("Ana Keller", "prefix", 0)),
    (["Carolina"], "Carol", ("Carolina", "prefix", 0)),
    (["Carol"], "Carolina Souza", ("Carol", "prefix", 0)),
    (["Alexander"], "Alex", ("Alexander", "prefix", 0)),
    (["my wife Ana"], "Ana Keller", ("Ana", "prefix", 0)),
    (["Ana Keller", "Ana Schmidt"], "Ana", (None, "new", 2)),
    (["Ana Keller"], "Ana Schmidt", (None, "new", 0)),
    (["Ana", "Ana Keller"], "Ana Schmidt", (None, "new", 1)),
    (["Ana", "Ana Maria", "Ana Maria Keller"], "Ana M", (None, "new", 1)),
    (["Carl"], "Carla", (None, "new", 1)),
    (["Jana"], "Jan", (None, "new", 1)),
    (["João"], "Jo", (None, "new", 0)),
    (["Tom Miller from work"], "my brother Tom", (None, "new", 1)),
]
SHORT_FORMS: list[tuple[list[str], str, Expected]] = [
    (["Robert"], "Bob", ("Robert", "diminutive", 0)),
    (["Bob"], "Robert", ("Bob", "diminutive", 0)),
    (["Thomas Miller"], "Tom", ("Thomas Miller", "diminutive", 0)),
    (["Guilherme"], "Guili", ("Guilherme", "diminutive", 0)),
    (["Francisco"], "Paco", ("Francisco", "diminutive", 0)),
    (["Johannes"], "Hannes", ("Johannes", "diminutive", 0)),
    (["Giuseppe"], "Beppe", ("Giuseppe", "diminutive", 0)),
    (["Elizabeth", "Elisabeth"], "Lisa", (None, "new", 2)),
    (["Robert Hill"], "Bob Smith", (None, "new", 0)),
    (["Robert", "Robert Hill"], "Bob Smith", (None, "new", 1)),
    (["Anna"], "Bob", (None, "new", 0)),
]


@pytest.mark.parametrize(
    ("known", "name", "expected"), [*EQUAL_NAMES, *TIES, *TWO_OF_ONE_NAME, *PARTS_OF_NAMES, *SHORT_FORMS]
)
def test_the_name_of_a_person_means(known: list[str], name: str, expected: Expected) -> None:
    assert step_of(known, name) == expected


@pytest.mark.parametrize(
    ("kind", "known", "name", "expected"),
    [
        ("place", "Zürich", "ZURICH", ("Zürich", "exact", 0)),
        ("organisation", "Acme", "acme", ("Acme", "exact", 0)),
        ("place", "York", "Yorkshire", (None, "new", 0)),
        ("organisation", "Meta", "Metabase", (None, "new", 0)),
    ],
)
def test_of_things_equal_names_alone_are_of_one(kind: EntityType, known: str, name: str, expected: Expected) -> None:
    assert step_of([known], name, kind=kind) == expected


def test_names_of_different_types_are_different() -> None:
    talk = EntityTalk()
    talk.say("Paris", kind="place")
    _, link = talk.say("Paris", kind="person")
    assert link.step == "new"
    assert {entity.type for entity in talk.known.values() if entity.name == "Paris"} == {"place", "person"}


def test_what_one_name_brings_is_an_alias_from_then_on() -> None:
    talk = EntityTalk()
    for name in ("Robert", "Bob", "my brother Bob"):
        talk.say(name)
    _, link = talk.say("my brother")
    assert (talk.known[link.entity_id].name, link.step) == ("Robert", "tie")
    assert talk.say("bob")[1].step == "alias"


def test_the_tie_is_that_of_who_speaks() -> None:
    talk = EntityTalk(user_names=("Alice",))
    talk.say("my wife Ana", speaker="Alice")
    _, bobs = talk.say("my wife", speaker="Bob")
    assert bobs.step == "new"
    assert talk.say("my wife", speaker="Bob")[1].entity_id == bobs.entity_id
    assert talk.known[talk.say("Alice's wife", speaker="Bob")[1].entity_id].name == "Ana"


def test_who_owns_a_tie_is_linked_as_well() -> None:
    talk = EntityTalk()
    links = talk.say("Tom's wife Ana")
    assert [(talk.known[link.entity_id].name, link.role) for link in links] == [
        ("the user", "subject"),
        ("Ana", "object"),
        ("Tom", "mention"),
    ]


# Names that users of other memory layers saw joined, or kept as two, against their will.
TWO = [
    ("Iran", "place", "Tigran", "person"),  # vectorize-io/hindsight#3751
    ("Room 101", "place", "Room 102", "place"),  # vectorize-io/hindsight#4642
    ("2023 Tax Return", "other", "2024 Tax Return", "other"),
    ("UA123", "event", "UA124", "event"),
    ("Dr John Richardson", "person", "Dr Jane Richardson", "person"),  # vectorize-io/hindsight#4441
    ("Q3 revenue report", "other", "Q4 revenue report", "other"),
    ("Dr Wall", "person", "Dr Waler", "person"),  # vectorize-io/hindsight#3752 joins them; nobody can know
    ("ASR1603", "product", "ASR1605", "product"),  # Graphify-Labs/graphify#878
    ("cranel", "product", "cranelr", "product"),
]
ONE = [
    ("DGIA", "organisation", "DGIA", "organisation"),  # getzep/graphiti#1734: short names, vectors apart
    ("Alice Chen", "person", "Alice", "person"),
    ("José", "person", "Jose", "person"),
    ("İpek", "person", "ipek", "person"),
]


def entities_of(one: str, kind: str, other: str, kind_of_other: str) -> int:
    talk = EntityTalk(user_names=("Mira",))
    talk.say(one, kind=kind)
    talk.say(other, kind=kind_of_other)
    links = (*talk.say(one, kind=kind), *talk.say(other, kind=kind_of_other))
    return len({link.entity_id for link in links if link.role == "object"})


@pytest.mark.parametrize(("one", "kind", "other", "kind_of_other"), TWO)
def test_two_stay_two(one: str, kind: str, other: str, kind_of_other: str) -> None:
    assert entities_of(one, kind, other, kind_of_other) == 2


@pytest.mark.parametrize(
    ("one", "other", "kind"), [(one, other, kind) for one, kind, other, same in TWO if kind == same]
)
def test_two_that_one_sentence_names_stay_two(one: str, other: str, kind: str) -> None:
    links = EntityTalk(user_names=("Mira",)).say(one, other, kind=kind)
    assert len({link.entity_id for link in links if link.role == "object"}) == 2


@pytest.mark.parametrize(("one", "kind", "other", "kind_of_other"), ONE)
def test_one_is_one(one: str, kind: str, other: str, kind_of_other: str) -> None:
    assert entities_of(one, kind, other, kind_of_other) == 1


@pytest.mark.parametrize(
    "name", ["!!!", "Dr !!!", "the ...", "Prof. --", "!!! from work", "another ?!", "she", "\u200b", "I", "User", "yo"]
)
def test_text_without_a_name_and_words_for_the_speaker_give_no_alias(name: str) -> None:
    with pytest.raises(NoNameError, match="names nobody"):
        given_alias(name, EntityRegistry(()), CONTEXT)


@pytest.mark.parametrize(
    ("name", "key"),
    [("Dr Ana", "ana"), ("Dr", "dr"), ("Tom from work", "tom (work)"), ("another Tom", "tom (another)")],
)
def test_a_given_alias_has_the_key_of_its_name_without_the_title(name: str, key: str) -> None:
    assert given_alias(name, EntityRegistry(()), CONTEXT).key == key
