"""Each step that finds the entity of a name, by its own cases: what it finds, leaves apart, and leaves in doubt."""

# ruff: noqa: RUF001 -- names of many languages

import pytest

from mnemolog.schemas.entities import EntityType, ResolutionStep
from tests.support.harnesses.entity_talk import EntityTalk


def step_of(known: list[str], name: str, *, kind: EntityType = "person") -> tuple[str | None, ResolutionStep, int]:
    """What a name means after others were said: the entity's name, how it was found, and how many twins it has."""
    talk = EntityTalk()
    for one in known:
        talk.say(one, kind=kind)
    before = set(talk.known)
    _, link = talk.say(name, kind=kind)
    entity = talk.known[link.entity_id]
    return (entity.name if link.entity_id in before else None), link.step, len(entity.possible_twins)


@pytest.mark.parametrize(
    ("known", "name"), [(["Ana"], "ana"), (["Ana"], "ÁNA"), (["Ana Keller"], "Ana  Keller"), (["Анна"], "АННА")]
)
def test_an_equal_name_is_the_same(known: list[str], name: str) -> None:
    assert step_of(known, name) == (known[0], "exact", 0)


@pytest.mark.parametrize(("kind", "known", "name"), [("place", "Zürich", "ZURICH"), ("organisation", "Acme", "acme")])
def test_an_equal_name_of_any_type_is_the_same(kind: EntityType, known: str, name: str) -> None:
    assert step_of([known], name, kind=kind) == (known, "exact", 0)


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
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
    ],
)
def test_a_tie_tells_who_is_meant(known: list[str], name: str, expected: tuple[str | None, str, int]) -> None:
    assert step_of(known, name) == expected


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
        (["Tom from work"], "my brother Tom", (None, "new", 1)),
        (["my brother Tom"], "Tom from work", (None, "new", 1)),
        (["my brother Tom"], "my husband Tom", (None, "new", 1)),
        (["Tom from work"], "Tom from the gym", (None, "new", 1)),
        (["Tom from work", "my brother Tom"], "Tom", (None, "new", 2)),
        (["Tom from work", "my brother Tom", "Tom"], "Tom", ("Tom", "exact", 2)),
        (["Tom from work", "my brother Tom"], "Tom from work", ("Tom", "exact", 0)),
    ],
)
def test_two_of_one_name_stay_two(known: list[str], name: str, expected: tuple[str | None, str, int]) -> None:
    assert step_of(known, name) == expected


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
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
    ],
)
def test_a_part_of_a_name_is_the_person(known: list[str], name: str, expected: tuple[str | None, str, int]) -> None:
    assert step_of(known, name) == expected


@pytest.mark.parametrize(
    ("kind", "known", "name"), [("place", "York", "Yorkshire"), ("organisation", "Meta", "Metabase")]
)
def test_a_part_of_a_name_is_another_place_or_organisation(kind: EntityType, known: str, name: str) -> None:
    assert step_of([known], name, kind=kind) == (None, "new", 0)


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
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
    ],
)
def test_a_short_form_is_the_person(known: list[str], name: str, expected: tuple[str | None, str, int]) -> None:
    assert step_of(known, name) == expected


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


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
        (["Dr. Anna Weiss"], "Anna Weiss", ("Dr. Anna Weiss", "exact", 0)),
        (["Mr. Miller"], "Mrs. Miller", (None, "new", 0)),
        (["the Millers"], "Millers", ("the Millers", "exact", 0)),
        (["Benedikt Huber"], "Ben Huber", ("Benedikt Huber", "prefix", 0)),
        (["Benedikt Huber"], "Ben Maier", (None, "new", 0)),
        (["Jana Huber"], "Jan Huber", (None, "new", 1)),
    ],
)
def test_titles_and_articles_do_not_count_but_surnames_do(
    known: list[str], name: str, expected: tuple[str | None, str, int]
) -> None:
    assert step_of(known, name) == expected


def test_another_of_a_name_is_nobody_who_is_known() -> None:
    assert step_of(["Sam"], "another Sam") == (None, "new", 1)
    assert step_of(["my friend Sam", "another Sam"], "Sam") == (None, "new", 2)


def test_a_group_has_no_name_of_one_who_is_in_it() -> None:
    assert step_of(["my kids Leo and Mia"], "my kids") == ("my kids Leo and Mia", "tie", 0)
    assert step_of(["my parents"], "my grandparents") == (None, "new", 0)
