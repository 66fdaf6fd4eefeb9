import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.text.differences import (
    USER_WORDS,
    SubjectRelation,
    compare_subjects,
    same_negations,
    subjects_differ,
    texts_equivalent,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mira owns 3 cats.", "Mira owns 2 cats."),
        ("Mira owns three cats.", "Mira owns two cats."),
        ("Mira hat zwei Katzen.", "Mira hat drei Katzen."),
        ("The train leaves at 17:45.", "The train leaves at 17:15."),
        ("It weighs 1.5 tons.", "It weighs 15 tons."),
        ("It has a first floor.", "It has a second floor."),
        ("She swims on Monday.", "She swims on Tuesday."),
        ("Sie schwimmt montags.", "Sie schwimmt dienstags."),
        ("Born 2020-01-31.", "Born 2020-01-30."),
        ("The dose is taken in the morning.", "The dose is taken at night."),
        ("She runs 5 km.", "She runs 5 miles."),
        ("It costs 20 €.", "It costs 20 $."),
        ("It lasts 3 weeks.", "It lasts 3 months."),
        ("It has 5 m of rope.", "It has 5 g of rope."),
        ("Mira is allergic to nuts.", "Mira is not allergic to nuts."),
        ("Mira likes jazz.", "Mira doesn't like jazz."),
        ("Sie mag Kaffee.", "Sie mag keinen Kaffee."),
        ("Elle aime le café.", "Elle n\u2019aime pas le café."),
        ("allergic to milk, not to nuts", "allergic to nuts, not to milk"),
        ("Mira lives in Bern.", "Mira lives in Berlin."),
        ("Mira likes tea.", "Anna likes tea."),
        ("She uses VS Code.", "She uses TypeScript."),
        ("She works from 9 to 5.", "She works from 5 to 9."),
        ("She owns 2 cats and 3 dogs.", "She owns 3 cats and 2 dogs."),
        ("The balance is -5.", "The balance is 5."),
        ("They meet at \u0661\u0660.", "They meet at \u0661\u0661."),
        ("She takes \u00bd a pill.", "She takes \u00bc a pill."),
        ("Mira manages Anna.", "Anna manages Mira."),
        ("Her blood type is A+.", "Her blood type is A-."),
        ("She writes C.", "She writes C++."),
        ("Mira eats meat.", "Mira rarely eats meat."),
        ("Mira eet vlees.", "Mira eet geen vlees."),
    ],
)
def test_texts_that_differ_in_a_number_date_unit_negation_or_name_are_not_equivalent(one: str, other: str) -> None:
    assert not texts_equivalent(one, other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Mira likes jazz.", "Mira doesn't like jazz.", False),
        ("Sie mag Kaffee.", "Sie mag keinen Kaffee.", False),
        ("Elle aime le café.", "Elle n\u2019aime pas le café.", False),
        ("allergic to milk, not to nuts", "allergic to nuts, not to milk", False),
        ("Mira isn\u2019t married!", "Mira is not married", True),
        ("Mira likes jazz.", "Anna loves tea.", True),
    ],
)
def test_negations_are_the_same_where_they_reach_the_same_words(one: str, other: str, *, same: bool) -> None:
    assert same_negations(one, other) == same_negations(other, one) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 1,000 euros.", "It costs 1000 euros."),
        ("It meets at 10.", "It meets at 10:00."),
        ("Mira isn't married.", "Mira is not married."),
        ("Mira isn\u2019t married!", "Mira is not married"),
        ("Mira has 2 cats.", "Mira has two cats."),
        ("Mira reads \u201cEmma\u201d.", 'Mira reads "Emma".'),
        ("The user likes tea.", "User likes tea."),
        ("\uff12 cats", "2 cats"),
        ("", ""),
    ],
)
def test_other_ways_to_write_the_same_words_are_none(one: str, other: str) -> None:
    assert texts_equivalent(one, other)


@pytest.mark.parametrize(
    ("text", "one", "other", "of_two"),
    [
        ("I like tea.", "Ann", "Bob", True),
        ("I like tea.", "Ann", "ann", False),
        ("I like tea.", "Ann", None, True),
        ("I like tea.", "Ann", "The user", True),
        ("I like tea.", "Mira", None, False),
        ("I like tea.", "Mira", "The user", False),
        ("Ann likes tea.", "Ann", None, False),
        ("Ann Lee likes tea.", "Ann", "Ann Lee", False),
    ],
)
def test_equal_words_that_name_nobody_are_of_their_subjects(
    text: str, one: str | None, other: str | None, *, of_two: bool
) -> None:
    ann, bob = (ExtractedFact(text=text, excerpt=text, search_text=text, subject=subject) for subject in (one, other))
    assert subjects_differ(ann, bob, ["Mira"]) == subjects_differ(bob, ann, ["Mira"]) == of_two


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mira likes tea a lot.", "Mira really likes tea."),
        ("She swims on Mondays.", "On Monday she swims."),
        ("Mira loves US films.", "Mira loves us films."),
        ("Mira paid one cent.", "Mira paid one hundred."),
        ("Mira likes tea, not coffee.", "Mira likes tea not, coffee."),
        ("六時に会う", "七時に会う"),
        ("美拉对花生过敏", "美拉对花生不过敏"),
        ("Анна ест мясо", "Анна не ест мясо"),
        ("चाय की दुकान", "चाय का दुकान"),
        ("Mira scored 5-10.", "Mira scored 510."),
    ],
)
def test_other_words_are_not_equivalent(one: str, other: str) -> None:
    assert not texts_equivalent(one, other)


@given(st.text(max_size=200))
def test_a_text_differs_from_itself_in_nothing(text: str) -> None:
    assert same_negations(text, text)
    assert texts_equivalent(text, text)


_WORDS = st.lists(
    st.sampled_from(["mira", "dog", "man", "bit", "likes", "walnuts", "peanuts", "in", "from", "2", "3", "two", "not"]),
    max_size=6,
)


@given(_WORDS, _WORDS)
def test_equivalent_texts_have_the_same_words_in_the_same_order(one: list[str], other: list[str]) -> None:
    same = [[word.replace("two", "2") for word in words] for words in (one, other)]
    assert texts_equivalent(" ".join(one), " ".join(other)) == (same[0] == same[1])


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
def test_subjects_of_a_scope(one: str | None, other: str | None, names: list[str], expected: SubjectRelation) -> None:
    assert compare_subjects(one, other, names) == compare_subjects(other, one, names) == expected


@given(one=SUBJECTS, other=SUBJECTS, names=NAMES, word=st.sampled_from(sorted(USER_WORDS)))
def test_the_user_is_one_under_every_word_and_name(
    one: str | None, other: str | None, names: list[str], word: str
) -> None:
    assert compare_subjects(one, one, names) == "same"
    assert compare_subjects(one, other, names) == compare_subjects(other, one, names)
    for name in (word, *names):
        assert compare_subjects(name, None, names) == "same"
        if other:
            assert compare_subjects(name, other, names) == compare_subjects("the user", other, names)
