"""`python -m tests.quality.thresholds`: measure the thresholds of an embedding model on labelled pairs of facts.

Prints how the similarities are distributed and what the model's thresholds make of them, as Markdown. The provider
`openai` is any endpoint that the usual MNEMOLOG_ settings name; it is asked for every sentence once.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.runtime.effective_settings import thresholds_for
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.quality.similarities import LABELS, Label, Pair, extracted_pairs, plain_pairs

PLAIN = "plain text"
SEARCH = "search text"
QUANTILES = (0, 0.05, 0.5, 0.95, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often something happens to the pairs of a label; with `ends` given, only to those with this mark."""

    meaning: str
    label: Label
    happens: Callable[[Pair, Thresholds], bool]
    embedded: str = SEARCH
    ends: bool | None = None

    def concerns(self, pair: Pair) -> bool:
        return pair.label == self.label and self.ends in (None, pair.ends)


def _is_asked_about(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity >= at.conflict or (pair.ends and pair.similarity >= at.ending)


def _is_skipped(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity > at.duplicate


def _is_dropped(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity > at.near_duplicate


RATES = (
    Rate(meaning="repetitions asked about or skipped", label="same", happens=_is_asked_about),
    Rate(meaning="updates asked about", label="update", happens=_is_asked_about),
    Rate(meaning="updates that are marked as such asked about", label="update", happens=_is_asked_about, ends=True),
    Rate(meaning="unrelated facts asked about", label="unrelated", happens=_is_asked_about),
    Rate(meaning="unrelated facts without a mark asked about", label="unrelated", happens=_is_asked_about, ends=False),
    Rate(meaning="updates skipped by vector alone", label="update", happens=_is_skipped),
    Rate(
        meaning="updates skipped by vector and words",
        label="update",
        happens=lambda pair, at: pair.equivalent and _is_skipped(pair, at),
    ),
    Rate(meaning="compatible facts of one turn dropped by vector alone", label="compatible", happens=_is_dropped),
    Rate(
        meaning="compatible facts of one turn dropped by vector and words",
        label="compatible",
        happens=lambda pair, at: pair.equivalent and _is_dropped(pair, at),
    ),
    Rate(
        meaning="repetitions in one turn dropped by vector and words",
        label="same",
        happens=lambda pair, at: pair.equivalent and _is_dropped(pair, at),
    ),
    Rate(
        meaning="updates in a raw store skipped by vector alone",
        label="update",
        happens=lambda pair, at: pair.similarity > at.raw_duplicate,
        embedded=PLAIN,
    ),
)


def distributions(measured: dict[str, Sequence[Pair]]) -> Iterator[tuple[str, ...]]:
    """What is embedded, the label, the number of pairs, and their quantiles."""
    for embedded, pairs in measured.items():
        for label in LABELS:
            found = sorted(pair.similarity for pair in pairs if pair.label == label)
            at = (found[round(share * (len(found) - 1))] for share in QUANTILES)
            yield embedded, label, str(len(found)), *(f"{value:.3f}".lstrip("0") for value in at)


def rates(measured: dict[str, Sequence[Pair]], thresholds: Thresholds) -> Iterator[tuple[str, ...]]:
    """What is embedded, what happens, and how often, as a part of the pairs with that label."""
    for rate in RATES:
        pairs = [pair for pair in measured[rate.embedded] if rate.concerns(pair)]
        count = sum(rate.happens(pair, thresholds) for pair in pairs)
        yield rate.embedded, rate.meaning, f"{100 * count / len(pairs):.1f} % of {len(pairs)}"


async def measure(settings: StreamsSettings, *, record: Path | None, replay: Path | None) -> str:
    chat, embedder = chosen_models(settings, record=record, replay=replay)
    try:
        measured: dict[str, Sequence[Pair]] = {
            PLAIN: await plain_pairs(embedder),
            SEARCH: await extracted_pairs(chat, embedder),
        }
    finally:
        await chat.close()
        await embedder.close()
    thresholds = thresholds_for(embedder.model, Overrides())
    head = ("embedded", "label", "pairs", *("min" if not q else "max" if q == 1 else f"{q:.0%}" for q in QUANTILES))
    return "\n".join(
        (
            f"{chat.model}, {embedder.model}: {thresholds.model_dump_json(exclude={'embedding_model'})}",
            *_table(head, distributions(measured)),
            "",
            *_table(("embedded", "what happens", "how often"), rates(measured, thresholds)),
        )
    )


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.thresholds", description=__doc__)
    parser.add_argument("--provider", choices=("offline", "openai"), default="offline")
    tape = parser.add_mutually_exclusive_group()
    tape.add_argument("--record", type=Path, metavar="DIR", help="keep every reply of the models in this folder")
    tape.add_argument("--replay", type=Path, metavar="DIR", help="take the replies from there, without a server")
    given = parser.parse_args()
    settings = StreamsSettings(provider=given.provider)
    sys.stdout.write(asyncio.run(measure(settings, record=given.record, replay=given.replay)) + "\n")


if __name__ == "__main__":
    main()
