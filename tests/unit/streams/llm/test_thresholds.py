import structlog

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME, MiniLmEmbedder
from mnemolog.streams.runtime.thresholds import DEFAULTS_BY_MODEL, MEMLIB_DEFAULTS, MINILM_DEFAULTS, thresholds_for
from tests.support.builders.labelled_pairs import (
    COMPATIBLE,
    CONTRADICTING,
    ENDED_BY,
    SAME_MEANING,
    UNRELATED,
    parse_pairs,
)
from tests.support.paths import ROOT


async def similarities(table: str) -> list[float]:
    embedder = MiniLmEmbedder()
    texts = [text for pair in parse_pairs(table) for text in pair]
    rows = [vector.values for vector in (await embedder.embed(texts)).vectors]
    await embedder.close()
    return [sum(map(float.__mul__, *both)) for both in zip(rows[::2], rows[1::2], strict=True)]


def share(similarities: list[float], threshold: float) -> float:
    """The part that lies above."""
    return sum(value > threshold for value in similarities) / len(similarities)


async def test_minilm_s_thresholds_lose_no_clash_and_spare_what_is_unlike() -> None:
    same, clash = await similarities(SAME_MEANING), await similarities(CONTRADICTING)
    beside, other = await similarities(COMPATIBLE), await similarities(UNRELATED)
    assert len(same) + len(clash) + len(beside) + len(other) == 140
    assert share(same, MINILM_DEFAULTS.conflict) == 1  # repetitions are seen
    assert share(clash, MINILM_DEFAULTS.conflict) >= 0.97  # updates are seen
    assert share(other, MINILM_DEFAULTS.conflict) <= 0.05  # and little else is asked about
    assert max(clash) < MINILM_DEFAULTS.duplicate  # no update is skipped unseen
    assert max(clash) < MINILM_DEFAULTS.raw_duplicate
    assert max(beside) < MINILM_DEFAULTS.near_duplicate  # nothing true is dropped from a turn
    assert share(same, MINILM_DEFAULTS.near_duplicate) > 0.1  # some repetitions are


async def test_what_a_statement_ends_is_found_from_a_lower_threshold_on() -> None:
    ending = await similarities(ENDED_BY)
    assert len(ending) == 24
    assert share(ending, MINILM_DEFAULTS.ending) == 1
    assert share(ending, MINILM_DEFAULTS.conflict) <= 0.85  # that of conflicts would lose some


async def test_memlib_s_thresholds_would_not_do_for_minilm() -> None:
    clash, beside = await similarities(CONTRADICTING), await similarities(COMPATIBLE)
    assert max(clash) > MEMLIB_DEFAULTS.duplicate
    assert max(beside) > MEMLIB_DEFAULTS.near_duplicate
    assert share(clash, MEMLIB_DEFAULTS.conflict) <= 0.9


def test_a_turn_can_set_its_own() -> None:
    assert thresholds_for(MODEL_NAME, Overrides(conflict=0.1, duplicate=0.5, ending=0.0)) == Thresholds(
        embedding_model=MODEL_NAME,
        duplicate=0.5,
        raw_duplicate=MINILM_DEFAULTS.raw_duplicate,
        conflict=0.1,
        near_duplicate=MINILM_DEFAULTS.near_duplicate,
        ending=0.0,
    )


def test_an_unknown_model_is_warned_about_once() -> None:
    with structlog.testing.capture_logs() as logs:
        first, second = (thresholds_for("never-heard-of-it", Overrides()) for _ in range(2))
    assert first == second
    assert first.conflict == MEMLIB_DEFAULTS.conflict
    assert [entry["event"] for entry in logs] == ["embedding_model_without_thresholds"]


def test_every_default_names_its_source_and_is_in_order() -> None:
    for defaults in DEFAULTS_BY_MODEL.values():
        assert defaults.source
        assert 0 < defaults.ending <= defaults.conflict < defaults.near_duplicate <= defaults.duplicate <= 1


def test_the_documentation_has_the_numbers_of_every_known_model() -> None:
    page = (ROOT / "docs" / "discussions.md").read_text()
    for model, known in DEFAULTS_BY_MODEL.items():
        numbers = (known.conflict, known.ending, known.duplicate, known.raw_duplicate, known.near_duplicate)
        row = " | ".join(f"{number:.2f}"[1:] if number < 0.99 else f"{number:.3f}"[1:] for number in numbers)
        assert f"| `{model}` | {row} |" in page
