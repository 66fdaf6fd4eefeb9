"""Brings texts into one form so that quotations can be compared, and finds quotations as whole words."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mnemolog.schemas.base import normalise

_QUOTES: Final = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_DASHES: Final = {"\u2013": "-", "\u2014": "-", "\u00ad": None}
_TYPOGRAPHY: Final = str.maketrans({**_QUOTES, **_DASHES})
_WORD_SIGN: Final = r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
"""Of scripts that put spaces between words, or a digit."""
_SPACED_WORD: Final = re.compile(rf"{_WORD_SIGN}+")
_SHORTEST_COPY: Final = 6  # a word counts as two, a sign of a script without spaces as one


def comparable_text(text: str) -> str:
    """`normalise`, with typographic quotes and dashes made plain: models retype them when they copy."""
    return normalise(unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY))


def has_words(text: str, quotation: str) -> bool:
    """Whether a comparable text has the words of another one: "no" is not in "norway"."""
    words = comparable_text(quotation)
    return bool(words) and _whole_words(words).search(comparable_text(text)) is not None


def without_texts(content: str, texts: Iterable[str]) -> str:
    """A comparable text without copies of whole `texts`, which are comparable too; nothing grows together.

    A text of one or two words ("Berlin") may be an answer as well as a copy, and stays.
    """
    for text in sorted(texts, key=len, reverse=True):
        words = text.rstrip(" .!?…")
        if len(_SPACED_WORD.sub("__", words).replace(" ", "")) >= _SHORTEST_COPY:
            content = _whole_words(words).sub("\n", content)
    return content


@lru_cache(maxsize=512)
def _whole_words(words: str) -> re.Pattern[str]:
    before = rf"(?<!{_WORD_SIGN})" if re.match(_WORD_SIGN, words) else ""
    after = rf"(?!{_WORD_SIGN})" if re.match(_WORD_SIGN, words[-1]) else ""
    return re.compile(f"{before}{re.escape(words)}{after}")
