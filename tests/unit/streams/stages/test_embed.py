"""Facts of one turn that say the same thing."""

import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas.command import Edit, Update
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact
from mnemolog.schemas.provenance import Origin, Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.schemas.vector import Vector
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import EmbeddingResult, RequestSource
from mnemolog.streams.runtime.effective_settings import thresholds_for
from mnemolog.streams.stages.embed import EmbedStage, drop_near_duplicates
from mnemolog.streams.stages.envelope import ReceivedEnvelope
from mnemolog.streams.text.differences import MAX_COMPARED_CHARACTERS


def at(degrees: float, text: str, length: float = 1.0) -> EmbeddedFact:
    """A fact whose vector points at `degrees`."""
    angle = math.radians(degrees)
    vector = Vector.from_values("m", [length * math.cos(angle), length * math.sin(angle)])
    return EmbeddedFact(fact=ExtractedFact(text=text, search_text=text, excerpt=text), vector=vector)


def kept_of(*facts: EmbeddedFact) -> list[str]:
    kept, _ = drop_near_duplicates(facts, 0.95)
    return [fact.fact.text for fact in kept]


def test_the_first_of_near_duplicates_stays_and_the_dropped_are_told() -> None:
    facts = [at(0, "east"), at(60, "north"), at(10, "eastward"), at(70, "northward", length=3.0), at(35, "between")]
    kept, dropped = drop_near_duplicates(facts, 0.95)
    assert [fact.fact.text for fact in kept] == ["east", "north", "between"]
    assert [(one.text, one.reason) for one in dropped] == [
        ("eastward", "near_duplicate"),
        ("northward", "near_duplicate"),
    ]
    assert all(one.similarity is not None and 0.98 < one.similarity < 0.99 for one in dropped)


def test_what_was_dropped_drops_no_other() -> None:
    assert kept_of(at(0, "a"), at(15, "b"), at(30, "c")) == ["a", "c"]


def test_another_number_is_another_fact() -> None:
    assert kept_of(at(0, "The train leaves at 17:45."), at(1, "The train leaves at 17:15.")) == [
        "The train leaves at 17:45.",
        "The train leaves at 17:15.",
    ]


def test_what_two_say_of_themselves_in_the_same_words_are_two_facts() -> None:
    anns, bobs = (
        EmbeddedFact(fact=one.fact.model_copy(update={"subject": name}), vector=one.vector)
        for one, name in ((at(0, "I like tea."), "Ann"), (at(0, "I like tea."), "Bob"))
    )
    assert kept_of(anns, bobs, anns) == ["I like tea.", "I like tea."]


def test_the_vectors_of_long_texts_say_nothing_of_their_ends() -> None:
    beginning = "x" * MAX_COMPARED_CHARACTERS
    one, other = f"{beginning} to Rome", f"{beginning} to Oslo"
    assert kept_of(at(0, one), at(0, other), at(0, one)) == [one, other]


class ConstantEmbedder:
    """An embedder for which all texts mean the same."""

    async def embed(self, source: RequestSource, texts: tuple[str, ...]) -> EmbeddingResult:
        assert source.stage == "embed"
        vectors = tuple(Vector.from_values("m", [1.0, 0.0]) for _ in texts)
        return EmbeddingResult(vectors=vectors, model="m", calls=1.0, tokens=3, milliseconds=2.0)


async def test_each_text_of_a_command_keeps_its_place_however_alike_they_are() -> None:
    texts = ["Mira likes tea.", "Mira likes tea.", "Mira likes tea"]
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    edits = tuple(Edit(fact_id=UUID(int=number), text=text) for number, text in enumerate(texts))
    command = ExtractedFacts(
        source_id="c1",
        source_kind="command",
        scope=Scope(user_id="mira"),
        origin=Origin(topic="memory_commands", partition=0, offset=0),
        occurred_at=noon,
        published_at=noon,
        order=Update(edits=edits),
        facts=tuple(ExtractedFact(text=text, search_text=text, excerpt=text) for text in texts),
    )
    embedder: Any = ConstantEmbedder()
    record = KafkaRecord(topic="extracted_facts", partition=0, offset=0, key=None, value=None, timestamp=1.7e9)
    output = await EmbedStage(embedder, _thresholds)(ReceivedEnvelope(command), record)
    assert [fact.fact.text for fact in output.facts] == texts
    assert (output.order, output.steps[0].dropped) == (command.order, ())


def _thresholds(model: str, *_: object) -> Thresholds:
    return thresholds_for(model, Overrides())
