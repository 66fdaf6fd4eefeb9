"""Facts of one turn that say the same thing."""

import math

from schemas.facts import EmbeddedFact, ExtractedFact
from schemas.vector import Vector
from streams.stages.embed import without_near_duplicates
from streams.stages.likeness import READ_CHARACTERS


def at(degrees: float, text: str, length: float = 1.0) -> EmbeddedFact:
    """A fact whose vector points at `degrees`."""
    angle = math.radians(degrees)
    vector = Vector.of("m", [length * math.cos(angle), length * math.sin(angle)])
    return EmbeddedFact(fact=ExtractedFact(text=text, search_text=text, excerpt=text), vector=vector)


def kept_of(*facts: EmbeddedFact) -> list[str]:
    kept, _ = without_near_duplicates(facts, 0.95)
    return [fact.fact.text for fact in kept]


def test_the_first_of_near_duplicates_stays_and_the_dropped_are_told() -> None:
    facts = [at(0, "east"), at(60, "north"), at(10, "eastward"), at(70, "northward", length=3.0), at(35, "between")]
    kept, dropped = without_near_duplicates(facts, 0.95)
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


def test_the_vectors_of_long_texts_say_nothing_of_their_ends() -> None:
    beginning = "x" * READ_CHARACTERS
    one, other = f"{beginning} to Rome", f"{beginning} to Oslo"
    assert kept_of(at(0, one), at(0, other), at(0, one)) == [one, other]
