"""What of a reply is about a topic that is never stored. It is told by the topic alone: its words are not kept."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from mnemolog.schemas.base import normalise
from mnemolog.schemas.entities.model import MAX_UNLINKED, UnlinkedName
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.instructions.model import ForbiddenTopic, Instructions
from mnemolog.schemas.provenance import DroppedStatement, Step

_WITHOUT_SPACES: Final = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that do not put spaces between words: there a word may stand within others."""


def topic_in(texts: Iterable[str | None], topics: Sequence[ForbiddenTopic]) -> ForbiddenTopic | None:
    """The first topic of which one of the texts has a word."""
    said = "\n".join(normalise(text) for text in texts if text)
    return next((topic for topic in topics if topic.words and _pattern(topic.words).search(said)), None)


def topic_of(fact: ExtractedFact, topics: Sequence[ForbiddenTopic]) -> ForbiddenTopic | None:
    """The first topic that a fact is about, by its key, its category or a word."""
    named = next((one for one in topics if fact.key in one.keys or fact.category in one.categories), None)
    texts = (fact.text, fact.search_text, fact.excerpt, fact.value, fact.subject, _spaced(fact.key or ""))
    return named or topic_in(texts, topics)


def withhold(
    facts: Sequence[ExtractedFact], dropped: Sequence[DroppedStatement], instructions: Instructions | None
) -> tuple[tuple[ExtractedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts that may be stored, and what was left out, without the words of what is never stored.

    A fact that may be stored itself is left without the names and relations that have a word of a topic. Of its names
    that were left out before these have the topic, too.
    """
    topics = instructions.never_store if instructions else ()
    if not topics:
        return tuple(facts), tuple(dropped)
    about = [(fact, topic_of(fact, topics)) for fact in facts]
    left_out = [_told(topic) if (topic := topic_in((one.text, one.excerpt), topics)) else one for one in dropped]
    kept = [_without_names(fact, topics) for fact, topic in about if topic is None]
    names = (_told(topic) for _, withheld in kept for topic in withheld)
    return tuple(fact for fact, _ in kept), (
        *left_out,
        *(_told(topic) for _, topic in about if topic is not None),
        *names,
    )


def withhold_texts(texts: Iterable[str], instructions: Instructions | None) -> tuple[str, ...]:
    """Complaints and errors that quote a statement, without those that quote one of what is never stored."""
    topics = instructions.never_store if instructions else ()
    return tuple(_told(topic).text if (topic := topic_in((text,), topics)) else text for text in texts)


def _without_names(
    fact: ExtractedFact, topics: Sequence[ForbiddenTopic]
) -> tuple[ExtractedFact, tuple[ForbiddenTopic, ...]]:
    """The fact without the names and relations that have a word of a topic, and those topics."""
    names = [(one, topic_in((one.name,), topics)) for one in fact.entities]
    unlinked = [(one, topic_in((one.name,), topics)) for one in fact.unlinked]
    ties = [(one, topic_in((one.subject, _spaced(one.predicate), one.object), topics)) for one in fact.relations]
    found = dict.fromkeys(topic for _, topic in (*names, *ties, *unlinked) if topic is not None)
    if not found:
        return fact, ()
    entities = tuple(one for one, topic in names if topic is None)
    relations = tuple(one for one, topic in ties if topic is None)
    withheld = dict.fromkeys(topic for _, topic in (*names, *unlinked) if topic is not None)
    kept = tuple(one for one, topic in unlinked if topic is None)
    told = {
        "entities": entities,
        "relations": relations,
        "unlinked": (*map(_withheld_name, withheld), *kept)[:MAX_UNLINKED],
    }
    return fact.model_copy(update=told), tuple(found)


def _withheld_name(topic: ForbiddenTopic) -> UnlinkedName:
    return UnlinkedName(name=_told(topic).text, reason="never_stored")


def _spaced(word: str) -> str:
    return word.replace("_", " ")


def _told(topic: ForbiddenTopic) -> DroppedStatement:
    return DroppedStatement(text=f"(withheld: {topic.name})", reason="never_stored")


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_word_pattern, words)))


def _word_pattern(word: str) -> str:
    is_beginning = word.endswith("*")
    plain = normalise(word.removesuffix("*"))
    if any(unicodedata.name(letter, "").startswith(_WITHOUT_SPACES) for letter in plain):
        return re.escape(plain)
    return rf"(?<!\w){re.escape(plain)}" + ("" if is_beginning else r"(?!\w)")


def with_instructions(step: Step, instructions: Instructions | None) -> Step:
    """The step with the version of the instructions, and without complaints that quote what is never stored."""
    if instructions is None:
        return step
    complaints = withhold_texts(step.complaints, instructions)
    return step.model_copy(update={"instructions": instructions.version, "complaints": complaints})


def allowed_categories(configured: tuple[str, ...], instructions: Instructions | None) -> tuple[str, ...]:
    """The categories that a fact may have, those of the instructions behind the configured ones."""
    more = (one.name for one in instructions.categories) if instructions else ()
    return tuple(dict.fromkeys((*configured, *more)))
