"""Commands with a text: update, correct, resolve and import; values that follow from the new text."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from operator import eq
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import CommandPayload, Correct, Delete, Edit, Import, Resolve, Update, named_facts
from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactContradicted,
    FactCorrected,
    FactReplaced,
    FactsMerged,
    MemoryEvent,
    PendingRejected,
)
from mnemolog.schemas.facts import (
    CONFIDENCE_OF_CERTAINTY,
    IMPORTANCE_OF_CATEGORY,
    EmbeddedFact,
    ExtractedFact,
    NewFact,
    Statement,
    ranked_categories,
)
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import FactSnapshot
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.context import (
    CommandContext,
    CommandRefusedError,
    Events,
    StoredFacts,
    edit_fault,
    is_open,
    open_fault,
    raise_for_faults,
)
from mnemolog.streams.ends import EndRules, same_value, tells_end_of
from mnemolog.streams.entities.names import is_first_name, name_key, read_name, with_owner
from mnemolog.streams.merges import candidate_of, fill_one_slot, merged, says_more
from mnemolog.streams.text.differences import USER, compare_subjects, is_user_word
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.tokens import NEGATIONS

MAX_NAME_WORDS: Final = 4
NO_FACTS: Final[StoredFacts] = MappingProxyType({})
_PUNCTUATION: Final = ".,;:!?\"'()"
_HOLDER: Final = re.compile(
    r"(?P<name>(?i:the user)|[^\W\d_][\w-]*(?: [^\W\d_a-z][\w-]*)*)"
    r"(?:['\u2019]s (?P<owned>[a-z]+))? (?P<verb>[a-z]+)(?= )"
)
_FIRST_PERSON: Final = {"is": "am", "has": "have", "does": "do", "was": "was"}


def value_after_edit(old_text: str, old_value: str | None, new_text: str) -> str | None:
    """The value of `new_text`, where that is clear from `old_text` and its value; else None.

    It is clear where the texts differ in one place. A difference in the value replaces its words: "lives in Munich",
    "lives in Bonn". A name that is added beside the value belongs to it: "lives in York", "lives in New York". With a
    difference elsewhere the value stays, unless the difference is a negation.
    """
    old, new, value = _words(old_text), _words(new_text), _words(old_value or "")
    places = [at for at in range(len(old)) if value and _folded(old[at : at + len(value)]) == _folded(value)]
    if len(places) != 1:
        return None
    begins, ends = places[0], places[0] + len(value)
    first = sum(takewhile(bool, map(eq, old, new)))
    kept = sum(takewhile(bool, map(eq, reversed(old[first:]), reversed(new[first:]))))
    last, inserted = len(old) - kept, new[first : len(new) - kept]
    is_added_name = first == last and first in (begins, ends) and _is_name(inserted)
    if (last <= begins or first >= ends) and not is_added_name:
        denies = any(word.casefold() in NEGATIONS for word in (*old[first:last], *inserted))
        return None if denies else old_value
    if first < begins or last > ends:
        return None
    found = [*old[begins:first], *inserted, *old[last:ends]]
    if not found or any(word.casefold() in NEGATIONS for word in found):
        return None
    # No more words than the value has, or a name.
    if len(found) > len(value) and not (len(found) <= MAX_NAME_WORDS and _is_name(found)):
        return None
    return " ".join(_signed_words(new_text)[begins : begins + len(found)]).strip(_PUNCTUATION)


def beginning_after_edit(old: StoredFact, new_text: str, at: datetime) -> datetime | None:
    """Since when `new_text` is true, where it has another date in the place of the date on which `old` began.

    The date in a text is that of the beginning if the fact began on it, or states a change. None where that is not
    clear, or nothing changed.
    """
    from mnemolog.streams.text.times import find_times  # noqa: PLC0415 - of the extra `server`; clients come by here

    direction: Literal[-1, 1] = 1 if old.true_from > at or old.fact.action_hint == "update" else -1
    before, after = (
        [when for when in find_times(text, at, direction) if when.role != "until"] for text in (old.fact.text, new_text)
    )
    if len(before) != 1 or len(after) != 1 or before[0].first == after[0].first:
        return None
    is_beginning = old.fact.action_hint == "update" or old.true_from.date() == before[0].first
    return after[0].start(at) if is_beginning else None


def has_nothing_in_common(known: FactSnapshot, text: str, people: Iterable[str | None]) -> bool:
    """Whether a text differs in more than the value, and shares no word that tells something but names of `people`."""
    old, new = read(known.text), read(text)
    if value_after_edit(known.text, known.value, text) is not None:
        return False
    if not (old.is_spaced and new.is_spaced):
        return not old.signs & new.signs
    return not ({*new.stems, *new.details} - _stems(people)) & {*old.stems, *old.details}


def _stems(names: Iterable[str | None]) -> set[str]:
    return {stem for name in names if name for stem in read(name).stems}


def slot_of_text(text: str, at: datetime) -> tuple[str | None, dict[str, Any]] | None:
    """Whom a plain sentence names as the holder of a slot, and the fields of a fact that fills it; None for others.

    "Alice's sister lives in Bonn." is read as her "I live in Bonn."
    """
    from mnemolog.streams.offline.sentences import FILLS, SLOTS, slot_statements  # noqa: PLC0415 - of the extra `server`

    said: list[tuple[str | None, str]] = [(None, text)]
    if named := _HOLDER.match(text):
        verb, owned, rest = named["verb"], named["owned"], text[named.end() :]
        own = _FIRST_PERSON.get(verb, verb.removesuffix("s"))
        said += [(named["name"], f"My {owned} {verb}{rest}")] * bool(owned)
        said.append((text[: named.start("verb")].rstrip(), f"I {own}{rest}"))
    for holder, sentence in said:
        found = slot_statements(sentence, at)
        if len(found) == 1 and found[0].act in FILLS:
            (key,) = found[0].keys
            _, _, kind = SLOTS[key]
            return holder, {
                "key": key,
                "value": found[0].value,
                "single_valued": is_single_valued(key),
                **kind,
                "importance": IMPORTANCE_OF_CATEGORY[kind["importance_category"]],
            }
    return None


def holder_of_text(text: str, old: StoredFact) -> str | None:
    """Whom a text begins with: what stands in the place of the old subject, a known first name, a tie; else None."""
    subject, words = old.fact.subject or "", text.split()
    rest = old.fact.text.removeprefix(subject)
    if subject and rest != old.fact.text and text.endswith(rest) and _is_name(text.removesuffix(rest).split()):
        return text.removesuffix(rest)
    for length in range(min(len(words) - 1, MAX_NAME_WORDS), 0, -1):
        said = " ".join(words[:length])
        name = read_name(said)
        if name is None or name.is_bare or not (name.name is None or _is_name(name.name.split())):
            continue
        if name.tie or is_first_name(name_key(words[0])):
            return with_owner(said, old.speaker)
    return None


def is_other_holder(holder: str, old: StoredFact) -> bool:
    """Whether the holder that a text names is somebody else than whom a fact is about."""
    known = old.fact.subject or old.speaker or USER
    relation = compare_subjects(holder, known, (old.speaker,) if old.speaker else ())
    is_unknown = relation == "unsure" and is_user_word(known)
    return (relation == "other" or is_unknown) and not re.match(rf"{re.escape(holder)}(?!['\u2019\w])", old.fact.text)


def keeps_slot(old: ExtractedFact, text: str, people: Iterable[str | None]) -> bool:
    """Whether a text fills the slot of a fact, as far as words show: it has all that tell something, but the value's.

    "Alice works in Ulm" is no home, as "Alice lives in Ulm" was. A denial is about the slot that it denies.
    """
    own, before, names = read(text), read(old.text), _stems(people)
    if own.denies or own.ending or not (own.is_spaced and before.is_spaced) or old.value is None:
        return True
    return {*before.stems} - names - {*read(old.value).stems} <= {*own.stems}


def edit_notes(payload: CommandPayload, events: Sequence[MemoryEvent]) -> str:
    """What whoever edited or deleted facts would not expect of the result; "" where there is nothing to say."""
    if not isinstance(payload, Update | Correct | Delete):
        return ""
    taken = {next(iter(event.affected_ids), None) for event in events}
    former = ", ".join(str(fact_id) for fact_id in named_facts(payload) if fact_id not in taken)
    done = "deleted with it" if isinstance(payload, Delete) else "taken"
    notes = [f"{former} had become another version, which was {done}"] if former else []
    for event in events:
        old, new = next(iter(event.decision.before), None), event.new_fact
        if old is None or new is None:
            continue
        is_other = has_nothing_in_common(old, new.text, (new.subject, new.speaker))
        if is_other if old.key is None else old.key != new.key:
            other = "has nothing in common with" if is_other else "is another fact than"
            notes.append(
                f'"{new.text}" {other} "{old.text}": key, value and category are those given or that it shows, '
                "or none; undo the command if another fact was meant"
            )
    return "; ".join(notes)


def _signed_words(text: str) -> list[str]:
    return [word for word in text.split() if word.strip(_PUNCTUATION)]


def _words(text: str) -> list[str]:
    return [word.strip(_PUNCTUATION) for word in _signed_words(text)]


def _folded(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


def _is_name(words: list[str]) -> bool:
    return bool(words) and all(word[0].isupper() or word[0].isdigit() for word in words)


def update(
    context: CommandContext,
    payload: Update,
    facts: StoredFacts,
    embedded_texts: Sequence[EmbeddedFact],
    former: StoredFacts = NO_FACTS,
) -> Events:
    """Each text takes the place of a fact from the time of the command on; `former` is as in `_new_version`."""
    raise_for_faults(edit_fault(context, edit, facts, by_human=False) for edit in payload.edits)
    distinct: dict[UUID, tuple[Edit, EmbeddedFact]] = {}
    for edit, text in zip(payload.edits, embedded_texts, strict=True):
        fact_id = facts[edit.fact_id].fact_id
        first, _ = distinct.setdefault(fact_id, (edit, text))
        if first.model_copy(update={"fact_id": edit.fact_id}) != edit:
            detail = f"{fact_id} is edited twice and differently: give each fact one edit"
            raise CommandRefusedError("invalid_command", detail)
    events: list[FactReplaced | FactContradicted] = []
    for ordinal, (edit, text) in enumerate(distinct.values()):
        old = facts[edit.fact_id]
        if edit.true_from is not None and edit.true_from < old.true_from:
            raise CommandRefusedError(
                "invalid_command",
                f"{old.fact_id} is true since {old.true_from.isoformat()}: give a true_from that is not before that, "
                "or correct the fact",
            )
        fields = context.event_fields(ordinal, context.decision("person", "updated it", [old]))
        if old.true_from > context.now:  # what has not begun yet never was true
            fact = _new_version(context, ordinal, old, edit, text, former=former)
            events.append(FactContradicted(**fields, targets=(old.fact_id,), fact=fact))
        else:
            issued_at = min(context.issued_at, context.now)  # the client's clock may be fast
            ended_at = max(edit.true_from or issued_at, old.true_from)
            fact = _new_version(context, ordinal, old, edit, text, former=former, since=ended_at)
            events.append(FactReplaced(**fields, targets=(old.fact_id,), ended_at=ended_at, fact=fact))
    return tuple(events)


def correct(
    context: CommandContext,
    payload: Correct,
    facts: StoredFacts,
    embedded_texts: Sequence[EmbeddedFact],
    former: StoredFacts = NO_FACTS,
) -> tuple[FactCorrected]:
    """A human's text takes the place of a fact that never was true, or was true until `ended_at`.

    `former` is as in `_new_version`.
    """
    raise_for_faults([edit_fault(context, payload.edit, facts, by_human=True)])
    old = facts[payload.edit.fact_id]
    if payload.ended_at is not None and payload.ended_at < old.true_from:
        detail = f"{old.fact_id} is true since {old.true_from.isoformat()}: give an ended_at that is not before that"
        raise CommandRefusedError("invalid_command", detail)
    fact = _new_version(context, 0, old, payload.edit, embedded_texts[0], former=former, since=payload.ended_at)
    human = fact.model_copy(update={"authority": "human", "confidence": 1.0, "certainty": "explicit"})
    decision = context.decision("person", "corrected it", [old])
    return (
        FactCorrected(**context.event_fields(0, decision), target=old.fact_id, ended_at=payload.ended_at, fact=human),
    )


def reject_ends(
    context: CommandContext, corrected: FactCorrected, old: StoredFact, challengers: StoredFacts
) -> Iterable[PendingRejected]:
    """The held ends and details of the value that a correction has taken back are rejected: nothing is left of it."""
    if same_value(corrected.fact, old.fact):
        return
    of_value = [
        known for known in challengers.values() if known.fact.key == old.fact.key and same_value(known.fact, old.fact)
    ]
    for ordinal, known in enumerate(of_value, corrected.ordinal + 1):
        decision = context.decision("person", "corrected the value that it is about", [known])
        yield PendingRejected(**context.event_fields(ordinal, decision), target=known.fact_id)


def resolve(
    context: CommandContext,
    payload: Resolve,
    facts: StoredFacts,
    default_targets: Sequence[UUID],
    embedded_texts: Sequence[EmbeddedFact],
) -> Events:
    """Settle an unresolved fact against the given targets, or against the open facts among `default_targets`.

    These are the facts that the model was asked about, not all that were near.
    """
    raise_for_faults([open_fault(context, payload.fact_id, facts)])
    if not facts[payload.fact_id].state.unresolved:
        detail = f"{payload.fact_id} is not unresolved: there is nothing to settle"
        raise CommandRefusedError("not_unresolved", detail)
    raise_for_faults(open_fault(context, fact_id, facts) for fact_id in payload.targets)
    wanted = dict.fromkeys(
        payload.targets or (fact_id for fact_id in default_targets if is_open(context, fact_id, facts))
    )
    wanted.pop(payload.fact_id, None)
    targets = tuple(facts[fact_id] for fact_id in wanted)
    parents = (facts[payload.fact_id], *targets)
    if not targets and payload.action != "keep_both":
        detail = f"no fact that {payload.fact_id} is known to stand beside is open: name targets, or use keep_both"
        raise CommandRefusedError("invalid_command", detail)
    if payload.action == "merge":
        if not fill_one_slot(parent.fact for parent in parents):
            filled = ", ".join(f"{parent.fact_id} {parent.fact.key or 'without a key'}" for parent in parents)
            detail = f"one fact holds one key and value ({filled}): use keep_both, or correct one of them first"
            raise CommandRefusedError("invalid_command", detail)
        if len({parent.fact.valid_until for parent in parents}) > 1:
            terms = ", ".join(f"{parent.fact_id} {parent.fact.valid_until or 'without an end'}" for parent in parents)
            detail = f"they hold until different times ({terms}): use replace, contradict or keep_both"
            raise CommandRefusedError("invalid_command", detail)
        edit = Edit(fact_id=payload.fact_id, text=embedded_texts[0].fact.text, value=parents[0].fact.value or "")
        version = _new_version(context, 0, parents[0], edit, embedded_texts[0])
        fact = merged(version, list(map(candidate_of, parents)))
        return (
            FactsMerged(
                **context.event_fields(0, context.decision("person", "resolved it: merge", parents)),
                targets=tuple(parent.fact_id for parent in parents),
                statement=Statement(text=fact.text, excerpt=fact.text),
                fact=fact,
            ),
        )
    ended_at = max(stored.true_from for stored in parents) if payload.action == "replace" else None
    event = ConflictResolved(
        **context.event_fields(0, context.decision("person", f"resolved it: {payload.action}", parents)),
        target=payload.fact_id,
        targets=tuple(wanted),
        action=payload.action,
        ended_at=ended_at,
    )
    return (event,)


def _new_version(
    context: CommandContext,
    ordinal: int,
    old: StoredFact,
    edit: Edit,
    text: EmbeddedFact,
    *,
    former: StoredFacts = NO_FACTS,
    since: datetime | None = None,
) -> NewFact:
    """A fact with a new text; true `since` then, or since the edit or its text says, or since the old fact was.

    It has the old fact's term, if that is still to come. A text that denies the old text is no value of its key. A
    plain sentence has the slot and the holder that it names; another one that fills not the slot of the old fact has
    nothing of that but subject, metadata and confidence. Where the old fact has no value, as a denial has none, the new
    text is compared with that of the fact that had the value before it: `former`, by the id of the old fact.
    """
    begins = edit.true_from or (beginning_after_edit(old, edit.text, context.issued_at) if since is None else None)
    people, before = (old.fact.subject, old.speaker), former.get(old.fact_id, old).fact
    before = before if before.key == old.fact.key else old.fact
    holder, filled = slot_of_text(edit.text, context.issued_at) or (holder_of_text(edit.text, old), {})
    is_other = filled["key"] != old.fact.key if filled else not keeps_slot(before, edit.text, people)
    is_other = is_other or (not filled and has_nothing_in_common(old.snapshot, edit.text, people))
    kept = ("subject",) if is_other else ExtractedFact.model_fields
    stated = {name: getattr(old.fact, name) for name in kept} | (filled if is_other else {})
    if holder and is_other_holder(holder, old):
        stated["subject"] = holder
    changed = {"text": edit.text, "excerpt": edit.text, "search_text": text.fact.search_text}
    value = edit.value or None  # an empty value takes the value away; none given: what the new text shows
    if edit.value is None:
        shown = None if is_other else value_after_edit(before.text, before.value, edit.text)
        value = shown or filled.get("value")
    slot = {"key": edit.key or stated.get("key"), "value": value}
    slot |= {
        "value_json": old.fact.value_json if edit.value_json is None and value == old.fact.value else edit.value_json
    }
    slot |= ranked_categories(edit.categories) if edit.categories else {}
    true_from = begins or since or old.true_from
    term = stated.get("valid_until")
    until = term if term is None or true_from < term else None
    timed: dict[str, Any] = {"valid_until": until}
    timed |= {"event_time": begins} if since or begins else {}
    denied, denies = ({*_folded(_words(text))} & NEGATIONS for text in (old.fact.text, edit.text))
    holds_again = denied and not denies and old.fact.action_hint == "retract" and not read(edit.text).ending
    hint = {"action_hint": "retract"} if denies and not denied else {"action_hint": "new"} if holds_again else {}
    return NewFact(
        **stated | changed | slot | timed | hint,
        fact_id=ids.fact_id(context.owner, context.source_id, ordinal),
        confidence=old.state.confidence,
        true_from=true_from,
        speaker=old.speaker,
        authority=old.authority,
        metadata=dict(old.metadata if edit.metadata is None else edit.metadata) or None,
        vector=text.vector,
    )


def import_fact(
    context: CommandContext, payload: Import, embedded: EmbeddedFact, known: StoredFacts, rules: EndRules
) -> Events:
    """The fact is added, unless the scope has a fact of its text that differs in nothing that is given.

    A fact of its text that says less goes on with what is given. Beside another lasting value of its key it is
    unresolved: nobody has decided on the two.
    """
    given = payload.fact
    stated = {name: getattr(given, name) for name in type(given).model_fields if name in ExtractedFact.model_fields}
    fact = NewFact(
        **stated | {"excerpt": embedded.fact.excerpt, "search_text": embedded.fact.search_text},
        fact_id=ids.fact_id(context.owner, context.source_id, 0),
        confidence=CONFIDENCE_OF_CERTAINTY[given.certainty] if given.confidence is None else given.confidence,
        true_from=given.true_from or context.issued_at,
        speaker=given.speaker,
        authority=given.authority,
        vector=embedded.vector,
    )
    same, compared = [], ("key", "value", "value_json", "subject", "event_time")
    for stored in known.values():
        has = {name: getattr(stored.fact, name) for name in compared} | {"speaker": stored.speaker}
        gives = {name: getattr(fact, name) for name in has}
        differs = any(None not in (value, gives[name]) and gives[name] != value for name, value in has.items())
        if stored.fact.text != fact.text or differs or fact.valid_until not in (None, stored.ends_at):
            continue
        same.append(stored)
        is_given = all(gives[name] in (None, has[name]) for name in ("subject", "event_time", "speaker"))
        is_later = stored.true_from <= fact.true_from
        if is_given and is_later and not says_more(fact, fact.authority, payload.metadata, candidate_of(stored)):
            return ()
    less = next((stored for stored in same if stored.is_open and stored.authority != "human"), None)
    if less is not None:
        fields = context.event_fields(0, context.decision("person", "imported it: it says more", [less]))
        kept = {"speaker": fact.speaker or less.speaker, "valid_until": fact.valid_until or less.fact.valid_until}
        fact = merged(fact.model_copy(update=kept | {"metadata": payload.metadata}), [candidate_of(less)])
        statement = Statement(text=fact.text, excerpt=fact.text)
        return (FactsMerged(**fields, targets=(less.fact_id,), statement=statement, fact=fact),)
    beside = [stored for stored in known.values() if _are_rivals(fact, stored, rules)]
    decision = context.decision("person", "imported it", beside)
    shown = decision.model_copy(update={"shown": tuple(stored.fact_id for stored in beside)})
    return (FactAdded(**context.event_fields(0, shown), fact=fact, unresolved=bool(beside)),)


def _are_rivals(fact: NewFact, stored: StoredFact, rules: EndRules) -> bool:
    """Whether both may be lasting, different values of one slot, or the fact states the end of the stored one."""
    if fact.action_hint == "retract":
        return tells_end_of(fact, stored.fact)
    is_end = stored.fact.action_hint == "retract"
    if is_end or fact.valid_until or stored.ends_at or same_value(fact, stored.fact):
        return False
    return rules.slot_relation(fact, stored.fact) != "other"
