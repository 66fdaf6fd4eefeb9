"""The text of a search: what Postgres can hold of it, in a bounded length."""

import re
from typing import Final

from mnemolog.projections.queries.errors import QueryError

MAX_QUERY_CHARACTERS: Final = 10_000
MAX_QUERY_WORDS: Final = 256


def storable_question(text: str) -> str:
    """What Postgres can hold of `text`: no U+0000, no unpaired surrogate, at most 10 000 characters in whole words.

    Raises `QueryError` for a text without any character.
    """
    asked = text[:MAX_QUERY_CHARACTERS]
    if len(text) > MAX_QUERY_CHARACTERS and not text[MAX_QUERY_CHARACTERS].isspace():
        asked = re.sub(r"(?<=\s)\S+\Z", "", asked)  # half a word would be another word
    shown = asked.replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not shown:
        raise QueryError("the text to search for is empty: say in a few words what to look for, or list the facts")
    return shown
