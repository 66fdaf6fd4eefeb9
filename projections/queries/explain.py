"""Explains a fact: its turn, what was extracted from it, the candidates, the decision, and what followed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows
from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries import trace
from mnemolog.projections.queries.results import Fact, counted
from mnemolog.projections.queries.scope_filter import read_query
from mnemolog.projections.queries.write_result import fact_texts
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import ResolutionStep, Role
from mnemolog.schemas.entity_events import FactLinked
from mnemolog.schemas.events import FactsMerged, MemoryEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvent:
    """One event: `candidates` are the known facts that the decision weighed, `[{fact_id, similarity}]`.

    `undone` says that it is not in effect any more. An undo is about no single fact. `moved_ends` are the facts that
    the event gave another end, or none, `[{fact_id, ender, ended_at, ended_by, unresolved, beside}]`. `promoted_from`
    is the fact of another scope whose statement led to it: in the history of that one `fact_id` is what it was
    promoted to.
    """

    event_id: UUID
    event: str
    fact_id: UUID | None
    targets: list[UUID]
    source_id: str
    occurred_at: datetime
    decided_at: datetime
    decided_by: str
    reason: str
    model: str | None
    prompt_version: str | None
    guard: str | None
    stale: bool
    undone: bool
    candidates: list[dict[str, Any]]
    moved_ends: list[dict[str, Any]]
    promoted_from: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRelation:
    """`fact_id` extends, or is similar to, `related_id`; it `holds` while both facts are active."""

    fact_id: UUID
    relation: Literal["extends", "similar"]
    related_id: UUID
    text: str
    related_text: str
    since: datetime
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Versions in the order in which they were learned, events in the order of the log."""

    versions: list[Fact]
    events: list[FactEvent]
    relations: list[FactRelation]

    def __repr__(self) -> str:
        """The versions, and the events by name with their reasons, a line for each."""
        versions = [f"  {one.status}: {one.text} ({one.fact_id})" for one in self.versions]
        events = [f"  {one.decided_at:%Y-%m-%d %H:%M %Z} {one.event}: {one.reason}" for one in self.events]
        return "\n".join(
            [f"History, {counted(len(versions), 'version')}:", *versions, f"{counted(len(events), 'event')}:", *events]
        )


async def history(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> History:
    """The fact, what it came from, what came from it, and why. Raises `UnknownFactError`."""
    named = {"tenant": tenant, "fact_id": fact_id}
    versions = await fetch_rows(conn, Fact, read_query("history", "versions"), named)
    if not versions:
        raise UnknownFactError(tenant, fact_id)
    fact_ids = [version.fact_id for version in versions]
    relations = await fetch_rows(conn, FactRelation, queries("history")["relations"], {"fact_ids": fact_ids})
    return History(versions=versions, events=await fact_events(conn, versions[0], fact_ids), relations=relations)


async def fact_events(conn: AsyncConnection[TupleRow], fact: Fact, fact_ids: list[UUID]) -> list[FactEvent]:
    """The events of the scope of `fact` that made, touched or challenged any of these facts, or promoted one."""
    parameters = {**fact.scope.columns, "fact_ids": fact_ids}
    return await fetch_rows(conn, FactEvent, queries("history")["events"], parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSource:
    """The turn or the command that a fact came from; `messages` are None where the journal does not have them.

    `said_at` is when its words were said, where others than the turn's: the turn only settled a conflict about them, or
    the command promoted them; then they are those of `promoted_from`, which `said_in` brought.
    """

    source_id: str
    kind: str
    occurred_at: datetime
    published_at: datetime
    decided_at: datetime
    position: str
    order: str | None
    actor: str | None
    messages: list[dict[str, Any]] | None
    said_at: datetime | None = None
    promoted_from: UUID | None = None
    said_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactExtraction:
    """How a statement was extracted from a turn; without `model` it was stored as it was given.

    `notes` say what of the turn was changed before, `instructions` is the version of those of its policy.
    """

    excerpt: str
    certainty: str
    confidence: float
    importance: float
    importance_category: str | None
    model: str | None
    prompt_version: str | None
    complaints: tuple[str, ...]
    notes: tuple[str, ...] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDecision:
    """What was decided about an entity: the event, by whom and why, and whether it was undone."""

    event: str
    decided_at: datetime
    decided_by: str
    reason: str
    undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedEntity:
    """An entity that a fact names: `said` is how, None for "the user"; `step` found it among `compared` others.

    `reason` is that of the model, where it was asked which entity the name means, or what speaks against the others.
    `changes` are what persons decided about it since: renames, merges, splits and others, the oldest first.
    """

    entity_id: UUID
    name: str
    role: Role
    said: str | None
    step: ResolutionStep
    compared: list[str]
    changes: list[EntityDecision] = field(default_factory=list)
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A fact, where it came from, how it was extracted and decided, and what happened to it since.

    `extraction` is None for a fact of a command, or of another turn's words. `thresholds` are the similarities that
    applied when it was decided. `entities` are those that it names, `shared_calls` the calls of its turn that other
    turns shared. `words` says all of it in sentences: the client adds them.
    """

    fact: Fact
    source: FactSource
    extraction: FactExtraction | None
    decision: trace.TracedDecision
    thresholds: dict[str, Any] | None
    later: list[FactEvent]
    relations: list[FactRelation]
    entities: list[LinkedEntity] = field(default_factory=list)
    shared_calls: tuple[trace.TracedCall, ...] = ()
    words: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return "\n".join([repr(self.fact), *self.words])


async def explain(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> tuple[Explanation, dict[UUID, str]]:
    """Everything that is known of how a fact came about, and the texts of all facts that the explanation names.

    Raises `UnknownFactError`.
    """
    named = {"tenant": tenant, "fact_id": fact_id}
    facts = await fetch_rows(conn, Fact, read_query("facts", "one_fact"), named)
    if not facts:
        raise UnknownFactError(tenant, fact_id)
    (fact,) = facts
    rows = await conn.execute(queries("history")["origin"], named)
    ((event_id, record, messages),) = await rows.fetchall()
    commit = await trace.with_shown_reasons(conn, Commit.from_bytes(record))
    event = next(event for event in commit.events if event.event_id == event_id)
    later = [one for one in await fact_events(conn, fact, [fact_id]) if one.event_id != event_id]
    relations = await fetch_rows(conn, FactRelation, queries("history")["relations"], {"fact_ids": [fact_id]})
    texts = await fact_texts(conn, fact.scope, fact_ids_of_explanation(event, later))
    repeated = await (await conn.execute(queries("history")["repetitions"], {"fact_id": fact_id})).fetchall()
    repetitions = [await trace.with_shown_reasons(conn, Commit.from_bytes(record)) for (record,) in repeated]
    entities = await _linked_entities(conn, [commit, *repetitions], fact_id)
    explanation = explanation_of(
        fact, commit, event, messages=messages, texts=texts, later=later, relations=relations, entities=entities
    )
    return explanation, texts


def fact_ids_of_explanation(event: MemoryEvent, later: Sequence[FactEvent]) -> set[UUID]:
    """The facts that the explanation of a fact names, which `event` brought and `later` events touched."""
    named_ids = {
        *trace.fact_ids_of_event(event),
        *(other for one in later for other in (*one.targets, one.fact_id) if other),
    }
    moved_ends = (moved for one in later for moved in one.moved_ends)
    return named_ids | {UUID(named) for moved in moved_ends for named in (moved["ender"], *moved.get("beside", ()))}


def explanation_of(
    fact: Fact,
    commit: Commit,
    event: MemoryEvent,
    *,
    messages: list[dict[str, Any]] | None,
    texts: trace.FactTexts,
    later: list[FactEvent],
    relations: list[FactRelation],
    entities: list[LinkedEntity],
) -> Explanation:
    """The explanation of a fact that `event` of `commit` brought; `texts` as `fact_ids_of_explanation`. Pure."""
    thresholds = commit.provenance.thresholds
    origin = event.promoted_from
    source = FactSource(
        said_at=origin.said_at if origin else _settled(commit, event),
        promoted_from=origin.fact_id if origin else None,
        said_in=origin.source_id if origin else None,
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
    return Explanation(
        fact=fact,
        source=source,
        extraction=_extraction(commit, event),
        decision=trace.traced_decision(event, texts),
        thresholds=thresholds.model_dump() if thresholds else None,
        later=later,
        relations=relations,
        entities=entities,
        shared_calls=trace.shared_calls(commit),
    )


async def _linked_entities(
    conn: AsyncConnection[TupleRow], commits: Sequence[Commit], fact_id: UUID
) -> list[LinkedEntity]:
    """The entities that readers see and the fact names, each once, and how the commits say that each was found."""
    linked = [event for commit in commits for event in commit.entity_events if isinstance(event, FactLinked)]
    said = [link for event in linked if event.fact_id == fact_id for link in event.links]
    links = [link for place, link in enumerate(said) if link.entity_id not in {one.entity_id for one in said[:place]}]
    named = [entity_id for link in links for entity_id in (link.entity_id, *link.compared)]
    rows = await conn.execute(queries("entities")["names"], {"entity_ids": named}) if named else None
    names: dict[UUID, str] = {entity_id: name for entity_id, name, _ in await rows.fetchall()} if rows else {}
    changes = await _changes(conn, {link.entity_id for link in links})
    return [
        LinkedEntity(
            entity_id=link.entity_id,
            name=names[link.entity_id],
            role=link.role,
            said=link.name,
            step=link.step,
            compared=[names[other] for other in link.compared if other in names],
            changes=changes.get(link.entity_id, []),
            reason=link.reason,
        )
        for link in links
        if link.entity_id in names
    ]


async def _changes(conn: AsyncConnection[TupleRow], entity_ids: set[UUID]) -> dict[UUID, list[EntityDecision]]:
    """What was decided about these entities, of each."""
    if not entity_ids:
        return {}
    rows = await conn.execute(queries("history")["entity_changes"], {"entity_ids": list(entity_ids)})
    found: dict[UUID, list[EntityDecision]] = {}
    async for entity_id, *columns in rows:
        event, decided_at, decided_by, reason, names, undone = columns
        decision = EntityDecision(
            event=event,
            decided_at=decided_at,
            decided_by=decided_by,
            reason=trace.shown_reason(reason, names),
            undone=undone,
        )
        found.setdefault(entity_id, []).append(decision)
    return found


def _settled(commit: Commit, event: MemoryEvent) -> datetime | None:
    """When the words of a fact were said, where its turn only settled a conflict about them.

    Its fact has what that turn itself did not say: a known fact that was the statement of the question, and so is not
    among those that the statement was held against.
    """
    if not isinstance(event, FactsMerged):
        return None
    held_against = {known.fact_id for known in event.decision.before}
    return None if held_against.issuperset(event.targets) else event.fact.said_at or commit.occurred_at


def _extraction(commit: Commit, event: MemoryEvent) -> FactExtraction | None:
    """How the statement was extracted; None for a command, whose texts are taken as they are, and for others' words."""
    fact = event.new_fact
    if fact is None or commit.source_kind == "command" or _settled(commit, event) is not None:
        return None
    steps = [step for step in commit.provenance.steps if step.stage == "extract"]
    last = steps[-1] if steps and commit.outcome != "failed" else None  # of a turn that no model could read
    return FactExtraction(
        excerpt=fact.excerpt,
        certainty=fact.certainty,
        confidence=fact.confidence,
        importance=fact.importance,
        importance_category=fact.importance_category,
        model=last.model if last else None,
        prompt_version=last.prompt_version if last else None,
        instructions=last.instructions if last else None,
        complaints=tuple(complaint for step in steps for complaint in step.complaints),
        notes=tuple(note for step in steps for note in step.notes),
    )
