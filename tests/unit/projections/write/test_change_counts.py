"""What is counted of a batch of commits."""

from prometheus_client import REGISTRY

from mnemolog.projections.write.change_counts import count_changes
from tests.support.builders.commits import day, event_id_at, fact_id_at, replaced, undone
from tests.support.harnesses.fold_harness import BERN, FoldHarness, expected_state, reversal


def taken_back() -> float:
    return REGISTRY.get_sample_value("mnemolog_overwrites_taken_back_total", {"how": "undone"}) or 0.0


def test_an_undo_that_finds_nothing_as_it_was_is_not_counted() -> None:
    harness = FoldHarness()
    moved = harness.commit("t2", replaced("Alice lives in Rome.", BERN))
    stale = reversal(fact_id_at(moved), "archived", expected_state())
    before = taken_back()
    harness.commit("u1", undone(event_id_at(moved), stale, undone_event="fact_replaced"), at=day(3))
    assert harness.changes.undone == ()
    count_changes(harness.changes, day(3))
    assert taken_back() == before
    sound = reversal(BERN, "superseded", expected_state())
    harness.commit("u2", undone(event_id_at(moved), sound, undone_event="fact_replaced"), at=day(4))
    count_changes(harness.changes, day(4))
    assert taken_back() == before + 1
