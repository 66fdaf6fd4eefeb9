"""`python -m tests.quality.name_twins`: measure from which cosine on two names of things may mean the same.

Prints, as Markdown, how many labelled pairs of names each threshold takes for one: those that are one thing in other
words, those of two things that are alike, and all other pairs of these names of one type. Names of other numbers are
never compared.
"""

import argparse
import asyncio
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Final

import numpy as np

from mnemolog.schemas.entities import EntityType
from mnemolog.streams.entities.names import SpokenName, read_name, same_numbers
from mnemolog.streams.entities.resolver import has_meaning
from mnemolog.streams.llm.factory import build_embedder
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT

PAIRS: Final = tomllib.loads((ROOT / "tests/data/names_by_meaning.toml").read_text())
LABELS: Final = ("same", "different")
THRESHOLDS: Final = (0.60, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePair:
    """Two names of one type; `half` is 0 for tuning, 1 for testing."""

    kind: EntityType
    one: str
    other: str
    half: int = 0


def labelled(label: str) -> list[NamePair]:
    """The pairs of a label."""
    return [
        NamePair(kind=kind, one=one, other=other, half=place % 2)
        for kind, pairs in PAIRS[label].items()
        for place, (one, _, other) in enumerate(pair.partition(" | ") for pair in pairs)
    ]


def unlabelled() -> list[NamePair]:
    """The pairs of names of a type that have no label: nearly all are two things."""
    found = []
    for kind in PAIRS["same"]:
        every = chain.from_iterable(labelled(label) for label in LABELS)
        pairs = {frozenset((pair.one, pair.other)) for pair in every if pair.kind == kind}
        names = sorted(frozenset[str]().union(*pairs))
        found += [
            NamePair(kind=kind, one=one, other=other)
            for one, other in combinations(names, 2)
            if frozenset((one, other)) not in pairs
        ]
    return found


async def similarities(embedder: Embedder, pairs: Sequence[NamePair]) -> list[float]:
    """The cosines of pairs of names, as they are embedded; -1 where they are not compared."""
    spoken: dict[str, SpokenName] = {}
    for name in (name for pair in pairs for name in (pair.one, pair.other)):
        read = read_name(name)
        if read is None:
            raise ValueError(f"{name!r} names nothing")
        spoken[name] = read
    embedded = await embedder.embed([name.proper.text for name in spoken.values()])
    rows = {name: np.array(vector.values) for name, vector in zip(spoken, embedded.vectors, strict=True)}
    found = []
    for pair in pairs:
        one, other = spoken[pair.one], spoken[pair.other]
        has_meanings = has_meaning(one, pair.kind) and has_meaning(other, pair.kind)
        are_compared = has_meanings and one.key != other.key and same_numbers(one.key, other.key)
        found.append(float(rows[pair.one] @ rows[pair.other]) if are_compared else -1.0)
    return found


async def measure(settings: StreamsSettings) -> str:
    """The table of all thresholds."""
    embedder = build_embedder(settings)
    try:
        columns: dict[str, Sequence[float]] = {}
        for label in LABELS:
            for half, part in enumerate(("tuning", "testing")):
                pairs = [pair for pair in labelled(label) if pair.half == half]
                columns[f"{label}, {part} half ({len(pairs)})"] = await similarities(embedder, pairs)
        others = unlabelled()
        columns[f"other pairs ({len(others)})"] = await similarities(embedder, others)
    finally:
        await embedder.close()
    lines = [embedder.model, f"| from | {' | '.join(columns)} |", f"|---{'|---' * len(columns)}|"]
    for threshold in THRESHOLDS:
        counts = (str(sum(one >= threshold for one in found)) for found in columns.values())
        lines.append(f"| {threshold:.2f} | {' | '.join(counts)} |".replace("0.", "."))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.name_twins", description=__doc__)
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline")
    given = parser.parse_args()
    sys.stdout.write(asyncio.run(measure(StreamsSettings(embedding_provider=given.provider))) + "\n")


if __name__ == "__main__":
    main()
