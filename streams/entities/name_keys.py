"""Brings names into the form in which they are compared: without case, accents, width and punctuation."""

import re
import unicodedata
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME

_ACCENTS: Final = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic letters; the signs of others are letters
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
)
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, and what Unicode calls default ignorable: readers see a name without them."""
_SILENT: Final = re.compile("['\u2019\u2018`\u00b4.]")
_GAPS: Final = re.compile("[\\s\\-\u2800\u2010\u2011\u2013_/()]+")  # a " (" in a key begins an origin, nothing else
_EDGES: Final = ' ,;:!?"“”„«»[]{}<>*#'


def name_key(name: str) -> str:
    """The form in which names are compared: "ÁNA" and "Ana" are "ana"; empty where nothing of it is a name.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    return _GAPS.sub(" ", _SILENT.sub("", _plain(name))).strip(_EDGES)[:MAX_NAME].rstrip()


def words_key(text: str) -> str:
    """The form in which names are looked for in texts: as `name_key`, of any length, and "Ana's" is "ana s"."""
    return _GAPS.sub(" ", _SILENT.sub(" ", _plain(text))).strip(_EDGES)


def key_words(text: str) -> list[str]:
    """The words of a text of any length, each as it would be in the key of a name."""
    return [word.strip(_EDGES) for word in _GAPS.sub(" ", _SILENT.sub("", _plain(text))).split(" ")]


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold().translate(_LETTERS)
