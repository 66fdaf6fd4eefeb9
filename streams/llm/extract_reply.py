"""The reply to an extraction: its form, and which of its facts, names and relations are accepted.

`parse_extraction` takes a fact whose excerpt a message of the user says, and whose text says no more (`Evidence`), with
the names that were said (`said_entities`) and relations between these (`named_relations`, `alias_relations`).
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema

from mnemolog.schemas.base import Text, normalise
from mnemolog.schemas.entities import (
    ENTITY_TYPES,
    MAX_ENTITIES,
    MAX_NAME,
    MAX_RELATIONS,
    MAX_UNLINKED,
    SAME_AS,
    STRENGTHS,
    EntityType,
    NamedEntity,
    NamedRelation,
    Role,
    Strength,
    UnlinkedName,
    UnlinkedReason,
    is_same_as,
    read_predicate,
)
from mnemolog.schemas.facts import (
    DEFAULT_IMPORTANCE,
    IMPORTANCE_OF_CATEGORY,
    ActionHint,
    Certainty,
    ExtractedFact,
    ImportanceCategory,
    Slot,
    ranked_categories,
)
from mnemolog.schemas.provenance import DroppedStatement, DropReason, OmissionReason
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.names import has_tie, name_key, read_name, ties_in, with_owner
from mnemolog.streams.entities.relations import name_forms
from mnemolog.streams.llm.ask import (
    CUT_OFF_NOTE,
    MAX_LINE,
    FilledLine,
    Line,
    OptionalLine,
    ParsedReply,
    ReadingContext,
    ReplyModel,
    ReplyTime,
    as_slot,
    as_slots,
    find_object,
    first_complaints,
    shortened,
)
from mnemolog.streams.llm.ports import CUT_OFF, ExtractionTask
from mnemolog.streams.text.assertions import TurnWords, is_negative, unsaid
from mnemolog.streams.text.differences import copied_texts, is_user_word
from mnemolog.streams.text.patterns import tables
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.short_answers import asked_part, begins_sentence, short_answer
from mnemolog.streams.text.tokens import comparable_text, has_words, without_texts

_TYPE: Final[TypeAdapter[str]] = TypeAdapter(EntityType)
_TYPES: Final[Mapping[str, EntityType]] = {
    word: kind
    for kind, words in tables(Path(__file__).with_name("entity_types.toml")).items()
    for word in words.split()
}
"""The type that each word for one means."""


def read_type(said: str, configured: Collection[EntityType]) -> EntityType:
    """The type that a word means: a configured type, a known type in another word, or the word itself.

    What is no plain word is `other`.
    """
    word = "_".join(said.casefold().split())
    kind = word if word in configured else _TYPES.get(word, word)
    try:
        return _TYPE.validate_python(kind)
    except ValidationError:
        return "other"


MIN_SCRIPT_LINES: Final = 2
"""How many lines of a message begin with a name and a colon if it is a script: one alone may be "Note: ..."."""
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t]*([^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*){0,2}):[ \t]+(?=\S)", re.MULTILINE
)


def other_speaker(turn: Turn, said_in: Collection[Message], excerpt: str) -> str | None:
    """Who says the words of `excerpt` in these messages, if that is one named person and not the turn's speaker."""
    names = {name for message in said_in for text, name in _spoken(message) if has_words(text, excerpt)}
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


def _spoken(message: Message) -> Iterator[tuple[str, str | None]]:
    """The parts of a message as comparable texts, each with the name of who says it, if one is given."""
    lines = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
    if len(lines) < MIN_SCRIPT_LINES:
        yield comparable_text(message.content), message.name if message.role == "user" else None
        return
    ends = [line.start() for line in lines[1:]] + [len(message.content)]
    yield comparable_text(message.content[: lines[0].start()]), message.name
    for line, end in zip(lines, ends, strict=True):
        yield comparable_text(message.content[line.end() : end]), line[1]


def shown_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages of the conversation: all but the application's own system prompts."""
    return tuple(message for message in turn.messages if message.role != "system")


def evidence_messages(turn: Turn) -> tuple[Message, ...]:
    """The messages that facts may rest on: what the assistant says is none, even where the user agrees to it."""
    return tuple(message for message in shown_messages(turn) if message.role != "assistant")


@dataclass(frozen=True, slots=True)
class _EvidenceMessage:
    """A message that facts may rest on, also as a comparable text, and the question that it answers, or ""."""

    message: Message
    comparable: str
    asked: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the messages of a turn say, but for recalled memory, and what they answer."""

    said: tuple[_EvidenceMessage, ...]
    words: TurnWords
    turn: Turn

    @classmethod
    def of(cls, task: ExtractionTask) -> Self:
        turn = task.turn
        said = tuple(
            _EvidenceMessage(message, comparable_text(message.content), asked)
            for message, asked in with_questions(turn, task.background.messages)
        )
        return cls(said, TurnWords.of(turn), turn)

    @property
    def contents(self) -> tuple[str, ...]:
        """The messages that facts may rest on, as comparable texts."""
        return tuple(one.comparable for one in self.said)

    def support(self, text: str, excerpt: str) -> tuple[Sequence[Message], str | None]:
        """The messages that say the excerpt and from which a fact follows; without any, what is wrong, else None."""
        said_in = self.messages_of(text, excerpt)
        faults = [self._fault(text, excerpt, one) for one in said_in]
        supporting = [one.message for one, fault in zip(said_in, faults, strict=True) if fault is None]
        return supporting, None if supporting else next(iter(faults), None)

    def _fault(self, text: str, excerpt: str, message: _EvidenceMessage) -> str | None:
        """Why a fact does not follow from a message that says its excerpt."""
        kind = short_answer(excerpt)
        if kind is not None and (fault := self._answer_fault(kind, text, message)):
            return fault
        words = self.words.with_question(message.asked) if message.asked else self.words
        said = f"{message.asked} {excerpt}" if kind else excerpt
        added = ", ".join(unsaid(self._without_speaker(text), said, words))
        return f"it says {added}, which no message says" if added else None

    def messages_of(self, text: str, excerpt: str) -> Sequence[_EvidenceMessage]:
        """The messages with the excerpt of a fact, not only within recalled text; those with a question come first.

        A bare yes or no begins a sentence there.
        """
        comparable = comparable_text(excerpt)
        if not comparable:
            return ()
        hiding = copied_texts(self.turn.recalled, text, comparable)
        found = [one for one in self.said if has_words(without_texts(one.comparable, hiding), comparable)]
        if short_answer(excerpt):
            found = [one for one in found if begins_sentence(one.comparable, comparable)]
        return sorted(found, key=lambda one: not one.asked)

    def absence_reason(self, excerpt: str) -> str:
        """Why no message says an excerpt."""
        comparable = comparable_text(excerpt)
        if comparable and any(comparable in one.comparable for one in self.said):
            return "is recalled memory, which is no evidence" if self.turn.recalled else "is only a part of a word"
        others = [one.content for one in self.turn.messages if one.role == "assistant"]
        if comparable and any(comparable in comparable_text(content) for content in others):
            return "is what the assistant says: the words of the user are the evidence"
        return "occurs in no message"

    def _answer_fault(self, kind: str, text: str, message: _EvidenceMessage) -> str:
        """What is wrong with a fact whose excerpt is a bare answer."""
        own, asked = read(text), read(message.asked)
        if kind == "open":
            return "it rests on words that neither confirm nor deny"
        if not message.asked:
            return "it rests on a bare answer, and nothing was asked just before"
        names = {stem for name in self._names() for stem in read(name).stems}
        is_read = own.is_spaced and asked.is_spaced and not own.is_foreign and not asked.is_foreign
        if is_read and not ({*own.stems} - names) & {*asked.stems}:
            return "it says something else than what was asked just before"
        if kind == "no" and is_read and not is_negative(own) and not is_negative(asked):
            return "it affirms what the answer denies"
        if kind == "yes" and is_read and is_negative(own) and not is_negative(asked):
            return "it denies what the answer affirms"
        return ""

    def _without_speaker(self, text: str) -> str:
        """A line of a transcript without its speaker: a name with digits in it states no number."""
        lines = (f"{' '.join(name.split())}: " for name in self._names())
        return next((text.removeprefix(line) for line in lines if text.startswith(line)), text)

    def _names(self) -> Iterator[str]:
        yield from (name for name in (self.turn.speaker, *(one.name for one in self.turn.messages)) if name)
        yield "the user"


def with_questions(turn: Turn, earlier: Sequence[EarlierMessage]) -> Iterator[tuple[Message, str]]:
    """The messages that facts may rest on, each with the question in the message right before it, or ""."""
    before: Message | EarlierMessage | None = earlier[-1] if earlier else None
    for message in shown_messages(turn):
        if message.role != "assistant":
            yield message, asked_part(before.content) if before and _can_ask(before, message, turn) else ""
        before = message


def _can_ask(before: Message | EarlierMessage, message: Message, turn: Turn) -> bool:
    """Whether the message before a message of the user is somebody else's."""
    if before.role == "assistant":
        return message.role == "user"
    own, other = (normalise(one.name or turn.speaker or "") for one in (message, before))
    return before.role == message.role == "user" and own != other


_ROLES: tuple[Role, ...] = ("subject", "object", "mention")


class EntityReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    name: Text
    type: Text = "other"
    role: Annotated[Text, Field(json_schema_extra={"enum": list(_ROLES)})] = "mention"
    aliases: SkipJsonSchema[tuple[Text, ...]] = ()
    """Nobody asks for them: each is read as a relation `same_as`."""


def said_entities(
    replies: Iterable[EntityReply], said: Sequence[str], turn: Turn, types: Collection[EntityType] = ENTITY_TYPES
) -> tuple[tuple[NamedEntity, ...], tuple[UnlinkedName, ...]]:
    """The entities whose names occur in `said` or are speakers of the turn; and the names that are left out.

    `said` are the messages of the turn and the fact's text. Left out are names that nobody said, of too many letters,
    and beyond the bound of a fact. `types` were asked for; an unknown role is a mention.
    """
    speakers = {turn.speaker, *(message.name for message in turn.messages)}
    kept: dict[str, NamedEntity] = {}
    left_out: dict[str, UnlinkedName] = {}
    for reply in replies:
        name = " ".join(reply.name.split())
        if not name:
            continue
        reason: UnlinkedReason | None = None
        if len(reply.name) > MAX_NAME:
            reason = "too_long"
        elif reply.name not in speakers and not is_said(reply.name, said):
            reason = "not_said"
        if name in kept or (reason is None and len(kept) < MAX_ENTITIES):
            role: Role = next((role for role in _ROLES if role == reply.role), "mention")
            kept[name] = NamedEntity(name=name, type=read_type(reply.type, types), role=role)
        else:
            left_out.setdefault(name, UnlinkedName(name=shortened(name, MAX_NAME), reason=reason or "too_many"))
    return tuple(kept.values()), tuple(left_out.values())[:MAX_UNLINKED]


def is_said(name: str, said: Sequence[str]) -> bool:
    """Whether the name was said; of "Alice's brother Tom" what was said is "my brother Tom", or "Tom"."""
    if any(has_words(text, name) for text in said):
        return True
    spoken = read_name(name)
    if spoken is None or spoken.tie is None:
        return False
    if spoken.name:
        return any(has_words(text, spoken.name) for text in said)
    return any(spoken.tie == tie for text in said for tie, _ in ties_in(text))


class RelationReply(ReplyModel):  # a docstring would be a part of the schema that models are sent
    subject: Text
    predicate: Text
    object: Text
    strength: Annotated[Text, Field(json_schema_extra={"enum": list(STRENGTHS)})] = "weak"


def named_relations(
    replies: Iterable[RelationReply], names: Iterable[str], turn: Turn, other_speaker: str | None
) -> tuple[NamedRelation, ...]:
    """The relations between entities that a fact names, speakers of the turn, and the user.

    `names` are the fact's entities and its subject. What another speaker says of "the user" is about that speaker. A
    relation with anybody else is left out, of a name with itself, and one whose predicate is no word; `alias_relations`
    has `same_as`. An unknown strength is weak.
    """
    speakers = (turn.speaker, *(message.name for message in turn.messages))
    known = {form for name in (*names, *speakers) if name for form in name_forms(name)}
    kept: dict[tuple[str, str, str], NamedRelation] = {}
    for reply in replies:
        predicate = read_predicate(reply.predicate)
        if predicate is None or is_same_as(reply.predicate):
            continue
        one, other = (" ".join(name.split()) for name in (reply.subject, reply.object))
        if not (_is_known(one, known) and _is_known(other, known)):
            continue
        one, other = (other_speaker if other_speaker and is_user_word(name) else name for name in (one, other))
        if name_key(one) != name_key(other):
            strength: Strength = next((strength for strength in STRENGTHS if strength == reply.strength), "weak")
            kept[one, predicate.word, other] = NamedRelation(
                subject=one, predicate=predicate.word, object=other, strength=strength
            )
    return tuple(kept.values())[:MAX_RELATIONS]


def _is_known(name: str, known: set[str]) -> bool:
    """Whether a name is the user's, or has the form of a known name."""
    return 0 < len(name) <= MAX_NAME and (is_user_word(name) or not known.isdisjoint(name_forms(name)[:1]))


def alias_relations(
    entities: Iterable[EntityReply],
    relations: Iterable[RelationReply],
    said: Sequence[str],
    turn: Turn,
    other_speaker: str | None,
) -> tuple[tuple[NamedRelation, ...], tuple[UnlinkedName, ...]]:
    """The pairs of names that a fact gives one entity, as relations `same_as`; and the names that are left out.

    `said` are the messages of the turn and before it, as comparable texts. Speakers need not be named in them.
    """
    speakers = {turn.speaker, *(message.name for message in turn.messages)}
    found: dict[tuple[str, str], NamedRelation] = {}
    unsaid: dict[str, UnlinkedName] = {}
    pairs = [(entity.name, alias) for entity in entities for alias in entity.aliases]
    pairs += ((relation.subject, relation.object) for relation in relations if is_same_as(relation.predicate))
    for pair in pairs:
        names = [" ".join(name.split()) for name in pair]
        if not all(names):
            continue
        names = [other_speaker if other_speaker and is_user_word(name) else name for name in names]
        left_out = False
        for name in names:
            if is_user_word(name) or name in speakers or (len(name) <= MAX_NAME and is_said(name, said)):
                continue
            reason: UnlinkedReason = "too_long" if len(name) > MAX_NAME else "not_said"
            unsaid[name] = UnlinkedName(name=shortened(name, MAX_NAME), reason=reason)
            left_out = True
        if not left_out and name_key(names[0]) != name_key(names[1]):
            found[names[0], names[1]] = NamedRelation(subject=names[0], predicate=SAME_AS, object=names[1])
    return tuple(found.values())[:MAX_RELATIONS], tuple(unsaid.values())


MAX_FACTS = 100


class _Fact(ReplyModel):
    excerpt: FilledLine
    text: FilledLine
    search_text: Line = ""
    key: Annotated[Slot | None, BeforeValidator(as_slot)] = None
    value: OptionalLine = None
    single_valued: bool = False
    category: Annotated[tuple[Slot, ...], BeforeValidator(as_slots)] = ()
    importance_category: Annotated[ImportanceCategory | SkipJsonSchema[None], BeforeValidator(as_slot)] = None
    certainty: Annotated[Certainty, BeforeValidator(as_slot)] = "strong"
    subject: OptionalLine = None
    event_time: ReplyTime = None
    valid_until: ReplyTime = None
    action_hint: Annotated[ActionHint, BeforeValidator(as_slot)] = "new"
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


_OMITTED: Final = TypeAdapter(tuple[_OmittedSentence, ...])
"""What a reply of rules lists beside its facts. A language model is not asked for that."""


def parse_extraction(text: str, subject: ExtractionTask) -> ParsedReply[tuple[ExtractedFact, ...]]:
    """The facts of a reply that follow from the turn; the others are dropped, each with the reason.

    A reply without a list of facts, or with none that can be read among some, has no value.
    """
    found = find_object(text, "facts")
    items = found if isinstance(found, str) else found["facts"]
    if not isinstance(items, list):
        return ParsedReply(complaints=(items if isinstance(items, str) else "facts: must be a list",))
    context = ReadingContext(subject.turn.occurred_at.tzinfo or UTC)
    read: list[_Fact] = []
    dropped: list[DroppedStatement] = []
    faults: list[str] = []
    for index, item in enumerate(items):
        try:
            fact = _Fact.model_validate(item, context=context)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            faults.append(f"{'.'.join(map(str, ('facts', index, *fault['loc'])))}: {fault['msg']}")
        else:
            if len(read) < MAX_FACTS:
                known = tuple(one for one in fact.category if one in subject.categories)
                read.append(fact.model_copy(update={"category": known}))
                continue
        what, excerpt = _readable_text(item, "text", "excerpt"), _readable_text(item, "excerpt", "text")
        dropped.append(DroppedStatement(text=what, reason="invalid_fact", excerpt=excerpt))
    if faults and not read:
        return ParsedReply(complaints=first_complaints(faults), dropped=tuple(dropped[:MAX_FACTS]))
    facts, unfounded = _founded(read, subject)
    omitted = [DroppedStatement(text=one.text, reason=one.reason) for one in _omitted(found)]
    notes = (*context.notes, *((CUT_OFF_NOTE,) if CUT_OFF in found else ()))
    return ParsedReply(value=facts, dropped=(*dropped[:MAX_FACTS], *unfounded, *omitted), notes=notes)


def _omitted(found: object) -> tuple[_OmittedSentence, ...]:
    try:
        return _OMITTED.validate_python(found["omitted"]) if isinstance(found, dict) and "omitted" in found else ()
    except ValidationError:
        return ()


def _readable_text(item: object, *fields: str) -> str:
    """What the first of the `fields` of an invalid fact seems to say, in characters that can be stored."""
    texts = (item.get(name) for name in fields) if isinstance(item, dict) else ()
    said = next((text for text in texts if isinstance(text, str) and text.strip()), None) or json.dumps(item)
    return shortened(said.replace("\x00", "").encode("utf-8", "replace").decode(), MAX_LINE)


def _founded(
    candidates: Sequence[_Fact], task: ExtractionTask
) -> tuple[tuple[ExtractedFact, ...], list[DroppedStatement]]:
    """The facts whose excerpt a message of the user says, and whose text asserts no more than that and its question."""
    evidence = Evidence.of(task)
    said_before = [comparable_text(message.content) for message in shown_messages(task.turn)]
    said_before += [comparable_text(message.content) for message in task.background.messages]
    facts: list[ExtractedFact] = []
    dropped: list[DroppedStatement] = []
    for fact in candidates:
        said_in, fault = evidence.support(fact.text, fact.excerpt)
        if said_in:
            said = (*evidence.contents, comparable_text(fact.text))
            entities, left_out = said_entities(fact.entities, said, task.turn, task.entity_types)
            speaker = other_speaker(task.turn, said_in, fact.excerpt)
            names = [*(entity.name for entity in entities), *([fact.subject] if fact.subject else [])]
            relations = named_relations(fact.relations, names, task.turn, speaker)
            aliases, unsaid = alias_relations(fact.entities, fact.relations, said_before, task.turn, speaker)
            made = _extracted(fact, speaker, entities, (*aliases, *relations)[:MAX_RELATIONS])
            facts.append(made.model_copy(update={"unlinked": (*left_out, *unsaid)[:MAX_UNLINKED]}))
            continue
        reason: DropReason = "unfounded" if fault else "excerpt_not_found"
        detail = fault or evidence.absence_reason(fact.excerpt)
        dropped.append(DroppedStatement(text=fact.text, reason=reason, excerpt=fact.excerpt, detail=detail))
    return tuple(with_mirrors(facts, task))[:MAX_FACTS], dropped


def with_mirrors(facts: Sequence[ExtractedFact], task: ExtractionTask) -> Iterator[ExtractedFact]:
    """The facts, and one for each relation whose two ends no text of them names.

    "Alice's mother lives in Rome." The relation rests on that fact of weak certainty alone, so that a search finds what
    a model inferred, and any decision ends it. From Arandu's write pipeline, mirror facts (confidence .60).
    """
    turn = task.turn
    speakers = {name for name in (turn.speaker, *(one.name for one in turn.messages)) if name}

    def names(fact: ExtractedFact, end: str) -> bool:
        if not is_user_word(end) and end not in speakers:
            spoken = read_name(end)
            if spoken is not None and spoken.tie is not None and spoken.name is None:
                return has_tie(fact.text, spoken.tie)
            return has_words(fact.text, spoken.name if spoken is not None and spoken.name else end)
        is_subject = fact.subject is None or is_user_word(fact.subject) or fact.subject in speakers
        words = (*speakers, "the user")
        return is_subject or any(has_words(fact.text, one) for one in words) or any(ties_in(fact.text))

    mirrors: list[ExtractedFact] = []
    for fact in facts:
        inferred = [
            said
            for said in fact.relations
            if fact.action_hint != "retract"
            and not is_same_as(said.predicate)
            and not any(names(one, said.subject) and names(one, said.object) for one in facts)
        ]
        yield fact.model_copy(update={"relations": tuple(one for one in fact.relations if one not in inferred)})
        for said in inferred:
            ends = said.subject, said.object
            text = relation_sentence(
                said.predicate,
                *(turn.speaker or "the user" if is_user_word(end) else with_owner(end, turn.speaker) for end in ends),
            )
            mirrors.append(
                ExtractedFact(
                    text=text,
                    excerpt=fact.excerpt,
                    search_text=text,
                    category="relationship" if "relationship" in task.categories else fact.category,
                    certainty="weak",
                    subject=said.subject,
                    entities=tuple(entity for entity in fact.entities if entity.name in ends),
                    relations=(said.model_copy(update={"strength": "weak"}),),
                )
            )
    yield from mirrors


def relation_sentence(predicate: str, subject: str, object_: str) -> str:
    """A relation in plain words: "Mum lives in Rome", "Tom is member of Acme", "Alice's wife is Ana"."""
    words = predicate.replace("_", " ")
    if words.endswith((" in", " at", " for", " to", " with", "owns")):
        return f"{subject} {words} {object_}."
    return f"{subject} is {words} {object_}." if words.endswith(" of") else f"{subject}'s {words} is {object_}."


def _extracted(
    fact: _Fact, speaker: str | None, entities: tuple[NamedEntity, ...], relations: tuple[NamedRelation, ...]
) -> ExtractedFact:
    """The fact of a reply; what another `speaker` says of "the user" is about that speaker."""
    subject, kind = fact.subject or None, fact.importance_category
    if speaker is not None and (subject is None or is_user_word(subject)):
        subject = speaker
    return ExtractedFact.model_validate(
        fact.model_dump(exclude={"entities", "relations", "category"})
        | ranked_categories(fact.category)
        | {
            "entities": entities,
            "relations": relations,
            "text": fact.text.strip(),
            "search_text": fact.search_text.strip() or fact.text.strip(),
            "value": fact.value or None,
            "subject": subject,
            "importance": IMPORTANCE_OF_CATEGORY[kind] if kind else DEFAULT_IMPORTANCE,
            "single_valued": fact.single_valued and fact.key is not None,
        }
    )
