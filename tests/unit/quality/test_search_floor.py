"""The floor of a search is the highest that loses at most 2 % of the answers."""

from collections import Counter

from mnemolog.streams.llm.minilm_embedder import MODEL_NAME, MiniLmEmbedder
from mnemolog.streams.stages.effective_settings import search_floor
from tests.quality.search_floor import highest_floor, load_questions, measure_pairs, tables


async def test_the_floor_of_the_offline_model_is_the_measured_one() -> None:
    embedder = MiniLmEmbedder()
    try:
        measured = await measure_pairs(embedder)
    finally:
        await embedder.close()
    assert highest_floor(measured) == search_floor(MODEL_NAME)
    assert "| 0.17 | 1.2 % |" in tables(measured)


def test_questions_of_four_languages_are_asked_once() -> None:
    answered, strange = load_questions()
    assert len(answered) >= 80
    asked = Counter([one.question for one in answered] + [question for _, question in strange])
    assert [question for question, count in asked.items() if count > 1] == []
    assert {one.language for one in answered} == {language for language, _ in strange} == {"en", "de", "fr", "es"}
