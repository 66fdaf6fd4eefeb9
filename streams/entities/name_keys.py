"""Brings names into the form in which they are compared: without case, accents, width and punctuation."""

import re
from typing import Final

from mnemolog.schemas.entities.model import MAX_NAME
from mnemolog.streams.text.normalise import plain_letters

_SILENT: Final = re.compile("['\u2019\u2018`\u00b4.]")
_GAPS: Final = re.compile("[\\s\\-\u2800\u2010\u2011\u2013_/()]+")  # a " (" in a key begins an origin, nothing else
_EDGES: Final = ' ,;:!?"“”„«»[]{}<>*#'


def name_key(name: str) -> str:
    """The form in which names are compared: "ÁNA" and "Ana" are "ana"; empty where nothing of it is a name.

    Letters that are not made of one with an accent ("ø", "ł") are taken for those that they look like.
    """
    return _GAPS.sub(" ", _SILENT.sub("", plain_letters(name))).strip(_EDGES)[:MAX_NAME].rstrip()


def words_key(text: str) -> str:
    """The form in which names are looked for in texts: as `name_key`, of any length, and "Ana's" is "ana s"."""
    return _GAPS.sub(" ", _SILENT.sub(" ", plain_letters(text))).strip(_EDGES)


def key_words(text: str) -> list[str]:
    """The words of a text of any length, each as it would be in the key of a name."""
    return [word.strip(_EDGES) for word in _GAPS.sub(" ", _SILENT.sub("", plain_letters(text))).split(" ")]
