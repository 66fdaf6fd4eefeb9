"""A small dialogue goes through the tables and the search, and what is found of it is counted."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from mnemolog.client.search_models import SearchModels
from mnemolog.settings import Settings
from mnemolog.streams.llm.ports import Embeddings
from tests.recall.ablation import Asker, Figures
from tests.recall.dialogues import CHOOSING, REPORTING, Dialogues, Question, RecordedFact, RecordedTurn
from tests.recall.report import SHOWN, main_table, page
from tests.recall.stored import stored
from tests.recall.variations import BASELINE, DEFAULT, RERANKED, VARIATIONS, WITH_WORDINGS, Variation
from tests.support.builders.commits import vector
from tests.support.databases import server_folder
from tests.support.servers.openai_server import OpenAiServer
from tests.support.servers.search_replies import SearchReplies

SAID = {
    "dog": "My dog Rex ran away.",
    "cello": "I bought a cello.",
    "trip": "We drove to Lisbon.",
    "meal": "Dinner was late.",
}
MEANT = {"hound": "dog", "instrument": "cello"}


class TopicEmbedder:
    """A text has the direction of the topic that it names; every other one is far from all of them."""

    model = "topics"

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:  # noqa: ARG002 -- the port
        return Embeddings(vectors=tuple(vector(*self._place(text), model=self.model) for text in texts))

    async def close(self) -> None: ...

    def _place(self, text: str) -> list[float]:
        near = [
            float(said in text or any(MEANT.get(word) == topic for word in text.split()))
            for topic, said in SAID.items()
        ]
        return [*near, 0.0 if any(near) else 1.0]


@pytest.fixture(scope="module")
def dialogues() -> Dialogues:
    """The same in one dialogue for choosing and one for reporting: facts of all but the meal, questions of all but the
    trip.
    """
    start = datetime(2023, 5, 1, 9, tzinfo=UTC)
    asked = {"Where is Rex": "dog", "Which instrument": "cello", "Who was late": "meal"}
    turns, facts, questions = [], [], []
    for conversation in (CHOOSING[0], REPORTING[0]):
        for number, (topic, text) in enumerate(SAID.items()):
            turn_id = f"{conversation}:{topic}"
            turns.append(
                RecordedTurn(
                    conversation=conversation,
                    session=1,
                    turn_id=turn_id,
                    speaker="Ann",
                    text=text,
                    occurred_at=start + timedelta(minutes=number),
                    image=None,
                )
            )
            if topic != "meal":
                evidence = frozenset({turn_id})
                fact_id = f"{turn_id}-fact"
                facts.append(
                    RecordedFact(
                        conversation=conversation, fact_id=fact_id, subject="Ann", text=text, evidence=evidence
                    )
                )
        for text, topic in asked.items():
            evidence = frozenset({f"{conversation}:{topic}"})
            questions.append(Question(conversation=conversation, category=4, text=text, evidence=evidence))
    return Dialogues(turns=turns, facts=facts, questions=questions)


async def measured(dialogues: Dialogues, settings: Settings, *variations: Variation) -> list[Figures]:
    models = SearchModels(settings)
    with server_folder() as folder:
        async with stored(dialogues, TopicEmbedder(), Path(folder) / "data") as tables:
            figures = await Asker(dialogues, tables, TopicEmbedder(), models).measure_all(variations)
    await models.close()
    return figures


async def test_words_miss_what_is_only_meant_and_the_hybrid_search_finds_it(dialogues: Dialogues) -> None:
    facts, quoted, turns = await measured(dialogues, Settings(), *VARIATIONS)
    by_turns = [one.name for one in VARIATIONS if "turns" in one.include]
    first = {
        (figures.kind, name): [one.recall[0] for one in figures.measures[name]]
        for figures in (facts, quoted, turns)
        for name in (BASELINE.name, DEFAULT.name, *by_turns)
        if name in figures.measures
    }
    assert first == {
        ("facts", BASELINE.name): [1, 0, 1, 0],
        ("facts", DEFAULT.name): [1, 1, 1, 1],
        ("quoted", BASELINE.name): [1, 0, 1, 0],
        ("quoted", DEFAULT.name): [1, 1, 1, 1],
        ("turns", BASELINE.name): [1, 0, 1, 1, 0, 1],
        ("turns", DEFAULT.name): [1, 1, 1, 1, 1, 1],
        ("facts", "facts as by default, and turns"): [1, 1, 1, 1],
        ("facts", "turns alone"): [1, 0, 1, 0],
        ("turns", "turns themselves, by words"): [1, 0, 1, 1, 0, 1],
        ("turns", "turns themselves, as by default"): [1, 0, 1, 1, 0, 1],
    }
    assert {one.name for one in VARIATIONS} == facts.measures.keys() | turns.measures.keys()
    assert f"| {BASELINE.name} | .500 |" in main_table(facts, "reported")
    written = page(dialogues, [facts, quoted, turns], "topics")
    assert all(main_table(figures, "reported", SHOWN) in written for figures in (facts, quoted, turns))
    assert {one.name for one in VARIATIONS}.issuperset(SHOWN)


async def test_what_models_add_is_measured_too(dialogues: Dialogues) -> None:
    replies = SearchReplies({"Which instrument": ["cello"]})
    by_words = replace(WITH_WORDINGS, by_vector=False)
    with OpenAiServer(replies) as server:
        settings = Settings(
            provider="openai", base_url=server.base_url, api_key=SecretStr("k"), search_model_timeout=60.0
        )
        facts, *_ = await measured(dialogues, settings, BASELINE, by_words, RERANKED)
    assert [one.recall[0] for one in facts.measures[BASELINE.name]] == [1, 0, 1, 0]
    assert [one.recall[0] for one in facts.measures[by_words.name]] == [1, 1, 1, 1]
    assert [one.recall[0] for one in facts.measures[RERANKED.name]] == [1, 1, 1, 1]


async def test_figures_of_a_model_that_is_away_are_none(dialogues: Dialogues) -> None:
    with pytest.raises(RuntimeError, match="not reranked: no model is set"):
        await measured(dialogues, Settings(provider="offline"), RERANKED)
