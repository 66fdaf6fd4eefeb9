"""The story of a fact in sentences, for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mnemolog.projections.history import Relation, Touch
from mnemolog.projections.results import Fact
from mnemolog.projections.traces import Decided, Texts

_LONGEST: Final = 300  # characters of a text that is quoted: a raw store keeps messages of any length


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
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
class Extraction:
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
class Account:
    """All that there is to tell; `known` are the texts of the facts that it names."""

    fact: Fact
    source: Source
    extraction: Extraction | None
    decision: Decided
    later: list[Touch]
    relations: list[Relation]
    known: Texts


def in_words(account: Account) -> list[str]:
    """One paragraph for each part of the story, in order."""
    return [
        _standing(account.fact),
        _origin(account.source, account.extraction, account.fact),
        *_read(account.extraction),
        _retrieved(account.decision),
        _decision(account.decision, account.known),
        *(_touched(touch, account.fact, account.known) for touch in account.later),
        *_related(account.relations, account.fact),
    ]


_STANDINGS: Final[Mapping[str, str]] = {
    "active": "is believed",
    "superseded": "has been superseded",
    "archived": "was archived: it is not believed",
    "pending_confirmation": "waits for a confirmation: it is not believed yet",
    "expired": "has expired",
    "retracted": "was retracted",
    "undone": "was undone: the decision that brought it has been taken back",
}


def _standing(fact: Fact) -> str:
    times = f"true from {_day(fact.true_from)}" + (f" to {_day(fact.true_to)}" if fact.true_to else "")
    if fact.valid_until:
        times += f", valid until {_day(fact.valid_until)}"
    flags = "; its conflict is unresolved" if fact.unresolved else ""
    flags += "; it is a human's word" if fact.authority == "human" else ""
    mentions = f"{fact.mention_count} mention{'s' if fact.mention_count > 1 else ''}"
    sure = f"confidence {fact.confidence:.2f}, {mentions}"
    return f"{_quoted(fact.text)} {_STANDINGS[fact.status]} ({times}; {sure}{flags})."


def _origin(source: Source, extraction: Extraction | None, fact: Fact) -> str:
    if source.kind == "command":
        by = f" by {source.actor}" if source.actor else ""
        return f"It comes from command {source.source_id} ({source.order}{by}) of {_day(source.occurred_at)}."
    excerpt = extraction.excerpt if extraction else fact.excerpt
    speaker = f" by {fact.speaker}" if fact.speaker else ""
    turn = f"turn {source.source_id} of {_day(source.occurred_at)}"
    return f"It comes from {turn}, where it says{speaker}: {_quoted(excerpt)}."


def _read(extraction: Extraction | None) -> Iterator[str]:
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


def _retrieved(decision: Decided) -> str:
    if not decision.retrieved:
        return "No known fact was near enough to be looked at."
    seen = (f"{_quoted(one.text or str(one.fact_id))} (similarity {one.similarity:.3f})" for one in decision.retrieved)
    return f"It was held against {', '.join(seen)}."


def _decision(decision: Decided, known: Texts) -> str:
    who = _author(decision.by, decision.model, decision.prompt_version)
    words = f"{decision.event}, decided by {who}: {decision.reason}."
    if decision.guard:
        words += f" The verdict was {decision.verdict}; the guard {decision.guard} put this in its place."
    before = {one.fact_id: one.text for one in decision.before}
    targets = [_quoted(before.get(one) or known.get(one) or str(one)) for one in decision.targets]
    return words + (f" It concerned {', '.join(targets)}." if targets else "")


_TOUCHES: Final[Mapping[str, str]] = {
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
_OF_ITSELF: Final[Mapping[str, str]] = {
    "pending_confirmed": "was confirmed and is believed from then on",
    "pending_rejected": "was rejected",
    "conflict_resolved": "its conflict was resolved",
}


def _touched(touch: Touch, fact: Fact, known: Texts) -> str:
    own = touch.fact_id in (None, fact.fact_id)
    words = _OF_ITSELF.get(touch.event) if own else None
    words = words or _TOUCHES.get(touch.event, touch.event)
    other = "" if own or touch.fact_id is None else f" {_quoted(known.get(touch.fact_id, str(touch.fact_id)))}"
    who = _author(touch.decided_by, touch.model, touch.prompt_version)
    notes = " (taken back since)" if touch.undone else ""
    notes += " (it no longer stood as the decision saw it)" if touch.stale else ""
    return f"{_day(touch.decided_at)}: {words}{other}, by {who} in {touch.source_id}: {touch.reason}.{notes}"


def _related(relations: list[Relation], fact: Fact) -> Iterator[str]:
    for one in relations:
        mine = one.fact_id == fact.fact_id
        other = _quoted(one.related_text if mine else one.text)
        if one.relation == "extends":
            yield f"It adds detail to {other}." if mine else f"{other} adds detail to it."
        else:
            yield f"It is about the same as {other}."


def _author(by: str, model: str | None, prompt_version: str | None) -> str:
    if model is None:
        return by
    return f"{model} with prompt {prompt_version}" if prompt_version else model


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"}"'


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
