"""The trace of a turn: what was retrieved, decided, re-prompted and dropped, read from its commit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mnemolog.projections.queries.turns.traced_names import NO_NAMES, EntityNames, TracedName, traced_names
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.provenance import FactSnapshot

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

    `excerpt` is how it was said.
    """

    stage: str
    text: str
    reason: str
    similarity: float | None = None
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAnswer:
    """A name of which a model was asked which of `twins` it means, and its answer; None where nobody can tell."""

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
    """A known entity whose names an extraction was told; `name` is None where readers see none of them now."""

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
    that were read, with the entity that each means, or why it was left out; `answers` those of which a model was asked
    whom they mean.
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


def build_trace(commit: Commit, texts: FactTexts, names: EntityNames = NO_NAMES) -> Trace:
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


def shared_calls(commit: Commit) -> tuple[TracedCall, ...]:
    """The calls of a turn that other turns shared, by its stages."""
    return tuple(
        TracedCall(stage=step.stage, turns=step.call_turns, request=step.request, others=step.shared_with)
        for step in commit.provenance.steps
        if step.call_turns > 1
    )


def traced_decision(event: MemoryEvent, texts: FactTexts) -> TracedDecision:
    """The decision behind one event."""
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


def fact_ids_of_commit(commit: Commit) -> list[UUID]:
    """The facts that a commit's decisions looked at or are about, and those its extraction was shown, each once."""
    known = (fact_id for step in commit.provenance.steps for fact_id in step.known)
    decided = (fact_id for event in commit.events for fact_id in fact_ids_of_event(event))
    return list(dict.fromkeys((*decided, *known)))


def fact_ids_of_event(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that one decision looked at or is about."""
    subject = () if event.subject_id is None else (event.subject_id,)
    return (*(one.fact_id for one in event.decision.candidates), *event.affected_ids, *subject)
