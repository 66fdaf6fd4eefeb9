"""Brings letters into the form in which words are compared: without case, accents, width and what nobody sees."""

import re
import unicodedata
from typing import Final

_ACCENTS: Final = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic letters; the signs of others are letters
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
)
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, and what Unicode calls default ignorable: readers see a name without them."""


def plain_letters(text: str) -> str:
    """A text without case, accents, width and what nobody sees.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold().translate(_LETTERS)
