"""Facts of several categories: which one comes first, and that a rule for any of them holds."""

import pytest

from mnemolog.schemas.facts import ExtractedFact, ranked_categories
from mnemolog.schemas.instructions import ForbiddenTopic
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.llm.withheld import topic_of


@pytest.mark.parametrize(
    ("given", "ranked"),
    [
        ([], ("other",)),
        (["other", "pets"], ("pets",)),
        (["pets", "sport", "pets"], ("pets", "sport")),
        (["soft_preference", "pets", "health"], ("health", "soft_preference", "pets")),
        (["professional", "finance", "hard_preference"], ("hard_preference", "finance", "professional")),
        ([f"c{number}" for number in range(12)], tuple(f"c{number}" for number in range(10))),
    ],
)
def test_the_category_with_the_strictest_rules_comes_first(given: list[str], ranked: tuple[str, ...]) -> None:
    fact = ExtractedFact(text="A.", excerpt="A.", search_text="A.", **ranked_categories(given))
    assert fact.categories == ranked
    written = fact.model_dump_json(include={"category", "more_categories"})
    assert ExtractedFact.model_validate_json(fact.model_dump_json()) == fact
    assert ("more_categories" in written) == (len(ranked) > 1)


@pytest.mark.parametrize("category", ["health", "pets", "sport"])
def test_a_rule_for_any_category_holds(category: str) -> None:
    fact = ExtractedFact(text="A.", excerpt="A.", search_text="A.", **ranked_categories(["pets", "health", "sport"]))
    assert EffectivePolicy(high_risk=(category,)).is_high_risk(fact.categories, None)
    assert not EffectivePolicy(high_risk=("finance",)).is_high_risk(fact.categories, "home_city")
    topic = ForbiddenTopic(name="secret", categories=(category,))
    assert topic_of(fact, (topic,)) == topic
