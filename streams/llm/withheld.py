"""Leaves out what a reply says about a topic that is never stored: only the name of the topic is kept."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from mnemolog.schemas.entities import MAX_UNLINKED, UnlinkedName
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.instructions import ForbiddenTopic, Instructions
from mnemolog.schemas.provenance import DroppedStatement, Step
from mnemolog.streams.text.tokens import plain_letters

_WITHOUT_SPACES: Final = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that do not put spaces between words: there a word may stand within others."""
_LOOK_ALIKE: Final = str.maketrans(
    "\u0430\u0432\u0435\u04bb\u043d\u0456\u0458\u043a\u04cf\u043c\u043e\u0440\u0501\u051b\u0441\u0455\u0442\u0443\u051d\u0445"
    "\u03b1\u03b2\u03b5\u03b9\u03ba\u03bf\u03c1\u03c4\u03c5\u03bd\u03c7",
    "abehhijklmopdqcstywx" + "abeikoptuvx",
)
"""Cyrillic and Greek letters, and the Latin ones that they look like."""
_GAPS: Final = re.compile("[\\s_\\-\u2010\u2011\u2012\u2013]+")


def topic_in(texts: Iterable[str | None], topics: Sequence[ForbiddenTopic]) -> ForbiddenTopic | None:
    said = "\n".join(_comparable(text) for text in texts if text)
    return next((topic for topic in topics if topic.words and _pattern(topic.words).search(said)), None)


def topic_of(fact: ExtractedFact, topics: Sequence[ForbiddenTopic]) -> ForbiddenTopic | None:
    categories = set(fact.categories)
    named = next((one for one in topics if fact.key in one.keys or categories & {*one.categories}), None)
    texts = (fact.text, fact.search_text, fact.excerpt, fact.value, fact.subject, fact.key)
    return named or topic_in(texts, topics)


def withhold(
    facts: Sequence[ExtractedFact], dropped: Sequence[DroppedStatement], instructions: Instructions | None
) -> tuple[tuple[ExtractedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts that may be stored, and what was left out: of a topic that is never stored only its name.

    A fact that may be stored loses the names and relations that have a word of a topic; a topic's name also takes the
    place of such names that were left out before.
    """
    topics = instructions.never_store if instructions else ()
    if not topics:
        return tuple(facts), tuple(dropped)
    left_out = [_withheld(topic) if (topic := topic_in((one.text, one.excerpt), topics)) else one for one in dropped]
    kept: list[ExtractedFact] = []
    of_names: list[DroppedStatement] = []
    for fact in facts:
        if (topic := topic_of(fact, topics)) is not None:
            left_out.append(_withheld(topic))
            continue
        names = [(one, topic_in((one.name,), topics)) for one in fact.entities]
        unlinked = [(one, topic_in((one.name,), topics)) for one in fact.unlinked]
        ties = [(one, topic_in((one.subject, one.predicate, one.object), topics)) for one in fact.relations]
        hidden = dict.fromkeys(topic for _, topic in (*names, *unlinked) if topic is not None)
        placeholders = (UnlinkedName(name=_withheld(topic).text, reason="never_stored") for topic in hidden)
        allowed = {
            "entities": tuple(one for one, topic in names if topic is None),
            "relations": tuple(one for one, topic in ties if topic is None),
            "unlinked": (*placeholders, *(one for one, topic in unlinked if topic is None))[:MAX_UNLINKED],
        }
        kept.append(fact.model_copy(update=allowed))
        of_names += map(_withheld, hidden | dict.fromkeys(topic for _, topic in ties if topic is not None))
    return tuple(kept), (*left_out, *of_names)


def withhold_texts(texts: Iterable[str], instructions: Instructions | None) -> tuple[str, ...]:
    """Complaints and errors, each replaced by the name of the topic where it quotes what is never stored."""
    topics = instructions.never_store if instructions else ()
    return tuple(_withheld(topic).text if (topic := topic_in((text,), topics)) else text for text in texts)


def _withheld(topic: ForbiddenTopic) -> DroppedStatement:
    return DroppedStatement(text=f"(withheld: {topic.name})", reason="never_stored")


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    patterns = []
    for word in words:
        if not (plain := _comparable(word.removesuffix("*"))):
            continue
        if any(unicodedata.name(letter, "").startswith(_WITHOUT_SPACES) for letter in plain):
            patterns.append(re.escape(plain))
        else:  # a word with a star is the beginning of words
            patterns.append(rf"(?<!\w){re.escape(plain)}" + ("" if word.endswith("*") else r"(?!\w)"))
    return re.compile("|".join(patterns) or "(?!)")


def _comparable(text: str) -> str:
    """A text without case, accents, hyphens and invisible signs; letters that look alike are one."""
    return _GAPS.sub(" ", plain_letters(text).translate(_LOOK_ALIKE)).strip()


def with_instructions(step: Step, instructions: Instructions | None) -> Step:
    if instructions is None:
        return step
    complaints = withhold_texts(step.complaints, instructions)
    return step.model_copy(update={"instructions": instructions.version, "complaints": complaints})


def allowed_categories(configured: tuple[str, ...], instructions: Instructions | None) -> tuple[str, ...]:
    """The categories that a fact may have: configured ones, then those of the instructions."""
    more = (one.name for one in instructions.categories) if instructions else ()
    return tuple(dict.fromkeys((*configured, *more)))
