"""Ten ways of a server to fail: no healthy prompt is refused, every culprit ends, and an outage ends nothing."""

import pytest

from tests.support.endpoint_simulation import WAYS, Way, simulate

MOST_ATTEMPTS = 40


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.name))
def test_no_healthy_prompt_is_refused_and_every_culprit_ends(way: Way) -> None:
    outcome = simulate(way)
    assert outcome.refused == 0
    assert outcome.ended_culprits == way.culprits
    assert outcome.most_attempts <= MOST_ATTEMPTS
    assert outcome.paused == way.is_outage
    if way.is_outage:
        assert outcome.finished_at < 3600 + 60
    elif way.culprits and not way.embeds:
        assert outcome.delay < 1
