"""The story of a fact in sentences, for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mnemolog.projections.queries.history import FactEvent, FactRelation
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.trace import FactTexts, TracedDecision

_MAX_QUOTED_CHARACTERS: Final = 300  # characters of a text that is quoted: a raw store keeps messages of any length


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSource:
    """The turn or the command that a fact came from; `messages` are None where the journal does not have them."""

    source_id: str
    kind: str
    occurred_at: datetime
    published_at: datetime
    decided_at: datetime
    position: str
    order: str | None
    actor: str | None
    messages: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactExtraction:
    """How a statement was read from a turn; without `model` it was stored as it was given."""

    excerpt: str
    certainty: str
    confidence: float
    importance: float
    importance_category: str | None
    model: str | None
    prompt_version: str | None
    complaints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationFacts:
    """All that there is to tell; `texts` are the texts of the facts that it names."""

    fact: Fact
    source: FactSource
    extraction: FactExtraction | None
    decision: TracedDecision
    later: list[FactEvent]
    relations: list[FactRelation]
    texts: FactTexts


def explanation_sentences(account: ExplanationFacts) -> list[str]:
    """One paragraph for each part of the story, in order."""
    return [
        _status_sentence(account.fact),
        _source_sentence(account.source, account.extraction, account.fact),
        *_extraction_sentences(account.extraction),
        _candidates_sentence(account.decision),
        _decision_sentence(account.decision, account.texts),
        *(_event_sentence(touch, account.fact, account.texts) for touch in account.later),
        *_relation_sentences(account.relations, account.fact),
    ]


_STATUS_PHRASES: Final[Mapping[str, str]] = {
    "active": "is believed",
    "superseded": "has been superseded",
    "archived": "was archived: it is not believed",
    "pending_confirmation": "waits for a confirmation: it is not believed yet",
    "expired": "has expired",
    "retracted": "was retracted",
    "undone": "was undone: the decision that brought it has been taken back",
}


def _status_sentence(fact: Fact) -> str:
    times = f"true from {_minute(fact.true_from)}" + (f" to {_minute(fact.true_to)}" if fact.true_to else "")
    if fact.valid_until:
        times += f", valid until {_minute(fact.valid_until)}"
    flags = "; its conflict is unresolved" if fact.unresolved else ""
    flags += "; it is a human's word" if fact.authority == "human" else ""
    mentions = f"{fact.mention_count} mention{'s' if fact.mention_count > 1 else ''}"
    sure = f"confidence {fact.confidence:.2f}, {mentions}"
    return f"{_quoted(fact.text)} {_STATUS_PHRASES[fact.status]} ({times}; {sure}{flags})."


def _source_sentence(source: FactSource, extraction: FactExtraction | None, fact: Fact) -> str:
    if source.kind == "command":
        by = f" by {source.actor}" if source.actor else ""
        return f"It comes from command {source.source_id} ({source.order}{by}) of {_minute(source.occurred_at)}."
    excerpt = extraction.excerpt if extraction else fact.excerpt
    speaker = f" by {fact.speaker}" if fact.speaker else ""
    turn = f"turn {source.source_id} of {_minute(source.occurred_at)}"
    return f"It comes from {turn}, where it says{speaker}: {_quoted(excerpt)}."


def _extraction_sentences(extraction: FactExtraction | None) -> Iterator[str]:
    if extraction is None:
        return
    sure = f"{extraction.certainty}, confidence {extraction.confidence:.2f}"
    if extraction.model is None:
        yield f"It was stored as it was given, without a model ({sure})."
        return
    kind = f", {extraction.importance_category}" if extraction.importance_category else ""
    yield (
        f"{extraction.model} read it there with prompt {extraction.prompt_version} "
        f"({sure}; importance {extraction.importance:.2f}{kind})."
    )
    for complaint in extraction.complaints:
        yield f"It was asked again, because: {complaint}"


def _candidates_sentence(decision: TracedDecision) -> str:
    if not decision.retrieved:
        return "No known fact was near enough to be looked at."
    seen = (f"{_quoted(one.text or str(one.fact_id))} (similarity {one.similarity:.3f})" for one in decision.retrieved)
    return f"It was held against {', '.join(seen)}."


def _decision_sentence(decision: TracedDecision, known: FactTexts) -> str:
    who = _decider(decision.by, decision.model, decision.prompt_version)
    words = f"{decision.event}, decided by {who}: {decision.reason}."
    if decision.guard:
        words += f" The verdict was {decision.verdict}; the guard {decision.guard} put this in its place."
    before = {one.fact_id: one.text for one in decision.before}
    targets = [_quoted(before.get(one) or known.get(one) or str(one)) for one in decision.targets]
    return words + (f" It concerned {', '.join(targets)}." if targets else "")


_EVENT_PHRASES: Final[Mapping[str, str]] = {
    "fact_added": "was told late, and this fact ended it",
    "fact_skipped": "was said again",
    "fact_confirmed": "was confirmed",
    "facts_merged": "was merged into",
    "fact_replaced": "was replaced by",
    "fact_contradicted": "was contradicted by",
    "fact_extended": "was extended by",
    "facts_related": "was related to",
    "fact_expired": "its end came or was announced",
    "fact_retracted": "was retracted",
    "fact_pending": "was challenged by a fact that waits for a confirmation,",
    "pending_confirmed": "met the confirmation of",
    "pending_rejected": "stood against the rejected",
    "fact_corrected": "was corrected by a human to",
    "conflict_resolved": "was part of a conflict that was resolved",
    "decision_undone": "stands again as it did, because a decision was undone",
}
_OWN_EVENT_PHRASES: Final[Mapping[str, str]] = {
    "pending_confirmed": "was confirmed and is believed from then on",
    "pending_rejected": "was rejected",
    "conflict_resolved": "its conflict was resolved",
}


def _event_sentence(event: FactEvent, fact: Fact, known: FactTexts) -> str:
    own = event.fact_id in (None, fact.fact_id)
    words = _OWN_EVENT_PHRASES.get(event.event) if own else None
    words = words or _EVENT_PHRASES.get(event.event, event.event)
    other = "" if own or event.fact_id is None else f" {_quoted(known.get(event.fact_id, str(event.fact_id)))}"
    who = _decider(event.decided_by, event.model, event.prompt_version)
    notes = " (taken back since)" if event.undone else ""
    notes += " (it no longer stood as the decision saw it)" if event.stale else ""
    return f"{_minute(event.decided_at)}: {words}{other}, by {who} in {event.source_id}: {event.reason}.{notes}"


def _relation_sentences(relations: list[FactRelation], fact: Fact) -> Iterator[str]:
    for one in relations:
        mine = one.fact_id == fact.fact_id
        other = _quoted(one.related_text if mine else one.text)
        if one.relation == "extends":
            yield f"It adds detail to {other}." if mine else f"{other} adds detail to it."
        else:
            yield f"It is about the same as {other}."


def _decider(by: str, model: str | None, prompt_version: str | None) -> str:
    if model is None:
        return by
    return f"{model} with prompt {prompt_version}" if prompt_version else model


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= _MAX_QUOTED_CHARACTERS else text[: _MAX_QUOTED_CHARACTERS - 1] + "…"}"'


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
