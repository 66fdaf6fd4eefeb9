"""Why a fact is what it is: the turn, what was read from it, what it was held against, and what followed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows, with_fact_columns
from mnemolog.projections.queries.errors import UnknownFactError
from mnemolog.projections.queries.explain_sentences import (
    ExplanationFacts,
    FactExtraction,
    FactSource,
    explanation_sentences,
)
from mnemolog.projections.queries.facts import fact_texts
from mnemolog.projections.queries.history import FactEvent, FactRelation, fact_events
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.trace import TracedDecision, fact_ids_of_event, traced_decision
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import NewFact
from mnemolog.schemas.provenance import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A fact, where it came from, how it was read and decided, and what happened to it since.

    `extraction` is None for a fact of a command. `thresholds` are the similarities that held when it was decided.
    `words` says all of it in sentences, for people.
    """

    fact: Fact
    source: FactSource
    extraction: FactExtraction | None
    decision: TracedDecision
    thresholds: dict[str, Any] | None
    later: list[FactEvent]
    relations: list[FactRelation]
    words: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OriginEvent:
    event_id: UUID
    record: bytes
    messages: list[dict[str, Any]] | None


async def explain(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> Explanation:
    """Everything that is known of how a fact came about. Raises `UnknownFactError`."""
    named = {"tenant": tenant, "fact_id": fact_id}
    facts = await fetch_rows(conn, Fact, with_fact_columns(queries("explaining")["fact"]), named)
    if not facts:
        raise UnknownFactError(tenant, fact_id)
    (fact,) = facts
    (origin,) = await fetch_rows(conn, _OriginEvent, queries("explaining")["origin"], named)
    commit = Commit.from_bytes(origin.record)
    event = next(event for event in commit.events if event.event_id == origin.event_id)
    touched = await fact_events(conn, fact, [fact_id])
    later = [touch for touch in touched if touch.event_id != origin.event_id]
    relations = await fetch_rows(conn, FactRelation, queries("history")["relations"], {"fact_ids": [fact_id]})
    known = await fact_texts(conn, fact.scope, _named_fact_ids(event, later))
    account = ExplanationFacts(
        fact=fact,
        source=_source(commit, origin.messages),
        extraction=_extraction(commit, event.new_fact),
        decision=traced_decision(event, known),
        later=later,
        relations=relations,
        texts=known,
    )
    return _explanation(account, commit.provenance.thresholds)


def _explanation(account: ExplanationFacts, thresholds: Thresholds | None) -> Explanation:
    return Explanation(
        fact=account.fact,
        source=account.source,
        extraction=account.extraction,
        decision=account.decision,
        thresholds=thresholds.model_dump() if thresholds else None,
        later=account.later,
        relations=account.relations,
        words=explanation_sentences(account),
    )


def _source(commit: Commit, messages: list[dict[str, Any]] | None) -> FactSource:
    return FactSource(
        source_id=commit.source_id,
        kind=commit.source_kind,
        occurred_at=commit.occurred_at,
        published_at=commit.published_at,
        decided_at=commit.decided_at,
        position=commit.origin.position,
        order=commit.order.kind if commit.order else None,
        actor=commit.actor,
        messages=messages,
    )


def _extraction(commit: Commit, fact: NewFact | None) -> FactExtraction | None:
    """How the statement was read; nothing for a command, whose words are taken as they are."""
    if fact is None or commit.source_kind == "command":
        return None
    steps = [step for step in commit.provenance.steps if step.stage == "extract"]
    last = steps[-1] if steps else None
    return FactExtraction(
        excerpt=fact.excerpt,
        certainty=fact.certainty,
        confidence=fact.confidence,
        importance=fact.importance,
        importance_category=fact.importance_category,
        model=last.model if last else None,
        prompt_version=last.prompt_version if last else None,
        complaints=tuple(complaint for step in steps for complaint in step.complaints),
    )


def _named_fact_ids(event: MemoryEvent, later: Iterable[FactEvent]) -> list[UUID]:
    """Every fact that the story names."""
    named = list(fact_ids_of_event(event))
    for touch in later:
        named += [*touch.targets, *filter(None, [touch.fact_id])]
    return list(dict.fromkeys(named))
