"""Which subjects of one scope are the same person or thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.text.differences import USER_WORDS, SubjectRelation, compare_subjects

SUBJECTS = st.none() | st.sampled_from(
    ["the user", "der Nutzer", "Mira", "Mira Kovac", "Tom", "Mira's brother Tom", ""]
)
NAMES = st.sets(st.sampled_from(["Mira", "Mimi"])).map(sorted)


@pytest.mark.parametrize(
    ("one", "other", "names", "expected"),
    [
        (None, None, [], "same"),
        (None, "the user", [], "same"),
        ("der Nutzer", "L\u2019utilisateur", [], "same"),
        ("el usuario", "The User", ["Mira"], "same"),
        ("Mira", "mira", [], "same"),
        ("Mira", "the user", ["Mira"], "same"),
        (None, "mira", ["Mira"], "same"),
        ("Mira", "Mimi", ["Mira", "Mimi"], "same"),
        ("Tom", "Bob", [], "other"),
        ("the user", "Tom", ["Mira"], "other"),
        ("Mira", "Mira's brother Tom", ["Mira"], "other"),
        ("the user", "Tom", [], "unsure"),
        (None, "Tom", ["Mira"], "unsure"),
        ("Mira", "Mira Kovac", [], "unsure"),
        ("the user", "Mira Kovac", ["Mira"], "unsure"),
        ("Tom", "Tom from work", ["Mira"], "unsure"),
    ],
)
def test_two_subjects_of_a_scope(
    one: str | None, other: str | None, names: list[str], expected: SubjectRelation
) -> None:
    assert compare_subjects(one, other, names) == compare_subjects(other, one, names) == expected


@given(one=SUBJECTS, other=SUBJECTS, names=NAMES, word=st.sampled_from(sorted(USER_WORDS)))
def test_the_user_is_the_same_under_every_word_and_name(
    one: str | None, other: str | None, names: list[str], word: str
) -> None:
    assert compare_subjects(one, one, names) == "same"
    assert compare_subjects(one, other, names) == compare_subjects(other, one, names)
    for name in (word, *names):
        assert compare_subjects(name, None, names) == "same"
        if other:
            assert compare_subjects(name, other, names) == compare_subjects("the user", other, names)
