import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, cast

import pytest
import structlog

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME, MiniLmEmbedder
from mnemolog.streams.offline.model import RuleModel
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.effective_settings import (
    DEFAULTS_BY_MODEL,
    MEMLIB_DEFAULTS,
    MINILM_DEFAULTS,
    EffectiveSettings,
    search_floor,
    thresholds_for,
)
from mnemolog.streams.text.readings import read
from tests.quality.similarities import Label, Pair, extracted_pairs, plain_pairs
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def plain() -> list[Pair]:
    return asyncio.run(with_embedder(plain_pairs))


@pytest.fixture(scope="module")
def extracted() -> list[Pair]:
    return asyncio.run(with_embedder(partial(extracted_pairs, RuleModel())))


async def with_embedder(measure: Callable[[MiniLmEmbedder], Awaitable[list[Pair]]]) -> list[Pair]:
    embedder = MiniLmEmbedder()
    try:
        return await measure(embedder)
    finally:
        await embedder.close()


def similarities(pairs: Iterable[Pair], label: Label) -> list[float]:
    return [pair.similarity for pair in pairs if pair.label == label]


def share(similarities: list[float], threshold: float) -> float:
    """The part that lies above."""
    return sum(value > threshold for value in similarities) / len(similarities)


def test_the_thresholds_of_minilm_tell_the_labels_of_extracted_pairs_apart(extracted: list[Pair]) -> None:
    same, update, unrelated, compatible = (
        similarities(extracted, label) for label in ("same", "update", "unrelated", "compatible")
    )
    assert min(map(len, (same, update, unrelated, compatible))) >= 40
    assert share(same, MINILM_DEFAULTS.conflict) >= 0.97
    assert share(update, MINILM_DEFAULTS.conflict) >= 0.91
    assert share(unrelated, MINILM_DEFAULTS.conflict) <= 0.06
    assert max(update) < MINILM_DEFAULTS.duplicate  # no update is skipped unseen by its vector alone
    assert max(compatible) < MINILM_DEFAULTS.near_duplicate  # nor a compatible fact dropped from a turn
    assert share(same, MINILM_DEFAULTS.near_duplicate) > 0.1  # some repetitions are
    # The rules mark few ends, and these are near; a model marks whatever the words tell to be over.
    marked = [pair for pair in extracted if pair.label == "update" and (pair.ends or read(pair.new).ending)]
    ending = [pair.similarity for pair in marked]
    assert len(ending) > 60
    assert share(ending, MINILM_DEFAULTS.ending) == 1
    assert share(ending, MINILM_DEFAULTS.conflict) < 1  # that of conflicts would lose some


def test_no_update_of_a_raw_store_is_skipped_unseen_by_its_vector_alone(plain: list[Pair]) -> None:
    assert max(similarities(plain, "update")) < MINILM_DEFAULTS.raw_duplicate


def test_a_turn_can_set_its_own() -> None:
    assert thresholds_for(MODEL_NAME, Overrides(conflict=0.1, duplicate=0.5, ending=0.0)) == Thresholds(
        embedding_model=MODEL_NAME,
        duplicate=0.5,
        raw_duplicate=MINILM_DEFAULTS.raw_duplicate,
        conflict=0.1,
        near_duplicate=MINILM_DEFAULTS.near_duplicate,
        ending=0.0,
        name_twin=MINILM_DEFAULTS.name_twin,
    )


@pytest.mark.parametrize("configured", [0, 0.6])
def test_names_are_compared_from_a_configured_threshold_on(configured: float) -> None:
    settings = EffectiveSettings(StreamsSettings(name_twin_threshold=configured), cast("Any", None))
    assert settings.thresholds_for(MODEL_NAME, Overrides()).name_twin == configured


def test_an_unknown_model_is_warned_about_once_and_takes_the_defaults_of_memlib() -> None:
    with structlog.testing.capture_logs() as logs:
        first, second = (thresholds_for("never-heard-of-it", Overrides()) for _ in range(2))
    assert first == second
    assert (first.conflict, search_floor("never-heard-of-it")) == (MEMLIB_DEFAULTS.conflict, MEMLIB_DEFAULTS.search)
    assert [entry["event"] for entry in logs] == ["embedding_model_without_thresholds"]
    assert (search_floor(MODEL_NAME), search_floor(MODEL_NAME, 0.0)) == (MINILM_DEFAULTS.search, 0)


def test_every_default_names_its_source_and_is_in_order() -> None:
    for defaults in DEFAULTS_BY_MODEL.values():
        assert defaults.source
        assert defaults.search_source
        assert 0 < defaults.search < defaults.ending
        assert 0 < defaults.ending <= defaults.conflict < defaults.near_duplicate <= defaults.duplicate <= 1


def test_the_documentation_has_the_numbers_of_every_known_model() -> None:
    page = (ROOT / "docs/decisions/0010-thresholds-belong-to-an-embedding-model.md").read_text()
    for model, known in DEFAULTS_BY_MODEL.items():
        of_duplicates = (known.duplicate, known.raw_duplicate, known.near_duplicate)
        numbers = (known.conflict, known.ending, *of_duplicates, known.search)
        row = " | ".join(f"{number:.2f}"[1:] if number < 0.99 else f"{number:.3f}"[1:] for number in numbers)
        assert f"| `{model}` | {row} |" in page
