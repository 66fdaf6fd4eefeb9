"""Runs labelled cases through the pipeline, each in a scope of its own, some at once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from time import perf_counter
from typing import Final, LiteralString

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.quality.cases import Case, Utterance
from tests.quality.scores import CaseResult, Cost, Row
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

DECIDED_AFTER: Final = timedelta(seconds=5)
_ROWS: Final[LiteralString] = """
SELECT fact_id, source_id, text, status, true_to IS NOT NULL AS ending
FROM facts WHERE user_id = %s ORDER BY recorded_at, ordinal
"""


async def run_cases(
    pipeline: InProcessPipeline,
    cases: Sequence[Case],
    *,
    at_once: int,
    on_done: Callable[[Case], None] = lambda _: None,
) -> list[CaseResult]:
    """What happened to each case, in their order; `on_done` hears of each that is done."""
    places = asyncio.Semaphore(at_once)

    async def one(number: int, case: Case) -> CaseResult:
        async with places:
            observed = await run_case(pipeline, case, partition=number)
        on_done(case)
        return observed

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, case)) for number, case in enumerate(cases)]
    return [task.result() for task in tasks]


async def run_case(pipeline: InProcessPipeline, case: Case, *, partition: int) -> CaseResult:
    """Say what was known, each statement as a turn of its own, then the turn that counts."""
    known: list[Commit] = []
    now = case.known[0].at
    for offset, said in enumerate(case.known):
        now = max(now, said.at) + DECIDED_AFTER
        turn = _turn(case, f"{case.id}/known-{offset}", said)
        known.append(await pipeline.process_turn(turn, partition=partition, offset=offset, now=now))
    before = await _rows(pipeline, case)
    started = perf_counter()
    last = await pipeline.process_turn(
        _turn(case, f"{case.id}/turn", case.turn), partition=partition, offset=len(known), now=_later(now, case.turn.at)
    )
    milliseconds = (perf_counter() - started) * 1000
    after = await _rows(pipeline, case)
    cost = _cost([*known, last], milliseconds)
    return CaseResult(known=known, turn=last, before=before, after=after, cost=cost)


def _later(now: datetime, said_at: datetime) -> datetime:
    """An older message that arrives later is decided later."""
    return max(now, said_at) + DECIDED_AFTER


def _turn(case: Case, turn_id: str, said: Utterance) -> Turn:
    return Turn(
        turn_id=turn_id,
        scope=Scope(user_id=case.id),
        messages=(Message(role="user", content=said.text),),
        occurred_at=said.at,
        speaker=case.speaker,
    )


async def _rows(pipeline: InProcessPipeline, case: Case) -> list[Row]:
    async with pipeline.pool.connection() as connection:
        found = await (await connection.execute(_ROWS, [case.id])).fetchall()
    return [
        Row(fact_id=fact_id, source_id=source_id, text=text, status=status, ending=ending)
        for fact_id, source_id, text, status, ending in found
    ]


def _cost(commits: Sequence[Commit], milliseconds: float) -> Cost:
    steps = [step for commit in commits for step in commit.provenance.steps]
    return Cost(
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        milliseconds=round(milliseconds, 3),
    )
