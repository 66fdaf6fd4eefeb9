"""Runs labelled dialogues through the pipeline, some at once, and reads what they left in memory."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString
from uuid import UUID

from mnemolog.projections.queries.entities import EntityRelation, entities, relations
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import EntityLink
from mnemolog.schemas.entity_events import FactLinked
from mnemolog.schemas.events import FactPending
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from tests.quality.scores import Cost
from tests.quality.understanding.cases import DialogueCase
from tests.support.harnesses.in_process_pipeline import InProcessPipeline

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)
_FACTS: Final[LiteralString] = """
SELECT fact_id, text, subject, status, true_to FROM facts WHERE user_id = %s ORDER BY recorded_at, ordinal
"""
_MERGED: Final[LiteralString] = """
SELECT entity_id, merged_into FROM entities WHERE user_id = %s AND merged_into IS NOT NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFact:
    """A fact after the dialogue; `is_held` while it is active, or waits for a confirmation, and has not ended."""

    fact_id: UUID
    text: str
    subject: str
    is_held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEntity:
    """An entity after the dialogue, with all its names."""

    names: tuple[str, ...]
    is_user: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a dialogue left: by turn the facts that it stated or repeated, by fact the entities that it names.

    One that was merged is what it was merged into. `challenged` are facts that a pending one would end. `relations` are
    those that hold, and those that did, each as it was stated.
    """

    facts: Mapping[UUID, SeenFact]
    turns: Sequence[frozenset[UUID]]
    links: Mapping[UUID, tuple[EntityLink, ...]]
    entities: Mapping[UUID, SeenEntity]
    challenged: frozenset[UUID]
    relations: Sequence[EntityRelation]
    cost: Cost


async def run_cases(pipeline: InProcessPipeline, cases: Sequence[DialogueCase], *, at_once: int) -> list[CaseResult]:
    """What became of each case, in their order; each has a user of its own."""
    places = asyncio.Semaphore(at_once)

    async def one(number: int, case: DialogueCase) -> CaseResult:
        async with places:
            return await _run(pipeline, number, case)

    return list(await asyncio.gather(*(one(number, case) for number, case in enumerate(cases))))


async def _run(pipeline: InProcessPipeline, number: int, case: DialogueCase) -> CaseResult:
    turns = list(_turns(case))
    commits = [
        await pipeline.process_turn(turn, partition=number, offset=offset, now=turn.occurred_at)
        for offset, turn in enumerate(turns)
    ]
    now = turns[-1].occurred_at
    async with pipeline.pool.connection() as connection:
        rows = await (await connection.execute(_FACTS, [case.id])).fetchall()
        merged: dict[UUID, UUID] = dict(await (await connection.execute(_MERGED, [case.id])).fetchall())
        whole = ScopeFilter(user_id=case.id, run_id="**")
        found, related = await entities(connection, whole), await relations(connection, whole, all_versions=True)
    return CaseResult(
        facts={row[0]: _seen_fact(*row, now=now) for row in rows},
        turns=[frozenset(_told(commit)) for commit in commits],
        links={one.fact_id: tuple(_merged(one.links, merged)) for commit in commits for one in _linked(commit)},
        entities={one.entity_id: SeenEntity(names=(one.name, *one.aliases), is_user=one.is_user) for one in found},
        challenged=frozenset(_challenged(commits)),
        relations=related,
        cost=_cost(commits),
    )


def _turns(case: DialogueCase) -> Iterator[Turn]:
    at = START
    for place, said in enumerate(case.turns):
        at += STEP + timedelta(days=said.days)
        yield Turn(
            turn_id=f"{case.id}/{place}",
            scope=Scope(user_id=case.id, run_id=said.run),
            messages=said.messages,
            occurred_at=at,
            speaker=case.speaker,
        )


def _seen_fact(
    fact_id: UUID, text: str, subject: str | None, status: str, true_to: datetime | None, *, now: datetime
) -> SeenFact:
    is_held = status in ("active", "pending_confirmation") and (true_to is None or true_to > now)
    return SeenFact(fact_id=fact_id, text=text, subject=subject or "", is_held=is_held)


def _told(commit: Commit) -> Iterator[UUID]:
    """The facts that a turn brought, and the known ones that it repeated."""
    for event in commit.events:
        if event.new_fact is not None:
            yield event.new_fact.fact_id
        if event.repeated_id is not None:
            yield event.repeated_id


def _linked(commit: Commit) -> Iterator[FactLinked]:
    return (event for event in commit.entity_events if isinstance(event, FactLinked))


def _merged(links: Sequence[EntityLink], merged: Mapping[UUID, UUID]) -> Iterator[EntityLink]:
    for link in links:
        yield link.model_copy(update={"entity_id": merged.get(link.entity_id, link.entity_id)})


def _challenged(commits: Sequence[Commit]) -> Iterator[UUID]:
    for commit in commits:
        for event in commit.events:
            if isinstance(event, FactPending):
                yield from event.targets


def _cost(commits: Sequence[Commit]) -> Cost:
    steps = [step for commit in commits for step in commit.provenance.steps]
    return Cost(
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
    )
