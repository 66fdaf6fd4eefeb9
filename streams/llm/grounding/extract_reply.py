"""The reply to an extraction: its form, and which of its facts are accepted."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_core import to_json

from mnemolog.schemas.base import Timestamp
from mnemolog.schemas.entities.model import MAX_UNLINKED, NamedEntity
from mnemolog.schemas.entities.relations import MAX_RELATIONS, NamedRelation
from mnemolog.schemas.facts import (
    IMPORTANCE_OF_CATEGORY,
    ActionHint,
    Certainty,
    ExtractedFact,
    ImportanceCategory,
    Slot,
)
from mnemolog.schemas.provenance import DroppedStatement, DropReason, OmissionReason
from mnemolog.streams.llm.grounding.evidence import Evidence, shown_messages
from mnemolog.streams.llm.grounding.named_entities import EntityReply, said_entities
from mnemolog.streams.llm.grounding.named_relations import RelationReply, named_relations
from mnemolog.streams.llm.grounding.told_names import told_names
from mnemolog.streams.llm.grounding.turn_speakers import other_speaker
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.llm.reply_parser import (
    MAX_LINE,
    FilledLine,
    Line,
    ParsedReply,
    ReplyModel,
    first_complaints,
    one_line,
    read_items,
    read_reply,
    shortened,
)
from mnemolog.streams.text.normalise import comparable_text
from mnemolog.streams.text.subjects import is_user_word

MAX_FACTS = 100
_MAX_QUOTED = 80


class _Fact(ReplyModel):
    excerpt: FilledLine
    text: FilledLine
    search_text: Line
    key: Slot | None
    value: Line | None
    single_valued: bool
    category: str
    importance_category: ImportanceCategory
    certainty: Certainty
    subject: Line | None
    event_time: Timestamp | None
    valid_until: Timestamp | None
    action_hint: ActionHint
    entities: tuple[EntityReply, ...] = ()
    relations: tuple[RelationReply, ...] = ()


class FactsReply(ReplyModel):
    facts: tuple[_Fact, ...]


class _TurnFacts(ReplyModel):
    turn: int
    facts: tuple[_Fact, ...]


class TurnsReply(ReplyModel):
    turns: tuple[_TurnFacts, ...]


class _OmittedSentence(ReplyModel):
    text: FilledLine
    reason: OmissionReason


class _RulesReply(FactsReply):
    """A reply that also lists what it left out, and why. A language model is not asked for that."""

    omitted: tuple[_OmittedSentence, ...] = ()
    mood: object = None
    """Where it is asked for; `read_mood` reads it."""


def parse_extraction(text: str, subject: ExtractionTask) -> ParsedReply[tuple[ExtractedFact, ...]]:
    """The facts of a reply.

    A fact whose excerpt is not in the turn, or whose text asserts an amount or a negation that the turn does not, is a
    soft complaint and left out.
    The valid facts of an invalid reply make an incomplete one; without a single valid fact it has no value.
    """
    reply = read_reply(_RulesReply, text)
    faults = _reply_faults(reply, subject.categories) if isinstance(reply, FactsReply) else reply
    if isinstance(reply, _RulesReply) and not faults:
        rest = _grounded(reply.facts, subject)
        omitted = (DroppedStatement(text=one.text, reason=one.reason) for one in reply.omitted)
        return replace(rest, dropped=(*rest.dropped, *omitted))
    valid, invalid = _valid_facts(text, subject.categories)
    rest = _grounded(valid, subject)
    return ParsedReply(
        value=rest.value or None, complaints=faults, dropped=(*invalid, *rest.dropped), is_incomplete=True
    )


def _reply_faults(reply: FactsReply, categories: tuple[str, ...]) -> tuple[str, ...]:
    if len(reply.facts) > MAX_FACTS:
        return (f"{len(reply.facts)} facts are too many: give the {MAX_FACTS} that matter most",)
    return first_complaints(
        f"facts.{index}.category: {one_line(fact.category)[:_MAX_QUOTED]!r} is none of {', '.join(categories)}"
        for index, fact in enumerate(reply.facts)
        if fact.category not in categories
    )


def _valid_facts(text: str, categories: tuple[str, ...]) -> tuple[list[_Fact], list[DroppedStatement]]:
    """The first `MAX_FACTS` valid facts of a reply, each checked alone, and what is lost of the others."""
    valid: list[_Fact] = []
    invalid: list[DroppedStatement] = []
    for item in read_items(text, "facts"):
        try:
            fact = _Fact.model_validate_json(to_json(item))
        except ValidationError:
            fact = None
        if fact is not None and fact.category in categories and len(valid) < MAX_FACTS:
            valid.append(fact)
        else:
            text, excerpt = _readable_text(item, "text", "excerpt"), _readable_text(item, "excerpt", "text")
            invalid.append(DroppedStatement(text=text, reason="invalid_fact", excerpt=excerpt))
    return valid, invalid[:MAX_FACTS]


def _readable_text(item: object, *fields: str) -> str:
    """What the first of the `fields` of an invalid fact seems to say, in characters that can be stored."""
    texts = (item.get(name) for name in fields) if isinstance(item, dict) else ()
    said = next((text for text in texts if isinstance(text, str) and text.strip()), to_json(item).decode())
    return shortened(said.replace("\x00", ""), MAX_LINE)


def _grounded(candidates: Sequence[_Fact], task: ExtractionTask) -> ParsedReply[tuple[ExtractedFact, ...]]:
    """The facts whose excerpt a message of the user says, and whose text asserts no more than that and its question."""
    evidence = Evidence.of(task)
    said_before = [comparable_text(message.content) for message in shown_messages(task.turn)]
    said_before += [comparable_text(message.content) for message in task.background.messages]
    facts: list[ExtractedFact] = []
    complaints: list[str] = []
    dropped: list[DroppedStatement] = []
    for index, fact in enumerate(candidates):
        is_found = evidence.message_of(fact.excerpt) is not None
        fault = evidence.complaint(fact.text, fact.excerpt) if is_found else None
        if is_found and not fault:
            said = (*evidence.contents, comparable_text(fact.text))
            entities, left_out = said_entities(fact.entities, said, task.turn, task.entity_types)
            speaker = other_speaker(task.turn, comparable_text(fact.excerpt))
            names = [*(entity.name for entity in entities), *([fact.subject] if fact.subject else [])]
            relations = named_relations(fact.relations, names, task.turn, speaker)
            told, unsaid = told_names(fact.entities, fact.relations, said_before, task.turn, speaker)
            made = _extracted(fact, speaker, entities, (*told, *relations)[:MAX_RELATIONS])
            facts.append(made.model_copy(update={"unlinked": (*left_out, *unsaid)[:MAX_UNLINKED]}))
            continue
        complaints.append(
            f"facts.{index}.text: {fault}: say only what is said, or leave the fact out"
            if is_found
            else f'facts.{index}.excerpt: "{one_line(fact.excerpt)[:_MAX_QUOTED]}" '
            f"{evidence.absence_reason(fact.excerpt)}: copy the words from one message, or leave the fact out"
        )
        reason: DropReason = "invalid_fact" if is_found else "excerpt_not_found"
        dropped.append(DroppedStatement(text=fact.text, reason=reason, excerpt=fact.excerpt))
    return ParsedReply(value=tuple(facts), complaints=first_complaints(complaints), dropped=tuple(dropped))


def _extracted(
    fact: _Fact, speaker: str | None, entities: tuple[NamedEntity, ...], relations: tuple[NamedRelation, ...]
) -> ExtractedFact:
    """The fact of a reply; what another `speaker` says of "the user" is about that speaker."""
    subject = fact.subject or None
    if speaker is not None and (subject is None or is_user_word(subject)):
        subject = speaker
    return ExtractedFact.model_validate(
        fact.model_dump(exclude={"entities", "relations"})
        | {
            "entities": entities,
            "relations": relations,
            "text": fact.text.strip(),
            "search_text": fact.search_text.strip() or fact.text.strip(),
            "value": fact.value or None,
            "subject": subject,
            "importance": IMPORTANCE_OF_CATEGORY[fact.importance_category],
            "single_valued": fact.single_valued and fact.key is not None,
        }
    )
