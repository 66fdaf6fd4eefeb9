"""How many processes `make test` starts."""

import pytest

from tests.support.scheduling import MAX_PROCESSES, PROCESS_BYTES, process_count


@pytest.mark.parametrize(
    ("cores", "room_for", "expected"),
    [(1, 9, 2), (2, 9, 3), (64, 99, MAX_PROCESSES), (2, 2, 2), (2, 0, 1)],
    ids=["one core", "two cores", "many cores", "little memory", "no memory"],
)
def test_one_more_than_cores_where_memory_allows(cores: int, room_for: int, expected: int) -> None:
    assert process_count(cores, room_for * PROCESS_BYTES) == expected
