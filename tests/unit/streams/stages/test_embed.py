"""Facts of one turn that say the same thing."""

import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import Edit, Update
from mnemolog.schemas.entities import MAX_NAME_VECTORS, NamedEntity
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact
from mnemolog.schemas.provenance import Origin, Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import EmbeddingResult, RequestSource
from mnemolog.streams.stages.effective_settings import thresholds_for
from mnemolog.streams.stages.embed import EmbedStage, drop_near_duplicates
from mnemolog.streams.stages.processor import ReceivedEnvelope


def at(degrees: float, text: str, length: float = 1.0) -> EmbeddedFact:
    """A fact whose vector points at `degrees`."""
    angle = math.radians(degrees)
    vector = Vector.from_values("m", [length * math.cos(angle), length * math.sin(angle)])
    return EmbeddedFact(fact=ExtractedFact(text=text, search_text=text, excerpt=text), vector=vector)


def kept_of(*facts: EmbeddedFact) -> list[str]:
    kept, _ = drop_near_duplicates(facts, 0.95)
    return [fact.fact.text for fact in kept]


def test_the_first_of_near_duplicates_stays_and_the_dropped_are_told() -> None:
    tea, too, jazz = at(0, "Mira likes tea."), at(10, "Mira likes tea"), at(10, "Mira likes jazz.")
    kept, dropped = drop_near_duplicates([tea, jazz, too], 0.95)
    assert [fact.fact.text for fact in kept] == ["Mira likes tea.", "Mira likes jazz."]
    assert [(one.text, one.reason) for one in dropped] == [("Mira likes tea", "near_duplicate")]
    assert all(one.similarity is not None and 0.98 < one.similarity < 0.99 for one in dropped)


def test_equal_words_of_unlike_vectors_are_both_kept() -> None:
    assert kept_of(at(0, "Mira likes tea."), at(40, "Mira likes tea")) == ["Mira likes tea.", "Mira likes tea"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The train leaves at 17:45.", "The train leaves at 17:15."),
        ("मीरा दिन में काम करती है", "मीरा दीन में काम करती है"),
        (f"Mira likes tea. {'x' * 2000} to Rome", f"Mira likes tea. {'x' * 2000} to Oslo"),
    ],
)
def test_one_other_word_is_another_fact_however_alike_the_vectors_are(one: str, other: str) -> None:
    assert kept_of(at(0, one), at(0, other), at(0, one)) == [one, other]


def test_what_two_say_of_themselves_in_the_same_words_are_two_facts() -> None:
    anns, bobs = (
        EmbeddedFact(fact=one.fact.model_copy(update={"subject": name}), vector=one.vector)
        for one, name in ((at(0, "I like tea."), "Ann"), (at(0, "I like tea."), "Bob"))
    )
    assert kept_of(anns, bobs, anns) == ["I like tea.", "I like tea."]


class ConstantEmbedder:
    """An embedder for which all texts mean the same."""

    model = "m"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, source: RequestSource, texts: tuple[str, ...]) -> EmbeddingResult:
        assert source.stage == "embed"
        self.texts += texts
        vectors = tuple(Vector.from_values("m", [1.0, 0.0]) for _ in texts)
        return EmbeddingResult(vectors=vectors, model="m", calls=1.0, tokens=3, milliseconds=2.0)


def envelope(*facts: ExtractedFact, **fields: Any) -> ExtractedFacts:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    origin, scope = Origin(topic="conversation_turns", partition=0, offset=0), Scope(user_id="mira")
    return ExtractedFacts(
        source_id="s1",
        scope=scope,
        origin=origin,
        occurred_at=noon,
        published_at=noon,
        facts=facts,
        **fields,
    )


async def test_each_text_of_a_command_keeps_its_place_however_alike_they_are() -> None:
    texts = ["Mira likes tea.", "Mira likes tea.", "Mira likes tea"]
    order = Update(edits=tuple(Edit(fact_id=UUID(int=number), text=text) for number, text in enumerate(texts)))
    facts = (ExtractedFact(text=text, search_text=text, excerpt=text) for text in texts)
    output, _ = await embedded(envelope(*facts, source_kind="command", order=order))
    assert [fact.fact.text for fact in output.facts] == texts
    assert (output.order, output.steps[0].dropped) == (order, ())


def turn_naming(*names: str, kind: str = "place") -> ExtractedFacts:
    """A turn of one fact for each twenty names."""
    groups = [names[start : start + 20] for start in range(0, len(names), 20)]
    return envelope(
        *(
            ExtractedFact(
                text=f"Fact {place}.",
                search_text=f"Fact {place}.",
                excerpt="said",
                entities=tuple(NamedEntity(name=name, type=kind) for name in group),
            )
            for place, group in enumerate(groups)
        )
    )


async def test_names_of_things_are_embedded_in_the_call_of_the_facts() -> None:
    output, texts = await embedded(turn_naming("the Allianz Arena", "Bern", "bern"))
    assert texts == ["Fact 0.", "Allianz Arena", "Bern"]
    assert [one.key for one in output.name_vectors] == ["allianz arena", "bern"]
    assert [fact.fact.text for fact in output.facts] == ["Fact 0."]
    assert output.steps[0].embedding_calls == 1


@pytest.mark.parametrize(("kind", "threshold"), [("person", 0.8), ("place", 0.0)])
async def test_names_of_people_and_names_without_a_threshold_have_no_vectors(kind: str, threshold: float) -> None:
    output, texts = await embedded(turn_naming("Ana", "Tom", kind=kind), name_twin=threshold)
    assert (output.name_vectors, texts) == ((), ["Fact 0."])


async def test_a_turn_of_500_names_makes_twenty_texts_of_them() -> None:
    output, texts = await embedded(turn_naming(*(f"Place {number}" for number in range(500))))
    assert len(output.name_vectors) == MAX_NAME_VECTORS == 20
    assert len([text for text in texts if text.startswith("Place")]) == MAX_NAME_VECTORS


async def embedded(envelope: ExtractedFacts, name_twin: float = 0.8) -> tuple[EmbeddedFacts, list[str]]:
    """What the stage makes of an envelope, and the texts that it embeds."""
    embedder = ConstantEmbedder()
    asked: Any = embedder

    def thresholds(model: str, *_: object) -> Thresholds:
        return thresholds_for(model, Overrides(), name_twin)

    record = KafkaRecord(topic="extracted_facts", partition=0, offset=0, key=None, value=None, timestamp=1.7e9)
    return await EmbedStage(asked, thresholds)(ReceivedEnvelope(envelope), record), embedder.texts
