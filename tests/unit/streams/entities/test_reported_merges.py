"""Names that users of other memory layers saw joined, or kept as two, against their will."""

import pytest

from tests.support.harnesses.entity_talk import EntityTalk

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
