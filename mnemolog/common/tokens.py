"""How many tokens a text has for a model whose tokenizer is not at hand: an estimate from above."""

import re
from math import ceil
from typing import Final

_PIECES: Final = re.compile(r"[A-Za-z]+|[0-9]+| +|[^A-Za-z0-9 ]+")
_HARD_CONSONANTS: Final = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}|^[^aeiouy]{3}")
"""What words of no language begin with or hold: tokenizers have no long tokens for it."""
_LONGEST_PLAIN_WORD: Final = 12
_FIXED: Final = 2
"""Tokens of a text by itself: some tokenizers mark its beginning."""


def estimate_tokens(text: str) -> int:
    """The tokens of `text`, estimated so that the usual tokenizers count no more.

    A plain word counts a token for each three letters begun, a long one two for three letters, letters that form no
    word, digits and signs one each, and all else its bytes in UTF-8, which no byte-level tokenizer exceeds. Compared
    with six vocabularies (docs/context.md): never below any of them, for English 1.2 to 1.6 times the largest.
    """
    return _FIXED + sum(_piece_tokens(text, found) for found in _PIECES.finditer(text))


def _piece_tokens(text: str, found: re.Match[str]) -> int:
    piece, after = found[0], text[found.end() : found.end() + 1]
    if piece[0] == " ":
        joins = after.isascii() and after.isalpha()  # a space and the word behind it are one token
        return len(piece) - joins
    if not (piece[0].isascii() and piece[0].isalpha()):
        return len(piece.encode("utf-8", "surrogatepass"))
    is_word = (piece[1:].islower() or len(piece) == 1) and not _HARD_CONSONANTS.search(piece.lower())
    if not is_word:
        return len(piece)
    beside = text[max(found.start() - 1, 0) : found.start()] + after
    is_plain = len(piece) <= _LONGEST_PLAIN_WORD and not any(map(str.isdigit, beside))
    return ceil(len(piece) / 3) if is_plain else ceil(len(piece) * 2 / 3)
