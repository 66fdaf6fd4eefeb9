"""`python -m tests.quality.thresholds`: measure the thresholds of an embedding model on labelled pairs of facts.

Prints how the similarities are distributed and what the model's thresholds make of them, as Markdown. The provider
`openai` is any endpoint that the usual MNEMOLOG_ settings name; it is asked for every sentence once.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.effective_settings import thresholds_for
from tests.bench.markdown import table
from tests.quality.model_sources import chosen_models
from tests.quality.similarities import LABELS, Label, Pair, extracted_pairs, plain_pairs

PLAIN = "plain text"
SEARCH = "search text"
QUANTILES = (0, 0.05, 0.5, 0.95, 1)


def is_asked_about(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity >= at.conflict or (pair.ends and pair.similarity >= at.ending)


def is_skipped(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity > at.duplicate


def is_skipped_by_words_too(pair: Pair, at: Thresholds) -> bool:
    return pair.equivalent and is_skipped(pair, at)


def is_dropped(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity > at.near_duplicate


def is_dropped_by_words_too(pair: Pair, at: Thresholds) -> bool:
    return pair.equivalent and is_dropped(pair, at)


def is_skipped_when_raw(pair: Pair, at: Thresholds) -> bool:
    return pair.similarity > at.raw_duplicate


RATES: Sequence[tuple[str, str, Label, bool | None, Callable[[Pair, Thresholds], bool]]] = (
    (SEARCH, "repetitions asked about or skipped", "same", None, is_asked_about),
    (SEARCH, "updates asked about", "update", None, is_asked_about),
    (SEARCH, "updates that are marked as such asked about", "update", True, is_asked_about),
    (SEARCH, "unrelated facts asked about", "unrelated", None, is_asked_about),
    (SEARCH, "unrelated facts without a mark asked about", "unrelated", False, is_asked_about),
    (SEARCH, "updates skipped by vector alone", "update", None, is_skipped),
    (SEARCH, "updates skipped by vector and words", "update", None, is_skipped_by_words_too),
    (SEARCH, "compatible facts of one turn dropped by vector alone", "compatible", None, is_dropped),
    (SEARCH, "compatible facts of one turn dropped by vector and words", "compatible", None, is_dropped_by_words_too),
    (SEARCH, "repetitions in one turn dropped by vector and words", "same", None, is_dropped_by_words_too),
    (PLAIN, "updates in a raw store skipped by vector alone", "update", None, is_skipped_when_raw),
)
"""What is embedded, what happens how often to the pairs of a label, and where given only to those with this mark."""


def distributions(measured: Mapping[str, Sequence[Pair]]) -> str:
    rows = []
    for embedded, pairs in measured.items():
        for label in LABELS:
            found = sorted(pair.similarity for pair in pairs if pair.label == label)
            at = (found[round(share * (len(found) - 1))] for share in QUANTILES)
            rows.append((embedded, label, str(len(found)), *(f"{value:.3f}".lstrip("0") for value in at)))
    quantiles = ("min" if not q else "max" if q == 1 else f"{q:.0%}" for q in QUANTILES)
    return table(("embedded", "label", "pairs", *quantiles), rows)


def rates(measured: Mapping[str, Sequence[Pair]], thresholds: Thresholds) -> str:
    """How often something happens, as a part of the pairs with that label."""
    rows = []
    for embedded, meaning, label, mark, happens in RATES:
        pairs = [pair for pair in measured[embedded] if pair.label == label and mark in (None, pair.ends)]
        count = sum(happens(pair, thresholds) for pair in pairs)
        rows.append((embedded, meaning, f"{100 * count / len(pairs):.1f} % of {len(pairs)}"))
    return table(("embedded", "what happens", "how often"), rows)


async def measure(settings: StreamsSettings, *, record: Path | None, replay: Path | None) -> str:
    chat, embedder = chosen_models(settings, record=record, replay=replay)
    try:
        measured = {PLAIN: await plain_pairs(embedder), SEARCH: await extracted_pairs(chat, embedder)}
    finally:
        await chat.close()
        await embedder.close()
    thresholds = thresholds_for(embedder.model, Overrides())
    head = f"{chat.model}, {embedder.model}: {thresholds.model_dump_json(exclude={'embedding_model'})}"
    return f"{head}\n{distributions(measured)}\n\n{rates(measured, thresholds)}"


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
