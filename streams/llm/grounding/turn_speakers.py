"""Who says what in a turn: its speaker, the name of a message, or a name before the lines of a script."""

import re
from collections.abc import Iterator
from typing import Final

from mnemolog.schemas.base import normalise
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.text.normalise import comparable_text

MIN_SCRIPT_LINES: Final = 2
"""How many lines of a message begin with a name and a colon if it is a script: one alone may be "Note: ..."."""
_SPOKEN_LINE: Final = re.compile(
    r"^[ \t]*([^\W\d_a-z][\w.'-]*(?: [^\W\d_a-z][\w.'-]*){0,2}):[ \t]+(?=\S)", re.MULTILINE
)


def other_speaker(turn: Turn, excerpt: str) -> str | None:
    """Who says `excerpt`, a comparable text, if that is one named person and not the turn's speaker."""
    evidence = (message for message in turn.messages if message.role != "system")
    names = {name for message in evidence for text, name in _spoken(message) if excerpt in text}
    name = names.pop() if len(names) == 1 else None
    return name if name and normalise(name) != normalise(turn.speaker or "") else None


def _spoken(message: Message) -> Iterator[tuple[str, str | None]]:
    """The parts of a message as comparable texts, each with the name of who says it, if one is given."""
    lines = list(_SPOKEN_LINE.finditer(message.content)) if message.role == "user" else []
    if len(lines) < MIN_SCRIPT_LINES:
        yield comparable_text(message.content), message.name if message.role == "user" else None
        return
    ends = [line.start() for line in lines[1:]] + [len(message.content)]
    yield comparable_text(message.content[: lines[0].start()]), message.name
    for line, end in zip(lines, ends, strict=True):
        yield comparable_text(message.content[line.end() : end]), line[1]
