"""Renders the names of a turn that are in doubt as lines of a resolution prompt, bounded in length.

A name is M1, M2 ..., whom it may mean E1, E2 ...; white space is collapsed and quotation marks inside are changed, so
that no name can forge another line, or the end of its own quotation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.doubtful.doubtful_names import DoubtfulName, DoubtfulNames
from mnemolog.streams.llm.ports import NumberedConflicts
from mnemolog.streams.llm.reply_parser import one_line, quoted

MAX_NAME_CHARACTERS: Final = 16_000
"""Of all lines about names in one prompt: some 4 000 tokens."""
_MAX_SHOWN_NAME: Final = 100  # characters of a name
_MAX_ALIASES: Final = 5
_MAX_SHOWN_FACT: Final = 200  # characters of a fact
_MAX_SHOWN_FACTS: Final = 5  # facts of the turn that are shown with a name
_LINE_OVERHEAD: Final = 60  # characters around a name or a fact


def within_budget(names: DoubtfulNames) -> DoubtfulNames:
    """The first names, as many as the prompt has room for."""
    shown, characters = list[DoubtfulName](), 0
    for name in names.names:
        characters += sum(len(line) + _LINE_OVERHEAD for line in _lines_of(name, names))
        if characters > MAX_NAME_CHARACTERS:
            break
        shown.append(name)
    return replace(names, names=tuple(shown))


def _lines_of(name: DoubtfulName, names: DoubtfulNames) -> Iterator[str]:
    yield from map(_quoted_fact, _said(name))
    for twin in name.twins:
        yield _entity_words(twin)
        yield from map(_quoted_text, names.known_facts.get(twin.entity_id, ()))


def entity_labels(names: Sequence[DoubtfulName]) -> dict[UUID, int]:
    """The number of each entity that a name may mean."""
    twins = dict.fromkeys(twin.entity_id for name in names for twin in name.twins)
    return {entity_id: number for number, entity_id in enumerate(twins, 1)}


def names_text(subject: NumberedConflicts) -> str:
    """The names in doubt with what the turn says of them, and those whom they may mean with what is known of them."""
    names, labels = subject.doubtful_names, entity_labels(subject.doubtful_names)
    entities = {twin.entity_id: twin for name in names for twin in name.twins}
    lines = ["Names in doubt:"]
    for number, name in enumerate(names, 1):
        lines += _name_lines(number, name, labels, subject)
    if others := _other_facts(subject):
        lines += ["Also said in this turn:", *(f"  {_quoted_fact(fact)}" for fact in others)]
    lines.append("Known entities:")
    for entity_id, label in labels.items():
        lines += _entity_lines(label, entities[entity_id], subject)
    return "\n".join(lines)


def _name_lines(
    number: int, name: DoubtfulName, labels: Mapping[UUID, int], subject: NumberedConflicts
) -> Iterator[str]:
    numbers = {_words(one.fact): f"N{one.number} " for one in subject.conflicts if one.reconsidered_fact_id is None}
    yield f"M{number} {_quoted_name(name.name)} ({name.type})"
    for fact in _said(name):
        yield f"  in {numbers.get(_words(fact), '')}{_quoted_fact(fact)}"
    yield f"  may be: {', '.join(f'E{labels[twin.entity_id]}' for twin in name.twins)}"


def _other_facts(subject: NumberedConflicts) -> Sequence[ExtractedFact]:
    """What else the turn says: it may tell who is meant."""
    if subject.names is None:
        return ()
    shown = {_words(fact) for name in subject.doubtful_names for fact in _said(name)}
    return [fact for fact in subject.names.found.facts if _words(fact) not in shown][:_MAX_SHOWN_FACTS]


def _entity_lines(label: int, entity: KnownEntity, subject: NumberedConflicts) -> Iterator[str]:
    known = {known.fact_id: number for one in subject.conflicts for number, known in one.candidates}
    about = sorted(known[fact_id] for fact_id in entity.subject_of if fact_id in known)
    facts = f"; facts about it: {', '.join(f'K{number}' for number in about)}" if about else ""
    yield f"E{label} {_entity_words(entity)}{facts}"
    if subject.names is not None:
        yield from (f"  {_quoted_text(text)}" for text in subject.names.known_facts.get(entity.entity_id, ()))


def _entity_words(entity: KnownEntity) -> str:
    own = one_line(entity.name).casefold()
    others = dict.fromkeys(one_line(alias.text) for alias in entity.aliases if one_line(alias.text).casefold() != own)
    also = ", ".join(map(_quoted_name, list(others)[:_MAX_ALIASES]))
    return f"{_quoted_name(entity.name)} ({entity.type}{f'; also {also}' if also else ''})"


def _said(name: DoubtfulName) -> Sequence[ExtractedFact]:
    return name.facts[:_MAX_SHOWN_FACTS]


def _words(fact: ExtractedFact) -> tuple[str, str, str | None]:
    return fact.text, fact.excerpt, fact.subject


def _quoted_fact(fact: ExtractedFact) -> str:
    """A fact, and where that differs how it was said."""
    text, excerpt = _quoted_text(fact.text), _quoted_text(fact.excerpt)
    return text if text == excerpt else f"{text}, said as {excerpt}"


def _quoted_name(text: str) -> str:
    return quoted(text, _MAX_SHOWN_NAME)


def _quoted_text(text: str) -> str:
    return quoted(text, _MAX_SHOWN_FACT)
