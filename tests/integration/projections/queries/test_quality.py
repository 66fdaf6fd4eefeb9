"""How often memory is overwritten, and how often wrongly, counted from real tables."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from mnemolog.projections.database import open_pool
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.facts import Reversal
from mnemolog.streams.runtime.background import update_quality_metrics
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    contradicted,
    corrected,
    day,
    event_id_at,
    fact_id_at,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    retracted,
    undone,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
KNOWN = commit("0", *(added(f"Old {number}.") for number in range(8)))
OLD = [fact_id_at(KNOWN, ordinal) for ordinal in range(8)]


@pytest.fixture
async def db(database: str) -> AsyncIterator[ProjectedDatabase]:
    async with ProjectedDatabase.open(database) as stored:
        await stored.apply(KNOWN)
        yield stored


def by_model(draft: Draft, model: str = "m1") -> Draft:
    return with_decision(draft, by="model", model=model, prompt_version="resolve-2")


def by_human(draft: Draft) -> Draft:
    return with_decision(draft, by="human")


async def overwrite_counts(db: ProjectedDatabase, scope: ScopeFilter | None = None) -> DecisionQuality:
    return await decision_quality(db.conn, scope, day(0), day(20))


async def test_an_overwrite_is_wrong_once_somebody_takes_it_back(db: ProjectedDatabase) -> None:
    one = commit(
        "1",
        by_model(replaced("New 0.", OLD[0])),
        by_model(replaced("New 1.", OLD[1])),
        by_model(contradicted("New 2.", OLD[2]), "m2"),
        by_model(retracted(OLD[3], ended_at=day(1))),
        by_model(pending("New 4.", OLD[4])),
        at=day(1),
    )
    await db.apply(one)
    before = await overwrite_counts(db)
    assert (sum(row.overwrites for row in before.overwrites), before.wrong_overwrite_rate) == (5, 0.0)

    back = Reversal(fact_id=fact_id_at(one, 0), now="active", before=None)
    await db.apply(
        commit("2", undone(event_id_at(one, 0), back), at=day(2)),
        commit("3", by_human(corrected("A human's.", fact_id_at(one, 2))), at=day(2)),
        commit("4", pending_rejected(fact_id_at(one, 4)), at=day(2)),
    )
    after = await overwrite_counts(db)
    assert {
        (row.model, row.event): (row.overwrites, row.undone, row.rejected, row.corrected)
        for row in after.overwrites
        if row.by == "model"
    } == {
        ("m1", "fact_replaced"): (2, 1, 0, 0),
        ("m1", "fact_retracted"): (1, 0, 0, 0),
        ("m1", "fact_pending"): (1, 0, 1, 0),
        ("m2", "fact_contradicted"): (1, 0, 0, 1),
    }
    assert after.wrong_overwrite_rate == pytest.approx(3 / 5)


async def test_an_undo_that_was_undone_itself_makes_nothing_wrong(db: ProjectedDatabase) -> None:
    one = commit("1", by_model(replaced("New.", OLD[0])), at=day(1))
    two = commit("2", undone(event_id_at(one), Reversal(fact_id=fact_id_at(one), now="active", before=None)), at=day(2))
    await db.apply(one, two)
    assert (await overwrite_counts(db)).wrong_overwrite_rate == 1.0

    back = undone(event_id_at(two), undone_event="decision_undone", reinstated=event_id_at(one))
    await db.apply(commit("3", back, at=day(3)))
    assert (await overwrite_counts(db)).wrong_overwrite_rate == 0.0


async def test_what_rules_humans_and_the_timer_decide_is_no_overwrite_of_a_model(db: ProjectedDatabase) -> None:
    await db.apply(
        commit(
            "1",
            with_decision(replaced("New.", OLD[0]), by="application"),
            by_human(corrected("Right.", OLD[1])),
            at=day(1),
        )
    )
    quality = await overwrite_counts(db)
    assert [(row.by, row.event, row.overwrites) for row in quality.overwrites] == [
        ("application", "fact_replaced", 1),
        ("human", "fact_corrected", 1),
    ]
    assert (quality.overwrite_rate, quality.wrong_overwrite_rate) == (0.0, None)


async def test_pending_facts_are_counted_until_they_are_settled(db: ProjectedDatabase) -> None:
    held = commit("1", *(by_model(pending(f"New {number}.", OLD[number])) for number in range(4)), at=day(1))
    await db.apply(
        held,
        commit("2", pending_confirmed(fact_id_at(held, 0), OLD[0]), at=day(2)),
        commit("3", pending_rejected(fact_id_at(held, 1)), at=day(4)),
        commit("4", retracted(fact_id_at(held, 2)), at=day(4)),
    )
    quality = (await overwrite_counts(db)).held
    assert (quality.held, quality.confirmed, quality.rejected, quality.overtaken, quality.open) == (4, 1, 1, 1, 1)
    assert quality.resolution_rate == pytest.approx(0.5)
    assert timedelta(seconds=quality.oldest_seconds) == day(20) - held.decided_at
    assert timedelta(seconds=quality.median_seconds) == timedelta(days=3)


async def test_unresolved_and_stale_are_counted_and_scopes_are_kept_apart(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Doubtful.", unresolved=True), by_model(replaced("New.", OLD[0])), at=day(1)),
        commit("2", by_model(replaced("Too late.", OLD[0])), at=day(2)),
    )
    mine, others = (
        await overwrite_counts(db, ScopeFilter.of_scope(ALICE)),
        await overwrite_counts(db, ScopeFilter.of_scope(BOB)),
    )
    assert (mine.unresolved, mine.stale, [row.overwrites for row in mine.overwrites]) == (1, 1, [1])
    assert (others.unresolved, others.stale, others.overwrites) == (0, 0, ())


async def test_a_question_about_no_interval_is_refused(db: ProjectedDatabase) -> None:
    with pytest.raises(QueryError, match="an earlier since, or a later until"):
        await decision_quality(db.conn, None, day(2), day(1))


async def test_the_figures_are_shown_to_prometheus(db: ProjectedDatabase, database: str) -> None:
    one = commit("1", by_model(replaced("New.", OLD[0])), by_model(pending("Held.", OLD[1])), at=day(1))
    back = Reversal(fact_id=fact_id_at(one, 0), now="active", before=None)
    await db.apply(one, commit("2", undone(event_id_at(one, 0), back), at=day(2)))
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        await update_quality_metrics(pool, day(3))
    shown = REGISTRY.get_sample_value
    by = {"model": "m1", "prompt_version": "resolve-2"}
    results = {name: shown("mnemolog_recent_overwrites", {"result": name, **by}) for name in ("undone", "open", "kept")}
    assert results == {"undone": 1, "open": 1, "kept": 0}
    assert shown("mnemolog_pending") == 1
    assert shown("mnemolog_pending_oldest_seconds") == (day(3) - one.decided_at).total_seconds()
