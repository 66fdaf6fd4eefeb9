"""Pairs of facts, labelled by hand, that embedding models are measured on: `labelled_pairs.txt`.

Same meaning: both say the same. Contradicting: the second ends or denies the first. Compatible: alike, and both true.
Unrelated: unlike. Ended by: the second ends the first with nothing in its place, often in quite other words.
"""

from pathlib import Path
from typing import Final

Pairs = list[tuple[str, str]]


def _read() -> dict[str, Pairs]:
    tables: dict[str, Pairs] = {}
    pairs: Pairs = []
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            pairs = tables[line[2:]] = []
        elif line:
            first, _, second = line.partition(" | ")
            pairs.append((first, second))
    return tables


_TABLES: Final = _read()
SAME_MEANING: Final = _TABLES["same_meaning"]
CONTRADICTING: Final = _TABLES["contradicting"]
COMPATIBLE: Final = _TABLES["compatible"]
UNRELATED: Final = _TABLES["unrelated"]
ENDED_BY: Final = _TABLES["ended_by"]
