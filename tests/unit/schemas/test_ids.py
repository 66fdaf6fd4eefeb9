from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.ids import event_id, fact_id
from tests.support.builders.commits import added, commit

NAMES = st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=["Cs", "Cc"]))
SOURCES = st.tuples(NAMES, NAMES, st.integers(0, 1000))


def test_ids_stay_what_they_were_in_logs_already_written() -> None:
    assert fact_id("default/nadia", "t1", 0) == UUID("2dc1aaca-62b0-58a3-99ba-668fe0d83004")
    assert event_id("default/nadia", "t1", 0) == UUID("c8a69475-b8ae-59be-a161-33a82cac8774")


@given(SOURCES, SOURCES)
def test_ids_are_equal_only_for_equal_owner_source_and_ordinal(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    assert (fact_id(*one) == fact_id(*other)) == (one == other)
    assert (event_id(*one) == event_id(*other)) == (one == other)


@given(SOURCES)
def test_a_fact_and_its_event_have_different_ids(source: tuple[str, str, int]) -> None:
    assert fact_id(*source) != event_id(*source)


def test_separators_inside_names_do_not_mix_sources_up() -> None:
    assert fact_id("a", "b/c", 0) != fact_id("a/b", "c", 0)
    assert fact_id('a","b', "c", 0) != fact_id("a", 'b","c', 0)


def test_nothing_that_a_model_wrote_enters_an_id() -> None:
    one, other = commit("t1", added("Alice lives in Bern.")), commit("t1", added("Something else entirely."))
    assert one.events[0].event_id == other.events[0].event_id
