"""Belief at any instant, exactly as it was then, whatever happened since; on a real Postgres."""

from dataclasses import asdict
from datetime import datetime

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState, Reversal
from tests.support.builders.commits import (
    ALICE,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    resolved,
    retracted,
    skipped,
    undone,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)


def state_of(fact: Fact) -> FactState:
    return FactState(**{name: getattr(fact, name) for name in FactState.model_fields})


async def current_states(db: ProjectedDatabase, committed: Commit, ordinal: int) -> FactState:
    every = await facts(db.conn, MINE, all_versions=True, at=day(0))
    return next(state_of(fact) for fact in every if fact.fact_id == fact_id_at(committed, ordinal))


async def facts_at(db: ProjectedDatabase, at: datetime) -> list[Fact]:
    return await facts(db.conn, MINE, at=at)


async def test_every_instant_of_the_past_is_told_as_it_was_told_then(db: ProjectedDatabase) -> None:
    """Every event that can change a fact, one a day; each day is asked again at the end."""
    one = commit("1", *(added(f"Fact {number}.", confidence=0.6) for number in range(14)), added("X.", unresolved=True))
    await db.apply(one)
    before = await current_states(db, one, 3)
    waiting = commit("w", pending("Perhaps.", fact_id_at(one, 8)), pending("Hardly.", fact_id_at(one, 9)), at=day(1))
    replacing = commit("r", replaced("Now 3.", fact_id_at(one, 3)), at=day(2))
    drafts = (
        waiting,
        replacing,
        commit("3", skipped(fact_id_at(one, 0)), confirmed(fact_id_at(one, 1)), skipped(fact_id_at(one, 1)), at=day(3)),
        commit("4", merged("Fact 2 and 4.", fact_id_at(one, 2), fact_id_at(one, 4)), at=day(4)),
        commit(
            "5", contradicted("Rather 5.", fact_id_at(one, 5)), extended("More of 6.", fact_id_at(one, 6)), at=day(5)
        ),
        commit("6", retracted(fact_id_at(one, 6), ended_at=day(5.5), text="No longer 6."), at=day(6)),
        commit("7", expired(fact_id_at(one, 7), ended_at=day(12), text="Until the 12th."), at=day(7)),
        commit("8", pending_confirmed(fact_id_at(waiting), fact_id_at(one, 8)), at=day(8)),
        commit("9", pending_rejected(fact_id_at(waiting, 1), confirmed=fact_id_at(one, 9), text="9 again."), at=day(9)),
        commit("10", corrected("Truly 10.", fact_id_at(one, 10)), at=day(10)),
        commit("11", retracted(fact_id_at(one, 11)), at=day(11)),
        commit("13", expired(fact_id_at(one, 7), ended_at=day(12)), at=day(13)),
        commit(
            "14", resolved(fact_id_at(one, 14), fact_id_at(one, 12), action="replace", ended_at=day(14)), at=day(14)
        ),
        commit(
            "15",
            undone(
                event_id_at(replacing),
                Reversal(fact_id=fact_id_at(one, 3), now="superseded", before=before),
                Reversal(fact_id=fact_id_at(replacing), now="active", before=None),
            ),
            at=day(15),
        ),
    )
    answers = {one.decided_at: await facts_at(db, one.decided_at)}
    for made in drafts:
        await db.apply(made)
        answers[made.decided_at] = await facts_at(db, made.decided_at)
    assert [fact.text for fact in answers[drafts[-1].decided_at] if "3" in fact.text] == ["Fact 3.", "Fact 13."]
    distinct = {str([asdict(fact) for fact in facts]) for facts in answers.values()}
    assert len(distinct) == len(answers) - 1  # what waits changes no belief
    for at, then in answers.items():
        assert await facts_as_of(db.conn, MINE, believed_at=at, true_at=at) == then


async def test_several_events_of_one_commit_leave_no_moment_between_them(db: ProjectedDatabase) -> None:
    one = commit("1", added("A.", confidence=0.6))
    two = commit("2", confirmed(fact_id_at(one)), skipped(fact_id_at(one)), replaced("B.", fact_id_at(one)), at=day(1))
    await db.apply(one, two)
    (before,) = await facts_as_of(db.conn, MINE, believed_at=day(1), true_at=day(1))
    assert (before.text, before.confidence, before.mention_count) == ("A.", 0.6, 1)
    at = two.decided_at
    (after,) = await facts_as_of(db.conn, MINE, believed_at=at, true_at=at)
    assert after.text == "B."
    (old,) = await facts_as_of(db.conn, MINE, believed_at=at, true_at=day(0.5))
    assert (old.confidence, old.mention_count, old.status) == (0.7, 3, "superseded")


async def test_a_time_without_a_zone_is_refused(db: ProjectedDatabase) -> None:
    with pytest.raises(QueryError, match="believed_at needs a zone"):
        await facts_as_of(db.conn, MINE, believed_at=day(1).replace(tzinfo=None), true_at=day(1))
