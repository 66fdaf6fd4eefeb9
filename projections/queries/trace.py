"""The trace of a turn, read from its commit.

What was retrieved, decided, asked again and dropped, and why a statement did not become a fact.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.sql import queries
from mnemolog.schemas.entities import AnsweredName, EntityLink, ResolutionStep, UnlinkedName, UnlinkedReason
from mnemolog.schemas.provenance import FactSnapshot

if TYPE_CHECKING:  # the records of the log take a quarter of the time of an import, and results name the trace alone
    from mnemolog.schemas.commit import Commit
    from mnemolog.schemas.events import MemoryEvent

HIDDEN: Final = "(hidden)"
Said = TypeVar("Said", AnsweredName, EntityLink)


def shown_reason(reason: str, names: Mapping[str, bool]) -> str:
    """The reason with `HIDDEN` for each name that is not shown. `names` are all that it may have, and whether they are.

    A name counts as whole words alone, and not as a part of another one: "Ana" is none of "Diana" or "Ana Keller".
    """
    if all(names.values()):
        return reason
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    listed = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    return listed.sub(lambda found: found[0] if names[found[0]] else HIDDEN, reason)


async def with_shown_reasons(conn: AsyncConnection[TupleRow], commit: "Commit") -> "Commit":
    """The commit, with `HIDDEN` for what a model said of entities that have a name hidden from readers.

    A model may write a name in any way, and what facts say of its bearer: nothing of such a reason is shown.
    """
    answers = [answer for step in commit.provenance.steps for answer in step.answered_names]
    asked = {twin for answer in answers for twin in answer.twins}
    links = [link for _, link in _links(commit) if link.reason is not None]
    asked |= {entity_id for link in links for entity_id in (link.entity_id, *link.compared)}
    if not asked:
        return commit
    rows = await conn.execute(queries("entities")["with_hidden_names"], {"entity_ids": list(asked)})
    hidden = {entity_id for (entity_id,) in await rows.fetchall()}
    if not hidden:
        return commit

    def shown(said: Said, named: Iterable[UUID]) -> Said:
        return said if hidden.isdisjoint(named) else said.model_copy(update={"reason": HIDDEN})

    def shown_links(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
        return tuple(shown(one, (one.entity_id, *one.compared)) if one.reason else one for one in links)

    steps = tuple(
        step.model_copy(update={"answered_names": tuple(shown(one, one.twins) for one in step.answered_names)})
        for step in commit.provenance.steps
    )
    events = tuple(
        event.model_copy(update={"links": shown_links(event.links)}) if event.event == "fact_linked" else event
        for event in commit.entity_events
    )
    provenance = commit.provenance.model_copy(update={"steps": steps})
    return commit.model_copy(update={"provenance": provenance, "entity_events": events})


class CalledEntity(NamedTuple):
    """What an entity is called, and since when it is known."""

    name: str
    since: datetime


EntityNames = Mapping[UUID, CalledEntity]
"""What entities are called, by their ids."""
NO_NAMES: Final[EntityNames] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedName:
    """A name as it was said, None for "the user", and the entity that it means, found by `step` among `compared`.

    `left_out` says why it links no fact; then `fact_id` is None, and an entity and a step are there only where it was
    looked for. `entity` is what the entity is called now, None where it is not known (any more). Of a name that is
    taken, `since` is when its bearer was first named.
    """

    name: str | None
    entity_id: UUID | None
    entity: str | None
    step: ResolutionStep | None
    compared: tuple[str, ...] = ()
    fact_id: UUID | None = None
    left_out: UnlinkedReason | None = None
    since: datetime | None = None


async def entity_names(conn: AsyncConnection[TupleRow], commit: "Commit") -> dict[UUID, CalledEntity]:
    """What the entities are called that a commit links, has looked at, or that its extraction was shown."""
    read: list[EntityLink | UnlinkedName] = [*(link for _, link in _links(commit)), *_unlinked(commit)]
    named = {entity_id for one in read for entity_id in (one.entity_id, *one.compared) if entity_id}
    named |= {entity_id for step in commit.provenance.steps for entity_id in step.entities}
    if not named:
        return {}
    rows = await (await conn.execute(queries("entities")["names"], {"entity_ids": list(named)})).fetchall()
    return {entity_id: CalledEntity(name, since) for entity_id, name, since in rows}


def traced_names(commit: "Commit", known: EntityNames) -> tuple[TracedName, ...]:
    """The names in a commit; `known` are those of `entity_names`. Pure."""
    registered = {
        event.entity_id: CalledEntity(event.name, commit.decided_at)
        for event in commit.entity_events
        if event.event == "entity_registered"
    }
    called = {**registered, **known}
    linked = (_traced(link, called, fact_id) for fact_id, link in _links(commit))
    return *linked, *(_traced(one, called) for one in _unlinked(commit))


def _traced(one: EntityLink | UnlinkedName, called: EntityNames, fact_id: UUID | None = None) -> TracedName:
    entity = None if one.entity_id is None else called.get(one.entity_id)
    reason = one.reason if isinstance(one, UnlinkedName) else None
    return TracedName(
        name=one.name,
        entity_id=one.entity_id,
        entity=entity and entity.name,
        step=one.step,
        compared=tuple(called[other].name for other in one.compared if other in called),
        fact_id=fact_id,
        left_out=reason,
        since=entity.since if entity and reason == "name_taken" else None,
    )


def _links(commit: "Commit") -> Iterator[tuple[UUID, EntityLink]]:
    events = (event for event in commit.entity_events if event.event == "fact_linked")
    return ((event.fact_id, link) for event in events for link in event.links)


def _unlinked(commit: "Commit") -> Iterator[UnlinkedName]:
    return (one for step in commit.provenance.steps for one in step.unlinked)


FactTexts = Mapping[UUID, str]
"""What facts say, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedCandidate:
    """A known fact that was looked at, with its similarity (cosine, -1..1); `text` is None where it is gone.

    `shown` says that the question was about it: the model saw it.
    """

    fact_id: UUID
    similarity: float
    text: str | None
    shown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDecision:
    """One decision: on which words, by whom, and why.

    `verdict` is what a model said; `guard` why something else was done; `before` are the targets as they were.
    """

    event: str
    statement: str | None
    excerpt: str | None
    fact_id: UUID | None
    targets: tuple[UUID, ...]
    by: str
    verdict: str | None
    guard: str | None
    reason: str
    model: str | None
    prompt_version: str | None
    retrieved: tuple[RetrievedCandidate, ...]
    before: tuple[FactSnapshot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedReprompt:
    """The complaint that a model got about an invalid reply."""

    stage: str
    complaint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedStatement:
    """A statement that became no fact before it was compared with any; `similarity` where another was too near.

    `excerpt` is how it was said, `detail` what of it was not said.
    """

    stage: str
    text: str
    reason: str
    similarity: float | None = None
    excerpt: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAnswer:
    """A name that may mean several `twins`, and which of them a model answered; None where nobody can tell."""

    name: str
    twins: tuple[UUID, ...]
    entity_id: UUID | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundFact:
    """A known fact that an extraction was shown; `text` is None where it is gone."""

    fact_id: UUID
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundEntity:
    """A known entity whose names an extraction was shown; `name` is None where readers see none of them now."""

    entity_id: UUID
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionBackground:
    """What the extraction was shown beside the turn: the earlier turns of the conversation, known facts and entities.

    `notes` say what could not be read, or was changed.
    """

    turn_ids: tuple[str, ...] = ()
    facts: tuple[BackgroundFact, ...] = ()
    entities: tuple[BackgroundEntity, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """The call of `stage` for a turn that other turns shared: that of `extract`.

    `turns` is the number of turns that it asked about, this one included, `request` the digest of its prompt, the same
    for all of them. `others` are the ids of the other turns.
    """

    stage: str
    turns: int
    request: str | None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was retrieved and decided, re-prompted and dropped, which calls were shared, and what the extraction saw.

    `thresholds` are the similarities that applied; None where the turn ended before they mattered. `mood` is the
    emotion of the turn, with its intensity and energy; None where an extraction is not asked for it. `names` are those
    that were read, with the entity that each means, or why it was left out; `answers` the names that a model was asked
    about.
    """

    decisions: tuple[TracedDecision, ...]
    reprompts: tuple[TracedReprompt, ...]
    omitted: tuple[OmittedStatement, ...]
    thresholds: dict[str, Any] | None
    background: ExtractionBackground = ExtractionBackground()
    shared_calls: tuple[TracedCall, ...] = ()
    mood: dict[str, Any] | None = None
    names: tuple[TracedName, ...] = ()
    answers: tuple[TracedAnswer, ...] = ()


def build_trace(commit: "Commit", texts: FactTexts, names: EntityNames = NO_NAMES) -> Trace:
    """The trace in a commit; `texts` are those of `fact_ids_of_commit(commit)`, `names` of `entity_names`. Pure."""
    steps, thresholds = commit.provenance.steps, commit.provenance.thresholds
    return Trace(
        decisions=tuple(traced_decision(event, texts) for event in commit.events),
        reprompts=tuple(TracedReprompt(stage=step.stage, complaint=one) for step in steps for one in step.complaints),
        omitted=tuple(OmittedStatement(stage=step.stage, **dict(one)) for step in steps for one in step.dropped),
        thresholds=thresholds.model_dump() if thresholds else None,
        background=ExtractionBackground(
            turn_ids=tuple(turn_id for step in steps for turn_id in step.conversation),
            facts=tuple(BackgroundFact(fact_id=one, text=texts.get(one)) for step in steps for one in step.known),
            entities=tuple(
                BackgroundEntity(entity_id=one, name=names[one].name if one in names else None)
                for step in steps
                for one in step.entities
            ),
            notes=tuple(note for step in steps for note in step.notes),
        ),
        shared_calls=shared_calls(commit),
        mood=next((step.mood.model_dump() for step in steps if step.mood), None),
        names=traced_names(commit, names),
        answers=tuple(TracedAnswer(**dict(asked)) for step in steps for asked in step.answered_names),
    )


def shared_calls(commit: "Commit") -> tuple[TracedCall, ...]:
    """The calls of a turn that other turns shared, by its stages."""
    return tuple(
        TracedCall(stage=step.stage, turns=step.call_turns, request=step.request, others=step.shared_with)
        for step in commit.provenance.steps
        if step.call_turns > 1
    )


def traced_decision(event: "MemoryEvent", texts: FactTexts) -> TracedDecision:
    decision, said = event.decision, event.words
    return TracedDecision(
        event=event.event,
        statement=said.text if said else None,
        excerpt=said.excerpt if said else None,
        fact_id=event.subject_id,
        targets=event.affected_ids,
        by=decision.by,
        verdict=decision.verdict,
        guard=decision.guard,
        reason=decision.reason,
        model=decision.model,
        prompt_version=decision.prompt_version,
        retrieved=tuple(
            RetrievedCandidate(
                fact_id=one.fact_id,
                similarity=one.similarity,
                text=texts.get(one.fact_id),
                shown=one.fact_id in decision.shown,
            )
            for one in decision.candidates
        ),
        before=decision.before,
    )


def fact_ids_of_commit(commit: "Commit") -> list[UUID]:
    """The facts that a commit's decisions looked at or are about, and those its extraction was shown, each once."""
    known = (fact_id for step in commit.provenance.steps for fact_id in step.known)
    decided = (fact_id for event in commit.events for fact_id in fact_ids_of_event(event))
    return list(dict.fromkeys((*decided, *known)))


def fact_ids_of_event(event: "MemoryEvent") -> tuple[UUID, ...]:
    """The facts that one decision looked at or is about."""
    subject = () if event.subject_id is None else (event.subject_id,)
    return (*(one.fact_id for one in event.decision.candidates), *event.affected_ids, *subject)
