"""What feedback says of searches, counted from real tables."""

from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY

from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.quality import FeedbackFigures, decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Feedback
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.runtime.background import update_quality_metrics
from tests.support.builders.commits import ALICE, BOB, command_commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
IDS = [uuid4() for _ in range(12)]


def feedback(number: int, shown: list[UUID], used: list[UUID], scope: Scope = ALICE, *, at: float = 1) -> Commit:
    payload = Feedback(shown=tuple(shown), used=tuple(used), query="Where?")
    return command_commit(f"c{number}", payload, scope=scope, at=day(at))


async def figures(db: ProjectedDatabase, scope: Scope | None = ALICE) -> FeedbackFigures:
    within = ScopeFilter.of_scope(scope) if scope else None
    return (await decision_quality(db.conn, within, day(0), day(20))).feedback


async def test_recall_counts_what_was_used_by_the_rank_at_which_it_was_shown(db: ProjectedDatabase) -> None:
    await db.apply(
        feedback(1, IDS[:12], [IDS[0], IDS[11]]),
        feedback(2, IDS[:2], [IDS[1], IDS[5]]),
        feedback(3, [], [IDS[7]]),
    )
    found = await figures(db)
    assert found.used_at_rank == {1: 1, 2: 1, 12: 1}
    assert (found.used, found.missed) == (5, 2)
    assert found.recall_at == {1: 0.2, 5: 0.4, 10: 0.4, 20: 0.6}


async def test_other_scopes_other_times_and_commands_that_were_refused_do_not_count(db: ProjectedDatabase) -> None:
    refused = feedback(3, IDS[:1], IDS[:1]).model_copy(update={"outcome": "rejected", "reason": "invalid_command"})
    await db.apply(feedback(1, IDS[:1], IDS[:1], BOB), feedback(2, IDS[:1], IDS[:1], at=30), refused)
    assert await figures(db) == FeedbackFigures()
    assert (await figures(db)).recall_at == dict.fromkeys((1, 5, 10, 20))
    assert (await figures(db, None)).used == 1


async def test_the_gauges_show_groups_of_ranks(database: str, db: ProjectedDatabase) -> None:
    await db.apply(feedback(1, IDS[:12], [IDS[0], IDS[11], uuid4()]))
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        await update_quality_metrics(pool, day(2))

    def used(rank: str) -> float | None:
        return REGISTRY.get_sample_value("mnemolog_recent_feedback_facts", {"rank": rank})

    ranks = ("1", "2-5", "6-10", "11-20", "21+", "missed")
    assert [used(rank) for rank in ranks] == [1, 0, 0, 1, 0, 1]
