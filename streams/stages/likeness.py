"""What two vectors cannot tell: whether two texts say the same where the texts are long, or differ in a number."""

from typing import Final

from streams.prompts.resolve import numbers

READ_CHARACTERS: Final = 1000
"""An embedding model reads the beginning of a text: all-MiniLM-L6-v2 256 tokens, of some four characters each."""


def vouched(one: str, other: str) -> bool:
    """Whether likeness of vectors may stand for sameness of the texts: both were read whole and tell equal numbers."""
    return max(len(one), len(other)) <= READ_CHARACTERS and numbers(one) == numbers(other)
