"""Facts of one turn that say the same thing."""

import math

from schemas.facts import EmbeddedFact, ExtractedFact
from schemas.vector import Vector
from streams.stages.embed import without_near_duplicates


def at(degrees: float, length: float = 1.0) -> EmbeddedFact:
    """A fact whose vector points at `degrees`; its text says where."""
    text = f"{degrees:g} degrees"
    angle = math.radians(degrees)
    vector = Vector.of("m", [length * math.cos(angle), length * math.sin(angle)])
    return EmbeddedFact(fact=ExtractedFact(text=text, search_text=text, excerpt=text), vector=vector)


def test_the_first_of_near_duplicates_stays_and_the_dropped_are_told() -> None:
    kept, dropped = without_near_duplicates([at(0), at(60), at(10), at(70, length=3.0), at(35)], 0.95)
    assert [fact.fact.text for fact in kept] == ["0 degrees", "60 degrees", "35 degrees"]
    assert [(one.text, one.reason) for one in dropped] == [
        ("10 degrees", "near_duplicate"),
        ("70 degrees", "near_duplicate"),
    ]
    assert all(one.similarity is not None and 0.98 < one.similarity < 0.99 for one in dropped)


def test_what_was_dropped_drops_no_other() -> None:
    kept, _ = without_near_duplicates([at(0), at(15), at(30)], 0.95)
    assert [fact.fact.text for fact in kept] == ["0 degrees", "30 degrees"]
