"""Answers of `explain` and `why-not` in English sentences."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE
from mnemolog.projections.queries.trace import FactTexts, TracedCall, TracedDecision, TracedName
from mnemolog.projections.search.search import ScopeCount
from mnemolog.schemas.entities import ResolutionStep, UnlinkedReason

if TYPE_CHECKING:
    from mnemolog.projections.queries.explain import Explanation, FactEvent, FactExtraction, FactSource, LinkedEntity
    from mnemolog.projections.queries.write_result import MissingReason, MissingStatement

OFFLINE_NOTICE: Final = (
    "Facts are read by simple rules (MNEMOLOG_PROVIDER=offline), a stand-in for a language model: "
    "docs/how-to/language-model.md says how to name OpenAI or a local server."
)
"""For what runs with the offline provider."""
NO_SELECTED: Final = (
    "no fact of the scopes, filters, states and times that were asked for is near enough to this question"
)
NO_TURN: Final = "no turn of this scope that may be shown has a word of the question"
"""Why a search found no turn."""
_MAX_QUOTED_CHARACTERS: Final = 300  # characters of a text that is quoted: a raw store keeps messages of any length


def explanation_sentences(explanation: "Explanation", texts: FactTexts) -> list[str]:
    """Where a fact came from, how it was read and decided, and what happened to it since, in this order."""
    fact, related, of_entities = explanation.fact, list[str](), list[str]()
    for one in explanation.relations:
        mine = one.fact_id == fact.fact_id
        other = _quoted(one.related_text if mine else one.text)
        if one.relation == "extends":
            related.append(f"It adds detail to {other}." if mine else f"{other} adds detail to it.")
        else:
            related.append(f"It is about the same as {other}.")
    for linked in explanation.entities:
        of_entities.append(_entity_sentence(linked))
        for change in linked.changes:
            end = ", which was undone" if change.undone else ""
            since = _CHANGE_PHRASES.get(change.event, "since then")
            of_entities.append(f"{since} {linked.name}: {change.reason}{end}")
    return [
        _status_sentence(fact),
        _source_sentence(explanation.source, explanation.extraction, fact),
        *_extraction_sentences(explanation.extraction),
        *map(shared_call_sentence, explanation.shared_calls),
        _candidates_sentence(explanation.decision),
        _decision_sentence(explanation.decision, texts),
        *(_event_sentence(event, fact, texts) for event in explanation.later),
        *related,
        *of_entities,
    ]


_CHANGE_PHRASES: Final[Mapping[str, str]] = {
    "entities_merged": "since then a merge is about",
    "merge_proposed": "since then a proposed merge is about",
    "merge_rejected": "since then a rejected merge is about",
    "entity_summarised": "since then a summary is about",
    "entity_split": "since then a split is about",
    "entity_renamed": "since then a rename is about",
    "entity_alias_set": "since then a new name is about",
    "entity_forgotten": "since then an order to forget is about",
}


def _entity_sentence(linked: "LinkedEntity") -> str:
    """Which entity a fact names, and how the entity was found."""
    if linked.said is None:
        return f"its {linked.role} is {linked.name}, the user"
    names = ", ".join(linked.compared)
    why = f": {linked.reason}" if linked.reason else ""
    found = f'its {linked.role} is {linked.name}: "{linked.said}" {_STEP_PHRASES[linked.step]}'
    return f"{found}{f', and not {names}' if names else ''}{why}"


_STEP_PHRASES: Final[Mapping[ResolutionStep, str]] = {
    "user": "is the user",
    "exact": "is the name that it was known by",
    "alias": "is another of its names",
    "tie": "is what it is to somebody",
    "prefix": "is a part of its name, or the other way round",
    "fuzzy": "is its name, misspelled",
    "diminutive": "is a short form of its name, or the other way round",
    "model": "was taken for its name by the model",
    "new": "was not known before",
}


def name_sentence(read: TracedName) -> str:
    """How the entity of a name was found, and why the name links no fact if it does not."""
    others = f", and not {', '.join(read.compared)}" if read.compared else ""
    found = f"{_STEP_PHRASES[read.step]}{others}" if read.step else ""
    if read.left_out is None:
        return found
    whose = f" ({read.entity}, since {read.since:%Y-%m-%d})" if read.since and read.entity else ""
    return "; ".join(filter(None, [f"left out: {_UNLINKED_PHRASES[read.left_out]}{whose}", found]))


_UNLINKED_PHRASES: Final[Mapping[UnlinkedReason, str]] = {
    "not_said": "nobody said this name in the turn",
    "too_long": "it has too many letters for a name",
    "too_many": "the turn has more names than one may bring",
    "never_stored": "a policy says that this topic is never stored",
    "no_name": "it is the name of nobody",
    "no_new_fact": "no new fact has it",
    "name_taken": "it stays the name of who had it first",
    "in_doubt": "several may be meant, so it was given to none of them: give it with alias",
}


def missing_sentence(missing: "MissingStatement") -> str:
    """Why a statement became no fact that is believed."""
    return _MISSING_SENTENCES[missing.reason].format(
        known=missing.known or missing.fact_id or "a known fact",
        guard=missing.guard or "of its policy",
        detail=missing.detail or "no reason is recorded",
        near="" if missing.similarity is None else f" (similarity {missing.similarity:.3f})",
    )


def other_model_sentence(asked: str, stored: Iterable[str]) -> str:
    """Why a vector finds nothing."""
    return f"by words alone: the question was embedded by {asked}, these facts by {', '.join(stored)}; {_SAME_MODEL}"


def no_hit_sentence(missed: ScopeCount, model: str | None = None) -> str:
    """Why a search found nothing: nothing is near, nothing is known, or it is known under ids that were left out.

    Or no fact can be compared with a question that `model` has embedded.
    """
    why = "nothing known is near enough to this question" if missed.within else "nothing is known in this scope"
    if model is not None and missed.models and model not in missed.models:
        why = f"nothing was found {other_model_sentence(model, missed.models)}"
    if not missed.beside:
        return why
    names = " or ".join(_ID_PHRASES[name] for name in missed.ids)
    wider = ", ".join(f"{name}={ANY_OR_NONE!r}" for name in missed.ids)
    options = " ".join(f"--{name.removesuffix('_id')} {ANY_OR_NONE!r}" for name in missed.ids)
    return f"{why}{BESIDE} {names}: {missed.beside}, search with {wider} ({options})"


BESIDE: Final = "; facts in scopes that also name"
"""What a search that found nothing says of other scopes begins so: no tool of an assistant reaches them."""

_SAME_MODEL: Final = "give the client the embedder of the stages (MNEMOLOG_EMBEDDING_PROVIDER and _MODEL)"
_ID_PHRASES: Final = {"user_id": "a user", "agent_id": "an agent", "app_id": "an app", "run_id": "a run"}
_MISSING_SENTENCES: Final[Mapping["MissingReason", str]] = {
    "excerpt_not_found": "left out: the excerpt that should prove it {detail}{near}",
    "unfounded": "left out: {detail}{near}",
    "invalid_fact": "left out: no reply of the model stated it in a valid form{near}",
    "near_duplicate": "left out: another statement of the same turn says nearly the same{near}",
    "recalled": "left out: it only echoes memory that was in the prompt, which is no evidence{near}",
    "never_stored": "left out: a policy says that this topic is never stored",
    "below_importance": "left out: its importance is below what the policy keeps{near}",
    "question": "left out: it asks, and states nothing",
    "greeting": "left out: it is a greeting, thanks or small talk",
    "supposition": "left out: it supposes or wishes, and says nothing that is so",
    "joke": "left out: it is marked as a joke or irony",
    "quotation": "left out: it quotes words, code or another text",
    "request": "left out: it asks the assistant to do something",
    "undecided": "left out: it states nothing of what was asked",
    "too_long": "left out: it is beyond the length that the rules read of a sentence, a message or a turn",
    "not_taken": "the model took nothing from it",
    "duplicate": 'skipped as a duplicate of "{known}" ({detail})',
    "known_already": 'confirms what is known already: "{known}" ({detail})',
    "confirmed_pending": 'confirms what waited for a confirmation: "{known}" ({detail})',
    "rejected_pending": 'speaks against what waited for a confirmation: "{known}" ({detail})',
    "pending_confirmation": "waits for a confirmation, held by the guard {guard} ({detail})",
    "nothing_to_remember": "the turn states nothing to remember",
    "limit": "refused for a limit, {detail}: raise it and publish the turn again under its id",
    "rejected": "refused: {detail}",
    "failed": "failed: {detail}; publish the turn again under its id for another attempt",
    "not_decided_yet": "the turn has no end yet: its stages work on it",
}


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


def shared_call_sentence(call: TracedCall) -> str:
    """Which turns shared the call for the extraction of a turn."""
    count = call.turns - 1
    names = f": {', '.join(call.others)}" if call.others else ""
    others = f"{count} other turn{'s' if count > 1 else ''}{names}"
    return f"Its extraction shared a call with {others} (request {call.request})."


def _source_sentence(source: "FactSource", extraction: "FactExtraction | None", fact: Fact) -> str:
    if source.kind == "command":
        by = f" by {source.actor}" if source.actor else ""
        order = f"({source.order}{by}) " if source.order else ""
        if source.promoted_from is not None and source.said_at is not None:
            said = _said_before(source.said_at, fact, fact.excerpt, f" in {source.said_in}")
            return (
                f"It was promoted from fact {source.promoted_from} by command {source.source_id} "
                f"{order}of {_minute(source.occurred_at)}; {said}."
            )
        return f"It comes from command {source.source_id} {order}of {_minute(source.occurred_at)}."
    excerpt = extraction.excerpt if extraction else fact.excerpt
    turn = f"turn {source.source_id} of {_minute(source.occurred_at)}"
    if source.said_at is not None:
        said = _said_before(source.said_at, fact, excerpt)
        return f"It comes from a conflict that was open until {turn}; {said}."
    return f"It comes from {turn}, where {fact.speaker or 'it'} says: {_quoted(excerpt)}."


def _said_before(at: datetime, fact: Fact, excerpt: str, place: str = "") -> str:
    """The excerpt and when it was said at the latest; a fact without an excerpt was imported."""
    if not excerpt:
        return f"by {_minute(at)}, it had been imported{place}"
    return f"by {_minute(at)}, {fact.speaker or 'a turn'} had said{place}: {_quoted(excerpt)}"


def _extraction_sentences(extraction: "FactExtraction | None") -> Iterator[str]:
    if extraction is None:
        return
    for note in extraction.notes:
        yield f"Note: {note}."
    sure = f"{extraction.certainty}, confidence {extraction.confidence:.2f}"
    if extraction.model is None:
        yield f"It was stored as it was given, without a model ({sure})."
        return
    kind = f", {extraction.importance_category}" if extraction.importance_category else ""
    reader = _decider("", extraction.model, extraction.prompt_version)
    yield f"{reader} read it there ({sure}; importance {extraction.importance:.2f}{kind})."
    for complaint in extraction.complaints:
        yield f"It was asked again, because: {complaint}"


def _candidates_sentence(decision: TracedDecision) -> str:
    if not decision.retrieved:
        return "No known fact was near enough to be looked at."
    seen = ", ".join(
        f"{_quoted(one.text or str(one.fact_id))} (similarity {one.similarity:.3f}{', shown' if one.shown else ''})"
        for one in decision.retrieved
    )
    asked = " The question was about those marked as shown." if any(one.shown for one in decision.retrieved) else ""
    return f"It was held against {seen}.{asked}"


def _decision_sentence(decision: TracedDecision, known: FactTexts) -> str:
    who = _decider(decision.by, decision.model, decision.prompt_version)
    words = f"{decision.event}, decided by {who}: {decision.reason}."
    if decision.guard and decision.verdict:
        words += f" The verdict was {decision.verdict}; the guard {decision.guard} put this in its place."
    elif decision.guard:
        words += f" The guard {decision.guard} applied."
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
    "subjects_changed": "was looked at again, because entities were merged or parted",
}
_OWN_EVENT_PHRASES: Final[Mapping[str, str]] = {
    "pending_confirmed": "was confirmed and is believed from then on",
    "pending_rejected": "was rejected",
    "conflict_resolved": "its conflict was resolved",
}


def _event_sentence(event: "FactEvent", fact: Fact, known: FactTexts) -> str:
    moved = next((one for one in event.moved_ends if one["fact_id"] == str(fact.fact_id)), None)
    if moved is not None:
        return _moved_end_sentence(event, moved, known)
    if event.promoted_from == fact.fact_id:
        notes = " (undone since)" if event.undone else ""
        return f"{_minute(event.decided_at)}: was promoted to fact {event.fact_id} in {event.source_id}.{notes}"
    own = event.fact_id in (None, fact.fact_id)
    words = _OWN_EVENT_PHRASES.get(event.event) if own else None
    words = words or _EVENT_PHRASES.get(event.event, event.event)
    other = "" if own or event.fact_id is None else f" {_quoted(known.get(event.fact_id, str(event.fact_id)))}"
    who = _decider(event.decided_by, event.model, event.prompt_version)
    notes = " (undone since)" if event.undone else ""
    notes += " (it no longer stood as the decision saw it)" if event.stale else ""
    return f"{_minute(event.decided_at)}: {words}{other}, by {who} in {event.source_id}: {event.reason}.{notes}"


def _moved_end_sentence(event: "FactEvent", moved: Mapping[str, Any], known: FactTexts) -> str:
    """The new end of a fact whose ender was withdrawn, is about another entity, or proved to have begun earlier."""
    ended_at = moved["ended_at"]
    end = f"it ended {_minute(datetime.fromisoformat(ended_at))} instead" if ended_at else "its end was taken back"
    cause = f"{end}, because of {_quoted(known.get(UUID(moved['ender']), str(moved['ender'])))}"
    if moved["ender"] == moved["fact_id"]:
        beside = ", ".join(_quoted(known.get(UUID(one), one)) for one in moved.get("beside") or ())
        cause = f"it is unresolved beside {beside}" if beside else "it is unresolved"
    notes = " (undone since)" if event.undone else ""
    return f"{_minute(event.decided_at)}: {cause}, in {event.source_id}: {event.reason}.{notes}"


def _decider(by: str, model: str | None, prompt_version: str | None) -> str:
    if model is None:
        return by
    return f"{model} with prompt {prompt_version}" if prompt_version else model


def _quoted(text: str) -> str:
    return f'"{text if len(text) <= _MAX_QUOTED_CHARACTERS else text[: _MAX_QUOTED_CHARACTERS - 3] + "..."}"'


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
