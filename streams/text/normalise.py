"""Brings texts into one form so that quotations can be compared, and finds quotations as whole words."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from mnemolog.schemas.base import normalise

_QUOTES: Final = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_DASHES: Final = {"\u2013": "-", "\u2014": "-", "\u00ad": None}
_TYPOGRAPHY: Final = str.maketrans({**_QUOTES, **_DASHES})
_WORD_SIGN: Final = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""Of scripts that put spaces between words, or a digit."""
_SPACED_WORD: Final = re.compile(rf"{_WORD_SIGN}+")
_INSIDE_WORD: Final = re.compile(rf"{_WORD_SIGN}{{2}}")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic letters; the signs of others are letters
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
)
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, and what Unicode calls default ignorable: readers see a name without them."""
_SHORTEST_COPY: Final = 6  # a word counts as two, a sign of a script without spaces as one


def comparable_text(text: str) -> str:
    """`normalise`, with typographic quotes and dashes made plain: models retype them when they copy."""
    return normalise(unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY))


def plain_letters(text: str) -> str:
    """A text without case, accents, width and what nobody sees.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold().translate(_LETTERS)


def has_words(text: str, quotation: str) -> bool:
    """Whether a comparable text has the words of another one: "no" is not in "norway"."""
    words = comparable_text(quotation)
    return bool(words) and next(whole_words(words, comparable_text(text)), None) is not None


def without_texts(content: str, texts: Iterable[str]) -> str:
    """A comparable text without copies of whole `texts`, which are comparable too; nothing grows together.

    A text of one or two words ("Berlin") may be an answer as well as a copy, and stays.
    """
    for text in sorted(texts, key=len, reverse=True):
        words = text.rstrip(" .!?…")
        if len(_SPACED_WORD.sub("__", words).replace(" ", "")) >= _SHORTEST_COPY:
            content = _without(words, content)
    return content


def _without(words: str, content: str) -> str:
    starts = list(whole_words(words, content))
    ends = [0, *(start + len(words) for start in starts)]
    return "\n".join(content[end:start] for end, start in zip(ends, [*starts, len(content)], strict=True))


# A pattern for each text would be slower: to compile one with these ranges of signs takes milliseconds.
def whole_words(words: str, text: str) -> Iterator[int]:
    """Where `words` begin in `text` without being a part of longer words; one place does not overlap the next."""
    start = text.find(words)
    while start >= 0:
        end = start + len(words)
        goes_on_before = start > 0 and _INSIDE_WORD.match(text, start - 1)
        is_whole = not (goes_on_before or _INSIDE_WORD.match(text, end - 1))
        if is_whole:
            yield start
        start = text.find(words, end if is_whole else start + 1)
