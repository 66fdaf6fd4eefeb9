"""What was known at each time to be true at each time; the properties ask random histories."""

from dataclasses import replace

import pytest

from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from tests.support.builders.commits import (
    ALICE,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    expired,
    fact_id_at,
    merged,
    replaced,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE = ScopeFilter.of_scope(ALICE)


async def test_every_instant_of_the_past_is_told_as_it_was_told_then(db: ProjectedDatabase) -> None:
    """Every event that can change a fact, a commit a day; each day is asked again at the end, for each column."""
    known = commit("1", *(added(f"Known {number}.", confidence=0.6) for number in range(6)), at=day(12))
    ids = [fact_id_at(known, number) for number in range(6)]
    touches = (
        *(skipped(ids[0]), confirmed(ids[1]), skipped(ids[1]), merged("Both.", ids[2], ids[3])),
        *(contradicted("Rather.", ids[4]), expired(ids[5], ended_at=day(15), text="Until the 15th.")),
    )
    ended = commit("3", expired(ids[5], ended_at=day(15)), at=day(16))
    answers = {}
    for made in (*every_decision_log()[:8], known, commit("2", *touches, at=day(13)), ended):
        await db.apply(made)
        answers[made.decided_at] = await facts(db.conn, MINE, at=made.decided_at)
    for number, source in enumerate(("d8", "c0", "2")):
        made = await CommandHarness(db).execute(f"c{number}", Undo(source_id=source), at=day(17 + number))
        answers[made.decided_at] = await facts(db.conn, MINE, at=made.decided_at)
    assert len({repr([(fact.text, fact.mention_count) for fact in then]) for then in answers.values()}) >= 10
    for at, then in answers.items():
        told = [replace(fact, disputed=False) for fact in then]  # what was disputed is told of the present alone
        assert await facts_as_of(db.conn, MINE, believed_at=at, true_at=at) == told


async def test_several_events_of_one_commit_leave_no_moment_between_them(db: ProjectedDatabase) -> None:
    one = commit("1", added("A.", confidence=0.6))
    two = commit("2", confirmed(fact_id_at(one)), skipped(fact_id_at(one)), replaced("B.", fact_id_at(one)), at=day(1))
    await db.apply(one, two)
    (before,) = await facts_as_of(db.conn, MINE, believed_at=day(1), true_at=day(1))
    assert (before.text, before.confidence, before.mention_count) == ("A.", 0.6, 1)
    (after,) = await facts_as_of(db.conn, MINE, believed_at=two.decided_at, true_at=two.decided_at)
    assert after.text == "B."
    (old,) = await facts_as_of(db.conn, MINE, believed_at=two.decided_at, true_at=day(0.5))
    assert (old.confidence, old.mention_count, old.status) == (0.7, 3, "superseded")
