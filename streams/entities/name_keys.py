"""Brings names into the form in which they are compared: without case, accents, width and punctuation."""

import re
import unicodedata
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME

_ACCENTS: Final = re.compile("[\u0300-\u036f]")  # of Latin, Greek and Cyrillic letters; the signs of others are letters
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "\u0131": "i", "ħ": "h", "ŧ": "t"}
)
_SILENT: Final = re.compile("['\u2019\u2018`\u00b4.]")
_GAPS: Final = re.compile("[\\s\\-\u2010\u2011\u2013_/()]+")  # a " (" in a key begins an origin, nothing else
_EDGES: Final = ' ,;:!?"“”„«»[]{}<>*#'


def name_key(name: str) -> str:
    """The form in which names are compared: "ÁNA" and "Ana" are "ana"; empty where nothing of it is a name.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name))
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", plain)).casefold().translate(_LETTERS)
    return _GAPS.sub(" ", _SILENT.sub("", plain)).strip(_EDGES)[:MAX_NAME].rstrip()
