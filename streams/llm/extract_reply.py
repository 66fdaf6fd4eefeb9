"""The reply to an extraction: its form, and which of its facts, names and relations are accepted.

`parse_extraction` takes a fact whose excerpt a message of the user says, and whose text says no more (`Evidence`), with
the names that were said (`said_entities`) and relations between these (`told_relations`).
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from mnemolog.schemas.base import Text
from mnemolog.schemas.entities import (
    BEINGS,
    ENTITY_TYPES,
    MAX_ENTITIES,
    MAX_NAME,
    MAX_RELATIONS,
    MAX_UNLINKED,
    SAME_AS,
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
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import DroppedStatement, DropReason
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.names import (
    TIE_TYPES,
    described_name,
    has_tie,
    name_key,
    owned_subject,
    read_name,
    ties_in,
    ties_told,
    with_owner,
)
from mnemolog.streams.entities.relations import name_forms
from mnemolog.streams.llm import ask
from mnemolog.streams.llm.evidence import CHECKED, Evidence, evidence_messages, is_said, other_speaker, shown_messages
from mnemolog.streams.llm.ports import CUT_OFF, ExtractionTask
from mnemolog.streams.text.differences import USER, is_user_word
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, noted
from mnemolog.streams.text.tokens import (
    CLAUSE_ENDS,
    CONJUNCTIONS,
    DATES,
    PATTERNS,
    SMALL_WORDS,
    UNITS,
    WORDS,
    has_words,
    tables,
)

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


class EntityReply(ask.ReplyModel):
    name: Text
    type: Text = "other"
    role: Role = "mention"
    aliases: tuple[Text, ...] = ()
    """Each is read as a relation `same_as`."""


class RelationReply(ask.ReplyModel):
    """A relation as rules tell it; a model is not asked for any."""

    subject: Text
    predicate: Text
    object: Text
    strength: Strength = "weak"


def speakers_of(turn: Turn) -> frozenset[str]:
    return frozenset(name for name in (turn.speaker, *(message.name for message in turn.messages)) if name)


def said_entities(
    replies: Iterable[EntityReply], said: Sequence[str], turn: Turn, types: Collection[EntityType] = ENTITY_TYPES
) -> tuple[tuple[NamedEntity, ...], tuple[UnlinkedName, ...]]:
    """The entities whose names occur in `said` or are speakers of the turn; and the names that are left out.

    `said` are the messages of the turn and the fact's text. Left out are names that nobody said, of too many letters,
    and beyond the bound of a fact. `types` were asked for.
    """
    speakers = speakers_of(turn)
    kept: dict[str, NamedEntity] = {}
    left_out: dict[str, UnlinkedName] = {}
    for reply in replies:
        name = " ".join(reply.name.split())
        if not name:
            continue
        is_known = len(reply.name) <= MAX_NAME and (reply.name in speakers or is_said(reply.name, said))
        if name in kept or (is_known and len(kept) < MAX_ENTITIES):
            kept[name] = NamedEntity(name=name, type=read_type(reply.type, types), role=reply.role)
        else:
            left_out.setdefault(name, _unlinked(reply.name, "too_many" if is_known else "not_said"))
    return tuple(kept.values()), tuple(left_out.values())[:MAX_UNLINKED]


def _unlinked(name: str, reason: UnlinkedReason) -> UnlinkedName:
    short = ask.shortened(" ".join(name.split()), MAX_NAME)
    return UnlinkedName(name=short, reason="too_long" if len(name) > MAX_NAME else reason)


def told_relations(
    entities: Iterable[EntityReply],
    relations: Iterable[RelationReply],
    *,
    names: Iterable[str],
    said: Sequence[str],
    turn: Turn,
    other_speaker: str | None,
) -> tuple[tuple[NamedRelation, ...], tuple[UnlinkedName, ...]]:
    """The relations of a fact, first the pairs of names of one entity (`same_as`); and the names that are left out.

    Both ends are the user, speakers of the turn, or among `names`, the fact's entities and its subject; of a `same_as`
    they are in `said`, the messages of the turn and before it. What another speaker says of "the user" is about that
    speaker. No name has a relation with itself.
    """
    replies = [
        RelationReply(subject=entity.name, predicate=SAME_AS, object=alias, strength="strong")
        for entity in entities
        for alias in entity.aliases
    ]
    replies += relations
    if not replies:
        return (), ()
    speakers = speakers_of(turn)
    known = {form for name in (*names, *speakers) if name for form in name_forms(name)}
    kept: dict[tuple[str, str, str], NamedRelation] = {}
    unsaid: dict[str, UnlinkedName] = {}
    for reply in sorted(replies, key=lambda one: not is_same_as(one.predicate)):
        predicate, is_alias = read_predicate(reply.predicate), is_same_as(reply.predicate)
        ends = [" ".join(name.split()) for name in (reply.subject, reply.object)]
        if predicate is None or not all(ends):
            continue
        strange = [name for name in ends if not is_user_word(name) and name not in speakers]
        strange = [
            name
            for name in strange
            if len(name) > MAX_NAME
            or not (is_said(name, said) if is_alias else known.intersection(name_forms(name)[:1]))
        ]
        unsaid |= {name: _unlinked(name, "not_said") for name in strange if is_alias}
        one, other = (other_speaker if other_speaker and is_user_word(name) else name for name in ends)
        if not strange and name_key(one) != name_key(other):
            word = SAME_AS if is_alias else predicate.word
            kept[one, word, other] = NamedRelation(subject=one, predicate=word, object=other, strength=reply.strength)
    return tuple(kept.values())[:MAX_RELATIONS], tuple(unsaid.values())


MAX_FACTS = 100
_WORDS_OF_CHANGE: Final[Mapping[tuple[ActionHint, Certainty], str]] = {
    ("new", "explicit"): "new added add",
    ("new", "speculation"): "unsure",
    ("new", "weak"): "maybe guess guessed guesses possibly perhaps probably likely not_sure uncertain doubt doubts",
    ("update", "explicit"): "changed change update updated replace replaced moved switched corrected correction",
    ("retract", "explicit"): "ended end ends over stopped stop no_longer former finished gone retract retracted",
}
_CHANGES: Final = {word: meaning for meaning, words in _WORDS_OF_CHANGE.items() for word in words.split()}
"""What the words of models for a change mean: the hint, and how certain the fact is."""
_UNSURE: Final = frozenset({"might", "maybe", "perhaps", "possibly", "probably", "unsure"})
_NO_VALUE: Final = re.compile(
    r".*(?:[-=]>|[→⇒]|\b(?:was|formerly|former|previously)\b).*|(?:not|nicht|none|nobody)\b.*"
    r"|ended|over|stopped|finished|gone|quit|left",
    re.IGNORECASE | re.DOTALL,
)
"""What stands in the place of a value and is none: a denial, an end, or the way from one value to another."""
_KINDS: Final[Mapping[str, ImportanceCategory]] = {
    "identity": "biographical_milestone",
    "relationship": "relationship_change",
    "hard_preference": "stable_preference",
    "soft_preference": "stable_preference",
}
"""How important the facts of a category are; those of the others are of specific events."""
_ABBREVIATED: Final = re.compile(r"(?:^|\s)(?:Dr|Mrs?|Ms|Prof|St|Nr|No|Hr|Fr|Sra?|Mme|ca|vs|[A-Z])\.$")


def lines_of(message: str) -> list[str]:
    """The sentences of a message as a prompt numbers them; one that ends in an abbreviation goes on ("Dr. Lee")."""
    lines: list[str] = []
    for sentence in sentences_of(message):
        if lines and _ABBREVIATED.search(lines[-1]) and f"{lines[-1]} {sentence}" in message:
            lines[-1] += f" {sentence}"
        else:
            lines.append(sentence)
    return lines


def numbered_lines(turn: Turn) -> list[str]:
    return [line for message in evidence_messages(turn) for line in lines_of(message.content)]


def fact_line(item: Mapping[str, Any], lines: Sequence[str]) -> int | None:
    """The place of the line that states a fact of a reply: the named one, or of all the one that shares most words.

    None where neither tells; a named line that shares no word counts where no other does.
    """
    named, text = item.get("line"), item.get("text")
    place = named - 1 if type(named) is int and 0 < named <= len(lines) else None
    own = read(text).told if isinstance(text, str) else frozenset()
    if place is not None and (own & read(lines[place]).told or short_answer(lines[place])):
        return place
    shared = {at: len(own & read(line).told) for at, line in enumerate(lines)}
    best = max(shared, key=lambda at: shared[at], default=None)
    return best if best is not None and shared[best] else place


class _Fact(ask.ReplyModel):
    """A fact as models and rules give it; what is missing is worked out."""

    excerpt: ask.FilledLine
    text: ask.FilledLine
    search_text: ask.Line = ""
    key: Annotated[Slot | None, BeforeValidator(ask.as_slot)] = None
    value: ask.OptionalLine = None
    single_valued: bool = False
    category: Annotated[tuple[Slot, ...], BeforeValidator(ask.as_slots)] = ()
    importance_category: Annotated[ImportanceCategory | None, BeforeValidator(ask.as_slot)] = None
    certainty: Annotated[Certainty, BeforeValidator(ask.as_slot)] = "strong"
    subject: ask.OptionalLine = None
    event_time: ask.ReplyTime = None
    valid_until: ask.ReplyTime = None
    action_hint: Annotated[ActionHint, BeforeValidator(ask.as_slot)] = "new"
    entities: tuple[EntityReply, ...] = ()
    relations: tuple[RelationReply, ...] = ()


_PARTS: Final = frozenset({"name", "type", "key", "slot", "value", "kind", "text", "entity", "category"})
"""Names that the parts of a name or a slot have, where a model writes an object: others are parts themselves."""
_ENTITY: Final = re.compile(r"\s*([^;\n]*?)\s*[:(]\s*([\w ]+)\)?\s*(?=[;,\n]|$)|([^;\n]+)")
"""A name with its type, or without one: "Tom: person", "Tom (person)", "Tom"."""


def _as_words(value: Any, between: str) -> Any:
    """A part of a reply as it was asked for, "Tom: person; Oslo: place", of lists and objects that say the same."""
    if isinstance(value, list):
        return between.join(words for one in value if (words := _as_words(one, between)))
    if isinstance(value, dict):
        if {*map(str.casefold, value)} <= _PARTS:
            return ": ".join(filter(None, (_as_words(one, " ") for one in value.values())))
        return between.join(f"{name}: {_as_words(one, ' ')}" for name, one in value.items())
    return "" if ask.is_nothing(value) or value is True else str(value)


_DAYS: Final = frozenset(word for word, day in DATES.items() if day in ("today", "yesterday", "tomorrow"))
_TIMES: Final = SMALL_WORDS | WORDS["time_words"] | DATES.keys() | UNITS.keys()


def _read_slot(slot: str, excerpt: str) -> dict[str, str] | None:
    """The key and the value of a slot ("home_city: Oslo"); None where the value, or the key, cannot be one."""
    said, mark, value = slot.partition(":" if ":" in slot else "=")
    key, own = ask.as_slot(said), read("" if ask.is_nothing(value) else value.strip())
    words = {token.casefold() for token in own.tokens}
    is_time = words <= _TIMES and not words.isdisjoint(WORDS["time_words"] | _DAYS)
    is_list = is_single_valued(f"{key}") and re.search(r"[,;] | (?:and|&|/) ", value) and not has_words(excerpt, value)
    names = read(excerpt).names & {token.casefold() for token in read(said).tokens}
    is_value = _NO_VALUE.fullmatch(value.strip()) is None and PATTERNS["ended"].search(" ".join(own.tokens)) is None
    if not mark:
        return None if names or re.search(r"[-\u2013\u2014|>(]", said) else {"key": said, "value": ""}
    if own.tokens and (is_time or is_list or not is_value or ask.as_slot(value) == key):
        return None
    return {"key": said, "value": value.strip() if own.tokens else ""}


def _with_fields(item: Any, lines: Sequence[str], unread: list[str]) -> Any:
    """A fact of a reply in the fields of `_Fact`, with the words of its line; a lone text is that of the fact.

    `unread` gets the names of fields that mean nothing.
    """
    item = {"text": item} if isinstance(item, str) else item
    if not isinstance(item, dict):
        return item
    fact = {name.casefold(): part for name, part in item.items()}
    sentences = [part for part in fact.values() if isinstance(part, str) and part.strip().count(" ") > 1]
    if sentences and not {"text", "excerpt"} & fact.keys():  # under another name
        fact["text"] = max(sentences, key=len)
    if not fact.get("excerpt") and (place := fact_line(fact, lines)) is not None:
        fact["excerpt"] = lines[place]
    if "about" in fact:
        fact.setdefault("subject", _as_words(fact["about"], " ").partition(":")[0])
    if slot := _as_words(fact.get("slot"), ": "):
        read_slot = _read_slot(slot, fact.get("excerpt") or "")
        unread += ["slot"] * (read_slot is None)
        fact = (read_slot or {}) | fact
    change = f"_{ask.as_slot(_as_words(fact.get('change'), ' ')) or 'new'}_"
    meant = {meaning for word, meaning in _CHANGES.items() if f"_{word}_" in change}
    unread += ["change"] * (len(meant) != 1)
    hint, certainty = meant.pop() if len(meant) == 1 else _CHANGES["new"]
    fact.setdefault("action_hint", hint)
    is_unsure = isinstance(said := fact.get("text"), str) and not _UNSURE.isdisjoint(read(said).lower)
    fact.setdefault("certainty", "weak" if is_unsure and certainty == "explicit" else certainty)
    if names := _as_words(fact.get("names"), "; "):  # "Liz = Elizabeth: person" has two names
        fact.setdefault("entities", entities := [])
        for called, kind, bare in _ENTITY.findall(names):
            name, *others = (one.strip() for one in (called or bare).lstrip(",").split("="))
            entities.append({"name": name, "type": kind.strip() or "other", "aliases": [*filter(None, others)]})
    return fact


def parse_extraction(text: str, subject: ExtractionTask) -> ask.ParsedReply[tuple[ExtractedFact, ...]]:
    """The facts of a reply that follow from the turn; the others are dropped, each with the reason.

    A reply without a list of facts, or with none that can be read among some, has no value.
    """
    found = ask.find_object(text, "facts")
    if isinstance(found, str) or not isinstance(items := found["facts"], list):
        return ask.ParsedReply(complaints=(found if isinstance(found, str) else "facts: must be a list",))
    context = ask.ReadingContext(subject.turn.occurred_at.tzinfo or UTC)
    lines = numbered_lines(subject.turn)
    facts: list[_Fact] = []
    dropped: list[DroppedStatement] = []
    faults: list[str] = []
    for index, item in enumerate(items):
        try:
            fact = _Fact.model_validate(_with_fields(item, lines, context.unread), context=context)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            faults.append(f"{'.'.join(map(str, ('facts', index, *fault['loc'])))}: {fault['msg']}")
        else:
            if len(facts) < MAX_FACTS:
                facts.append(fact)
                continue
        dropped.append(_invalid_fact(item))
    if faults and not facts:
        return ask.ParsedReply(complaints=tuple(faults)[: ask.MAX_COMPLAINTS], dropped=tuple(dropped[:MAX_FACTS]))
    founded, unfounded = _founded(facts, subject)
    omitted: list[DroppedStatement] = []
    with suppress(ValidationError, LookupError, TypeError):  # rules list these; a language model is not asked for them
        omitted += [DroppedStatement(text=one["text"], reason=one["reason"]) for one in found["omitted"]]
    notes = [ask.CUT_OFF_NOTE] if CUT_OFF in found else []
    if unread := ", ".join(dict.fromkeys(context.unread)):  # no word of the reply, which may be about what is hidden
        notes.insert(0, f"fields of the reply could not be read and were passed over: {unread}")
    return ask.ParsedReply(value=founded, dropped=(*dropped[:MAX_FACTS], *unfounded, *omitted), notes=tuple(notes))


def _invalid_fact(item: Any) -> DroppedStatement:
    """What a reply has in the place of a fact, in characters that can be stored."""
    named = [item.get(name) for name in ("text", "excerpt")] if isinstance(item, dict) else []
    texts = [text for text in named if isinstance(text, str) and text.strip()] or [json.dumps(item)]
    what, excerpt = (
        ask.shortened(one.replace("\x00", "").encode("utf-8", "replace").decode(), ask.MAX_LINE)
        for one in (texts[0], texts[-1])
    )
    return DroppedStatement(text=what, reason="invalid_fact", excerpt=excerpt)


def _founded(
    candidates: Sequence[_Fact], task: ExtractionTask
) -> tuple[tuple[ExtractedFact, ...], list[DroppedStatement]]:
    """The facts whose excerpt a message of the user says, and whose text asserts no more than that and its question."""
    evidence, turn = Evidence(task), task.turn
    said_before = [message.content for message in shown_messages(turn)]
    said_before += [message.content for message in task.background.messages]
    facts: list[ExtractedFact] = []
    dropped: list[DroppedStatement] = []
    for fact in candidates:
        said_in, faults = evidence.support(fact.text, fact.excerpt, **{name: getattr(fact, name) for name in CHECKED})
        if not said_in:
            reason: DropReason = "unfounded" if faults else "excerpt_not_found"
            detail = faults[0].what if faults else evidence.absence_reason(fact.excerpt)
            dropped.append(DroppedStatement(text=fact.text, reason=reason, excerpt=fact.excerpt, detail=detail))
            continue
        for field, _, what in faults:
            named = f"{field}: {getattr(fact, field)}"
            dropped.append(DroppedStatement(text=named, reason="unfounded", excerpt=fact.excerpt, detail=what))
        sound = fact.model_copy(update=dict.fromkeys((fault.field for fault in faults), None)) if faults else fact
        said = (*(one.message.content for one in evidence.said), fact.text)
        entities, left_out = said_entities(fact.entities, said, turn, task.entity_types)
        speaker = other_speaker(turn, said_in, fact.excerpt)
        relations, unsaid = told_relations(
            fact.entities,
            fact.relations,
            names=(*(entity.name for entity in entities), fact.subject or ""),
            said=said_before,
            turn=turn,
            other_speaker=speaker,
        )
        made, unlinked = _extracted(sound, task, speaker, entities, relations), (*left_out, *unsaid)[:MAX_UNLINKED]
        facts.append(made.model_copy(update={"unlinked": unlinked}) if unlinked else made)
    return tuple(with_mirrors(facts, task))[:MAX_FACTS], dropped


def with_mirrors(facts: Sequence[ExtractedFact], task: ExtractionTask) -> Iterator[ExtractedFact]:
    """The facts, and one for each relation whose two ends no text of them names.

    "Alice's mother lives in Rome." The relation rests on that fact of weak certainty alone, so that a search finds what
    a model inferred, and any decision ends it. From Arandu's write pipeline, mirror facts (confidence .60).
    """
    speakers = speakers_of(task.turn)
    mirrors: list[ExtractedFact] = []
    for fact in facts:
        inferred = [
            said
            for said in fact.relations
            if fact.action_hint != "retract"
            and not is_same_as(said.predicate)
            and not any(all(_names_end(one, end, speakers) for end in (said.subject, said.object)) for one in facts)
        ]
        told = tuple(one for one in fact.relations if one not in inferred)
        yield fact.model_copy(update={"relations": told}) if inferred else fact
        mirrors += [_mirror(fact, said, task) for said in inferred]
    yield from mirrors


def _names_end(fact: ExtractedFact, end: str, speakers: Collection[str]) -> bool:
    """Whether the text of a fact names an end of a relation."""
    if fact.value and end.endswith(f" {fact.value}") and has_words(fact.text, fact.value):
        return True
    if not is_user_word(end) and end not in speakers:
        spoken = read_name(end)
        if spoken and spoken.tie and not spoken.name:
            return has_tie(fact.text, spoken.tie)
        return has_words(fact.text, (spoken and spoken.name) or end)
    is_subject = fact.subject is None or is_user_word(fact.subject) or fact.subject in speakers
    words = (*speakers, "the user")
    return is_subject or any(has_words(fact.text, one) for one in words) or any(ties_in(fact.text))


def _mirror(fact: ExtractedFact, said: NamedRelation, task: ExtractionTask) -> ExtractedFact:
    """The fact of a relation alone: "Mum lives in Rome", "Tom is member of Acme", "Alice's wife is Ana"."""
    ends, speaker = (said.subject, said.object), task.turn.speaker
    one, other = (speaker or "the user" if is_user_word(end) else with_owner(end, speaker) for end in ends)
    words = said.predicate.replace("_", " ")
    text = f"{one}'s {words} is {other}."
    if words.endswith((" in", " at", " for", " to", " with", "owns", " of")):
        text = f"{one} {'is ' * words.endswith(' of')}{words} {other}."
    return ExtractedFact(
        text=text,
        excerpt=fact.excerpt,
        search_text=text,
        category="relationship" if "relationship" in task.categories else fact.category,
        certainty="weak",
        subject=said.subject,
        entities=tuple(entity for entity in fact.entities if entity.name in ends),
        relations=(said.model_copy(update={"strength": "weak"}),),
    )


def _extracted(
    fact: _Fact,
    task: ExtractionTask,
    speaker: str | None,
    entities: tuple[NamedEntity, ...],
    relations: tuple[NamedRelation, ...],
) -> ExtractedFact:
    """The fact of a reply; what another `speaker` says of "the user" is about that speaker.

    Fields that the reply leaves out are worked out: the importance of the category, times that the excerpt names, and
    whom and what its ties and the value name.
    """
    turn, subject, given = task.turn, fact.subject or None, fact.model_fields_set
    if speaker is not None and (subject is None or is_user_word(subject)):
        subject = speaker
    if (described := _described_subject(fact, subject, turn, entities)) is not None:

        def name(said: str, bare: str | None = subject) -> str:
            return described if said == bare else said

        entities = tuple(one.model_copy(update={"name": name(one.name)}) for one in entities)
        relations = tuple(
            one.model_copy(update={"subject": name(one.subject), "object": name(one.object)}) for one in relations
        )
        subject = described
    made = fact.model_dump(exclude={"entities", "relations", "category"})
    made |= ranked_categories(tuple(one for one in fact.category if one in task.categories))
    made |= {"subject": subject, "value": fact.value or None, "text": fact.text.strip()}
    if not {"event_time", "valid_until"} & given:
        times = find_times(made["text"], turn.occurred_at)
        undated = tuple(one for one in times if not _YEAR.search(made["text"][slice(*one.span)]))
        made |= _times(fact, turn) | {"text": noted(made["text"], undated)}
    if "relations" not in given:
        made |= {} if _tells_key(fact) else {"key": None, "value": None}
        entities, ties = _with_named(entities, made, fact.excerpt, turn)
        relations = (*relations, *ties)
    if "importance_category" not in given:
        made["importance_category"] = _KINDS.get(made["category"], "specific_event")
    kind = made["importance_category"]
    made |= {
        "entities": entities[:MAX_ENTITIES],
        "relations": relations,
        "single_valued": fact.single_valued and made["key"] is not None,
        "importance": IMPORTANCE_OF_CATEGORY[kind] if kind else DEFAULT_IMPORTANCE,
        "search_text": fact.search_text.strip() or made["text"],
    }
    return ExtractedFact.model_validate(made)


def _tells_key(fact: _Fact) -> bool:
    """Whether the words of a fact have the tie that its key is, if that is one: "my wife" for `wife` or `partner`."""
    if fact.key not in TIE_TYPES or (tie := read_predicate(fact.key)) is None:
        return True
    said = ties_told(fact.excerpt)
    return tie.predicate.name in said or (fact.key == "partner" and "spouse" in said)


def _with_named(
    entities: tuple[NamedEntity, ...], made: Mapping[str, Any], excerpt: str, turn: Turn
) -> tuple[tuple[NamedEntity, ...], tuple[NamedRelation, ...]]:
    """The entities, or those that the ties of an excerpt and a value name; and what the value is to the subject."""
    key, value, subject = made["key"] or "", made["value"] or "", made["subject"]
    is_named = not value or key not in TIE_TYPES or _is_name(value, excerpt, entities, subject)
    of_value, relations = names_of_value(key, value, subject or turn.speaker) if is_named else ((), ())
    if entities:
        return entities, relations
    ties = ((with_owner(words, turn.speaker), tie) for tie, words in ties_in(excerpt))
    named = (NamedEntity(name=name, type=TIE_TYPES[tie]) for name, tie in ties if len(name) <= MAX_NAME)
    return tuple({one.name: one for one in (*named, *of_value)}.values()), relations


def _is_name(value: str, excerpt: str, entities: Sequence[NamedEntity], subject: str | None) -> bool:
    """Whether the value of a tie names somebody else than the subject: a said word with a capital, or a known name."""
    spoken, key = read_name(subject or ""), name_key(value)
    if not key or key in {name_key(one) for one in (subject or "", (spoken and spoken.name) or "")}:
        return False
    if any(key == name_key(one.name) for one in entities):
        return True
    first = value.split(maxsplit=1)[0]
    is_proper = first[0].isupper() or first.lower() == first.upper()
    is_number = any(one[0].isdigit() for one in read(value).claimed)
    return is_proper and first in excerpt and not (is_number or short_answer(value) or ties_told(value))


def _described_subject(fact: _Fact, subject: str | None, turn: Turn, entities: Sequence[NamedEntity]) -> str | None:
    """Whom a fact is about, with the tie or description that its words give to the bare name of the reply.

    Text and excerpt alike: "Alice's colleague Ana" of "My colleague Ana moved", about "Ana". A text that begins with
    somebody of the subject ("Lea's sister Anna sings", "The user's company moved") is about these. What is said of a
    tie itself stays the subject's: "Lea's boss is Henrik", of the slot `boss`.
    """
    is_thing = any(one.name == subject and one.type not in {*BEINGS, "other"} for one in entities)
    if is_thing or (spoken := read_name(subject or USER)) is None or spoken.tie or spoken.origin:
        return None
    is_user = subject in (None, turn.speaker) or is_user_word(subject)
    owners = {subject, turn.speaker, "the user", "user"} if is_user else {subject}
    found = next((name for one in owners if one and (name := owned_subject(fact.text, one, fact.key))), None)
    called = turn.speaker if is_user else subject
    if found is None and called:
        found = described_name(called, fact.text, fact.excerpt)
    described = with_owner(found, turn.speaker) if found else ""
    return described if 0 < len(described) <= MAX_NAME and described != subject else None


def _nearest(spans: Sequence[tuple[int, int]], place: int) -> tuple[int, int]:
    return min(spans, key=lambda span: max(span[0] - place, place - span[1], 0))


def _times(fact: _Fact, turn: Turn) -> dict[str, Any]:
    """When a fact began and ends, by the words of its excerpt: the clause that says it, of several.

    A time ahead is the end of a plan, or of what is said to end; else it is a beginning.
    """
    at, own = turn.occurred_at, read(fact.text).told
    times, rest = find_times(fact.excerpt, at), fact.excerpt
    if not times:
        return {"event_time": None, "valid_until": None}
    for first, last in (when.span for when in times):
        rest = rest[:first] + " " * (last - first) + rest[last:]
    ends = (0, *(one.start() for one in _CLAUSE_END.finditer(rest)), len(rest))
    clauses = [pair for pair in pairwise(ends) if read(rest[slice(*pair)]).told]  # not "In May" of "In May, I moved"
    if len(clauses) > 1:
        shared = {pair: len(own & read(rest[slice(*pair)]).told) for pair in clauses}
        most = max(shared.values())
        times = tuple(when for when in times if most and shared[_nearest(clauses, when.span[0])] == most)
    began = next((one.start(at) for one in times if one.role != "until" and one.last < at.date()), None)
    until = next((one.end(at) for one in times if one.role == "until" and one.last >= at.date()), None)
    ahead = next((one for one in times if one.role != "until" and one.first > at.date()), None)
    if ahead and not until and (fact.action_hint == "retract" or "task_context" in fact.category):
        until = ahead.end(at)
    elif ahead and not began:
        began = ahead.start(at)
    return {"event_time": began, "valid_until": until if not (until and began and until <= began) else None}


_CLAUSE_END: Final = re.compile(rf"[{''.join(sorted(CLAUSE_ENDS))}](?!\d)|\b(?:{'|'.join(sorted(CONJUNCTIONS))})\b")
_YEAR: Final = re.compile(r"\d{4}")
_VALUE_TYPES: Final[Mapping[str, EntityType]] = {
    "home_city": "place",
    "home_country": "place",
    "birth_place": "place",
    "employer": "organisation",
}


def names_of_value(
    key: str, value: str, subject: str | None
) -> tuple[tuple[NamedEntity, ...], tuple[NamedRelation, ...]]:
    """What the value of a key names, and what that is to the subject.

    A home, an employer, or somebody or something of the subject's: "Alice's sister Eva", "my dog Rex".
    """
    kind, predicate, whom = TIE_TYPES.get(key) or _VALUE_TYPES.get(key), read_predicate(key), subject or USER
    whose = f"{subject}'s" if subject else "my"
    name = f"{whose} {key} {value}".strip() if key in TIE_TYPES else value
    if kind is None or not 0 < len(name) <= MAX_NAME:
        return (), ()
    entities = (NamedEntity(name=name, type=kind, role="object"),)
    if predicate is None or len(whom) > MAX_NAME:
        return entities, ()
    return entities, (NamedRelation(subject=whom, predicate=predicate.word, object=name),)
