"""Recorded dialogues through the pipeline, each as one user's, message by message; their figures as a table."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import open_pool
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.settings import StreamsSettings
from tests.bench.markdown import table
from tests.quality.recorded.speaker_check import SpeakerFigures, check_speakers
from tests.recall.dialogues import Dialogues, RecordedTurn
from tests.support.harnesses.in_process_pipeline import InProcessPipeline
from tests.support.harnesses.worker_harness import publish_records, running_worker, wait_for_outcomes

BACKLOG_SECONDS: Final = 900.0
_COSTS: Final[LiteralString] = """
SELECT
    count(DISTINCT source_id),
    coalesce(sum((step ->> 'llm_calls')::bigint), 0),
    coalesce(sum((step ->> 'input_tokens')::bigint) FILTER (WHERE step ->> 'stage' <> 'embed'), 0)
FROM commits CROSS JOIN LATERAL jsonb_array_elements(provenance -> 'steps') AS step
WHERE user_id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueFigures:
    """One dialogue: its turns, what they cost together, and whom its facts are about."""

    conversation: str
    turns: int
    llm_calls: int
    input_tokens: int
    speakers: SpeakerFigures


async def run_dialogues(
    pipeline: InProcessPipeline, dialogues: Dialogues, *, annotated: bool, turns: int | None
) -> list[DialogueFigures]:
    """The figures of each dialogue, or of its first `turns`; where `annotated`, its facts are the annotators'."""

    async def run(partition: int, said: Sequence[RecordedTurn]) -> DialogueFigures:
        for offset, turn in enumerate(dialogue_turns(said)):
            await pipeline.process_turn(turn, partition=partition, offset=offset, now=turn.occurred_at)
        async with pipeline.pool.connection() as connection:
            return await _figures(connection, dialogues, said, annotated=annotated)

    runs = (run(number, some) for number, some in enumerate(said_in(dialogues, turns)))
    return list(await asyncio.gather(*runs))


async def run_backlog(settings: StreamsSettings, dialogues: Dialogues, *, turns: int | None) -> list[DialogueFigures]:
    """The same through a worker that finds all turns waiting, so that turns share calls; facts are the annotators'.

    `settings` name a Kafka and a Postgres of the run.
    """
    assert settings.kafka is not None
    assert settings.postgres is not None
    said = said_in(dialogues, turns)
    await ensure_topics(settings.kafka_address, partitions=settings.partitions, prefix=settings.topic_prefix)
    await publish_records(settings, *(turn for some in said for turn in dialogue_turns(some)))
    async with running_worker(settings):
        await wait_for_outcomes(settings.postgres, sum(map(len, said)), seconds=BACKLOG_SECONDS)
    async with (
        open_pool(settings.postgres, min_size=1, max_size=1, application_name="test") as pool,
        pool.connection() as connection,
    ):
        return [await _figures(connection, dialogues, some, annotated=True) for some in said]


async def _figures(
    connection: AsyncConnection[TupleRow], dialogues: Dialogues, said: Sequence[RecordedTurn], *, annotated: bool
) -> DialogueFigures:
    """Tokens are those of language models; vectors are not counted."""
    user = said[0].conversation
    subjects = {fact.text: fact.subject for fact in dialogues.facts} if annotated else {}
    ((count, calls, tokens),) = await (await connection.execute(_COSTS, [user])).fetchall()
    return DialogueFigures(
        conversation=user,
        turns=count,
        llm_calls=int(calls),
        input_tokens=int(tokens),
        speakers=await check_speakers(connection, user, said, subjects),
    )


def said_in(dialogues: Dialogues, turns: int | None) -> list[list[RecordedTurn]]:
    """Of each dialogue what was said, or its first `turns`."""
    names = sorted({turn.conversation for turn in dialogues.turns})
    return [[turn for turn in dialogues.turns if turn.conversation == name][:turns] for name in names]


def dialogue_turns(said: Sequence[RecordedTurn]) -> Iterator[Turn]:
    """As an application sends them: the turn names who speaks."""
    for one in said:
        yield Turn(
            turn_id=one.turn_id,
            scope=Scope(user_id=one.conversation),
            messages=(Message(role="user", content=one.text, name=one.speaker),),
            occurred_at=one.occurred_at,
            speaker=one.speaker,
        )


def figures_table(figures: Sequence[DialogueFigures]) -> str:
    """A line a dialogue: calls and prompt tokens (of four characters) are divided by its turns.

    A wrong fact is about another speaker, about nobody, or has words that were not said; a wrong tie is a name such as
    "Melanie's brother" that is kept as the brother of another person.
    """
    rows = []
    for one in figures:
        found = one.speakers
        counts = (one.turns, found.facts, found.of_speaker, found.of_others, len(found.wrong), len(found.wrong_ties))
        people = (sum(found.types.values()), found.types.get("person", 0), found.speakers)
        costs = (f"{one.llm_calls / one.turns:.2f}", f"{one.input_tokens / one.turns:.0f}")
        rows.append((one.conversation, *map(str, (*counts, *people)), *costs))
    facts = ("dialogue", "turns", "facts", "speaker's", "others'", "wrong", "wrong ties")
    return table((*facts, "entities", "people", "speakers", "calls", "tokens"), rows)
