"""Whom a sentence with "her" or "him" gives another name, in the clear cases."""

import pytest

from mnemolog.streams.entities.resolver import same_as_pairs
from mnemolog.streams.offline.extract import read_turn
from tests.support.builders.prompts import turn, user


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
        ("My sister Beatrix and my aunt Olga came.", "Everyone calls her Bee."),
        ("My brother Beat came.", "Everyone calls her Bee."),
        ("It rains.", "Everyone calls her Bee."),
        ("My sister Beatrix is a vet.", "They call her late."),
        ("My sister Beatrix is a vet.", "They called her Friday."),
        ("My sister Beatrix is a vet.", "We call her Mom."),
        ("My sister Beatrix is a vet.", "I call her Sunday."),
        ("My sister Beatrix is a vet.", "Nobody calls her Bee."),
        ("My sister Beatrix is a vet.", "They call her Bee in the film."),
    ],
)
def test_in_doubt_nobody_gets_a_name(before: str, said: str) -> None:
    assert last_of(before, said)[1] == []
