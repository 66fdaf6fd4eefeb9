"""What turns tell: one fact each, about a place on a ring, which may concern facts of its own place and the two beside.

So turns of near places depend on one another, and turns of others do not.
"""

import math
import re
from typing import Final
from zlib import crc32

from mnemolog.schemas.vector import Vector

MODEL: Final = "embedder"
PLACES: Final = 12
"""With so many, the facts of two places side by side conflict by MemLib's threshold, and those of any others do not."""
_AT: Final = re.compile(r"at place (\d+)$")


def place_of(seed: int, number: int) -> int:
    """What the turn of this number is about."""
    return crc32(f"{seed}/{number}".encode()) % PLACES


def fact_text(seed: int, kind: str, number: int) -> str:
    """What the turn of this number tells."""
    return f"{kind} number {number} at place {place_of(seed, number)}"


def direction_of(text: str) -> Vector:
    """The vector of a fact: that of its place."""
    found = _AT.search(text)
    angle = 2 * math.pi * int(found[1] if found else 0) / PLACES
    return Vector.from_values(MODEL, [math.cos(angle), math.sin(angle)])
