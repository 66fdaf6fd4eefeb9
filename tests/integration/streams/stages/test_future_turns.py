"""A turn whose time is ahead of the broker's: local time that was sent as UTC, or a clock that is fast."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


async def said(pipeline: InProcessPipeline, text: str, offset: int, *, ahead: timedelta, now: datetime) -> Commit:
    turn = Turn(
        turn_id=f"t{offset}",
        scope=Scope(user_id="alice"),
        messages=(Message(role="user", content=text),),
        occurred_at=now + ahead,
        speaker="Alice",
    )
    return await pipeline.process_turn(turn, partition=0, offset=offset, now=now)


async def test_the_next_move_is_not_born_superseded(database: str) -> None:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:
        hasty = await said(pipeline, "I live in Bern.", 0, ahead=timedelta(hours=9), now=NOON)
        later = NOON + timedelta(minutes=10)
        await said(pipeline, "I live in Ulm now.", 1, ahead=timedelta(0), now=later)
        async with pipeline.pool.connection() as connection:
            rows = await (await connection.execute("SELECT value, status, true_from FROM facts ORDER BY 3")).fetchall()
    assert rows == [("Bern", "superseded", NOON), ("Ulm", "active", later)]
    (note,) = hasty.provenance.steps[0].notes
    assert note.startswith("occurred_at 2026-03-02T21:00:00+00:00 was ahead")


async def test_a_turn_of_a_far_future_is_rejected_and_changes_nothing(database: str) -> None:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:
        commit = await said(pipeline, "I live in Bern.", 0, ahead=timedelta(days=26_000), now=NOON)
    assert (commit.outcome, commit.reason, commit.events) == ("rejected", "in_the_future", ())
    assert "occurred_at is 2097-" in commit.detail
