"""Answers that say nothing alone ("Yes", "No", "Maybe"), and what of a message they answer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from mnemolog.streams.text.tokens import tables

ShortAnswer = Literal["yes", "no", "open"]
MAX_ANSWER: Final = 60
"""Characters; a longer text says something."""
_PATTERNS: Final = tables(Path(__file__).with_name("short_answers.toml"))
_BETWEEN: Final = r"[\s,.;:!…\u2013\u2014-]+"
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…\u3002\uff01\uff1f])[\"'”»)]*\s+|(?<=[\u3002\uff01\uff1f])|\n+")


def _whole(kind: str) -> re.Pattern[str]:
    """One or several of such answers, and polite words, with nothing else."""
    alternatives, polite = (_PATTERNS[name].replace("\n", "|") for name in (kind, "polite"))
    one = rf"(?:{alternatives})(?:{_BETWEEN}(?:{alternatives}|{polite}))*"
    return re.compile(rf"[\s\"'“«(]*{one}[\s,.;:!…\"'”»)]*", re.IGNORECASE)


_KINDS: Final[dict[ShortAnswer, re.Pattern[str]]] = {"open": _whole("open"), "no": _whole("no"), "yes": _whole("yes")}


def short_answer(text: str) -> ShortAnswer | None:
    """Whether a text is a bare yes or no, or leaves open what it was asked; None where it says something itself."""
    said = text.replace("\u2019", "'").strip()
    if len(said) > MAX_ANSWER:
        return None
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(said)), None)


def sentences_of(message: str) -> Iterator[str]:
    """The sentences of a message, as their signs at the end tell."""
    return (one.strip() for one in _SENTENCE_END.split(message) if one.strip())


def asked_part(message: str) -> str:
    """What of a message an answer right behind it answers.

    That is its last question and all behind it, with the sentence before it if that asks nothing; or its last sentence.
    """
    sentences = list(sentences_of(message))
    places = [place for place, one in enumerate(sentences) if "?" in one or "\uff1f" in one]
    first = places[-1] - (places[-1] - 1 not in places) if places else len(sentences) - 1
    return " ".join(sentences[max(0, first) :])


def begins_sentence(content: str, answer: str) -> bool:
    """Whether an answer stands in a message as a sentence, or at the beginning of one: "yes" is not in "yesterday"."""
    found = re.search(rf"(?:^|[.!?,;:…\n])[\s\"'“«(]*{re.escape(answer.strip())}(?!\w)", content, re.IGNORECASE)
    return found is not None
