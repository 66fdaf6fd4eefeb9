"""A name is taken apart into a proper name, a tie to somebody, and where it is from."""

import pytest

from mnemolog.streams.entities.names import TIE_TYPES, read_name


@pytest.mark.parametrize(
    ("text", "name", "tie", "owner", "origin"),
    [
        ("Ana", "Ana", None, None, None),
        ("my wife", None, "wife", None, None),
        ("My Wife Ana", "Ana", "wife", None, None),
        ("our dog Rex", "Rex", "dog", None, None),
        ("my little brother Tom", "Tom", "brother", None, None),
        ("my brother-in-law Max", "Max", "brother_in_law", None, None),
        ("Tom, my brother", "Tom", "brother", None, None),
        ("Alice's brother Tom", "Tom", "brother", "Alice", None),
        ("Alice\u2019s brother", None, "brother", "Alice", None),
        ("James' wife", None, "wife", "James", None),
        ("the user's dog", None, "dog", "the user", None),
        ("the sister of Ana", None, "sister", "Ana", None),
        ("Tom from work", "Tom", None, None, "work"),
        ("Ana from the gym", "Ana", None, None, "gym"),
        ("meine Frau Ana", "Ana", "wife", None, None),
        ("unser Hund", None, "dog", None, None),
        ("Annas Bruder Tom", "Tom", "brother", "Anna", None),
        ("Tom von der Arbeit", "Tom", None, None, "arbeit"),
        ("mon frère Luc", "Luc", "brother", None, None),
        ("le frère d'Alice", None, "brother", "Alice", None),
        ("mi hermana", None, "sister", None, None),
        ("la hermana de Ana", None, "sister", "Ana", None),
        ("Tom del trabajo", "Tom", None, None, "trabajo"),
        ("minha mãe", None, "mother", None, None),
        ("mia sorella Giulia", "Giulia", "sister", None, None),
        ("my new dog Bello", "Bello", "dog", None, None),
        ("my late husband Karl", "Karl", "husband", None, None),
        ("my older brother Tom", "Tom", "brother", None, None),
        ("Alice's older brother Tom", "Tom", "brother", "Alice", None),
        ("mein verstorbener Mann Karl", "Karl", "husband", None, None),
        ("mein neuer Hund Bello", "Bello", "dog", None, None),
        ("ma petite amie Zoé", "Zoé", "girlfriend", None, None),
        ("ma sœur aînée Claire", "Claire", "sister", None, None),
        ("mi difunto marido Karl", "Karl", "husband", None, None),
        ("mi hermana mayor Ana", "Ana", "sister", None, None),
        ("my ex-girlfriend Carol", "Carol", "ex_girlfriend", None, None),
        ("Carol (Alice's girlfriend)", "Carol", "girlfriend", "Alice", None),
        ("Carol, Alice's girlfriend", "Carol", "girlfriend", "Alice", None),
        ("Carol, my girlfriend", "Carol", "girlfriend", None, None),
        ("Bello, my new dog", "Bello", "dog", None, None),
        ("Carol, meine Freundin", "Carol", "friend", None, None),
        ("Carol (Alices Freundin)", "Carol", "friend", "Alice", None),
        ("Carol, die Freundin von Alice", "Carol", "friend", "Alice", None),
        ("Carol, ma petite amie", "Carol", "girlfriend", None, None),
        ("Carol (la petite amie d'Alice)", "Carol", "girlfriend", "Alice", None),
        ("Carol, mi novia", "Carol", "girlfriend", None, None),
        ("Carol (la novia de Alice)", "Carol", "girlfriend", "Alice", None),
        ("my New York office", "my New York office", None, None, None),
        ("my New Yorker friend Tom", "my New Yorker friend Tom", None, None, None),
        ("my late shift", "my late shift", None, None, None),
        ("my new office", "my new office", None, None, None),
        ("Paris, France", "Paris, France", None, None, None),
        ("Ana, nurse", "Ana, nurse", None, None, None),
        ("New York (my favourite city)", "New York (my favourite city)", None, None, None),
        ("my partner company", "my partner company", None, None, None),
        ("Thomas Mann", "Thomas Mann", None, None, None),
        ("Ludwig von Beethoven", "Ludwig von Beethoven", None, None, None),
        ("Ana da Silva", "Ana da Silva", None, None, None),
        ("Rio de Janeiro", "Rio de Janeiro", None, None, None),
        ("王小明", "王小明", None, None, None),
    ],
)
def test_a_name_has_its_parts(
    text: str, name: str | None, tie: str | None, owner: str | None, origin: str | None
) -> None:
    found = read_name(text)
    assert found is not None
    assert (found.name, found.tie, found.owner, found.origin) == (name, tie, owner, origin)


@pytest.mark.parametrize("text", ["she", "It", "ils", "nosotros", "", "  ", "...", "\u0301"])
def test_a_pronoun_names_nobody(text: str) -> None:
    assert read_name(text) is None


def test_every_tie_is_of_a_person_an_animal_or_a_group() -> None:
    assert set(TIE_TYPES.values()) == {"person", "animal", "group"}


@pytest.mark.parametrize("text", ["my brother " * 18, "a's " * 50, "s " * 100, "'" * 200, "my " * 66, "x from " * 28])
@pytest.mark.timeout(5)
def test_a_hostile_name_is_read_in_no_time(text: str) -> None:
    read_name(text[:200])
