"""Brings texts into one form so that quotations can be compared."""

import unicodedata
from typing import Final

from mnemolog.schemas.base import normalise

_QUOTES: Final = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_DASHES: Final = {"\u2013": "-", "\u2014": "-", "\u00ad": None}
_TYPOGRAPHY: Final = str.maketrans({**_QUOTES, **_DASHES})


def comparable_text(text: str) -> str:
    """`normalise`, with typographic quotes and dashes made plain: models retype them when they copy."""
    return normalise(unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY))
