"""Takes recorded dialogues through a worker that finds all their turns waiting, so that turns share calls."""

from typing import Final, LiteralString

from mnemolog.projections.database import open_pool
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.settings import StreamsSettings
from tests.quality.recorded.dialogue_run import DialogueFigures, dialogue_turns, said_in, subjects_of
from tests.quality.recorded.speaker_check import check_speakers
from tests.recall.dialogues import Dialogues
from tests.support.harnesses.worker_harness import publish_records, query_rows, running_worker, wait_for_outcomes

_SECONDS: Final = 900.0
_TAKEN: Final[LiteralString] = """
SELECT
    user_id,
    coalesce(sum((step ->> 'llm_calls')::bigint), 0) AS calls,
    coalesce(sum((step ->> 'input_tokens')::bigint) FILTER (WHERE step ->> 'stage' <> 'embed'), 0) AS tokens
FROM commits CROSS JOIN LATERAL jsonb_array_elements(provenance -> 'steps') AS step
GROUP BY user_id
"""


async def run_backlog(
    settings: StreamsSettings, dialogues: Dialogues, *, annotated: bool, turns: int | None
) -> list[DialogueFigures]:
    """The figures of each dialogue, as those of `run_dialogues`; `settings` name a Kafka and a Postgres of the run."""
    assert settings.kafka is not None
    assert settings.postgres is not None
    said = said_in(dialogues, turns)
    total = sum(map(len, said))
    await ensure_topics(settings.kafka, partitions=settings.partitions, prefix=settings.topic_prefix)
    await publish_records(settings, *(turn for some in said for turn in dialogue_turns(some)))
    async with running_worker(settings):
        await wait_for_outcomes(settings.postgres, total, seconds=_SECONDS)
    taken = {row["user_id"]: row for row in await query_rows(settings.postgres, _TAKEN)}
    subjects = subjects_of(dialogues) if annotated else {}
    async with (
        open_pool(settings.postgres, min_size=1, max_size=1, application_name="test") as pool,
        pool.connection() as connection,
    ):
        checks = [await check_speakers(connection, some[0].conversation, some, subjects) for some in said]
    return [
        DialogueFigures(
            conversation=some[0].conversation,
            turns=len(some),
            llm_calls=int(taken[some[0].conversation]["calls"]),
            input_tokens=int(taken[some[0].conversation]["tokens"]),
            speakers=check,
        )
        for some, check in zip(said, checks, strict=True)
    ]
