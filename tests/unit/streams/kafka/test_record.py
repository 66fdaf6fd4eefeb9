"""What a consumer remembers of the origins it has handled."""

from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.kafka.record import SeenOrigins

ORIGINS = st.lists(st.integers(0, 20).map(lambda n: f"turns/0/{n}"))


def test_what_was_asked_for_lately_stays() -> None:
    seen = SeenOrigins(2)
    seen.add("turns/0/1")
    seen.add("turns/0/2")
    assert "turns/0/1" in seen
    seen.add("turns/0/3")
    assert "turns/0/1" in seen
    assert "turns/0/2" not in seen


@given(origins=ORIGINS, size=st.integers(1, 5))
def test_it_keeps_the_newest_and_no_more(origins: list[str], size: int) -> None:
    seen = SeenOrigins(size)
    for origin in origins:
        seen.add(origin)
    newest = list(dict.fromkeys(reversed(origins)))[:size]
    assert {origin for origin in origins if origin in seen} == set(newest)
