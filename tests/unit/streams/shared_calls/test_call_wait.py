"""How long a turn waits for others."""

import pytest

from mnemolog.streams.stages.shared_calls import CallWait


@pytest.mark.parametrize(
    ("waited", "linger", "expected"),
    [
        (0.0, 0.0, CallWait()),
        (0.0, 5.0, CallWait(linger=5.0)),
        (3.0, 5.0, CallWait(linger=2.0, arriving=3.0)),
        (60.0, 5.0, CallWait(arriving=5.0)),
        (-1.0, 5.0, CallWait(linger=5.0)),
    ],
)
def test_an_extraction_waits_for_any_turn_until_its_linger_is_over_and_in_a_backlog_for_what_is_read(
    waited: float, linger: float, expected: CallWait
) -> None:
    assert CallWait.of_extraction(waited, linger=linger) == expected
