"""The facts of many others of one key leave room for the fact that the statement may be about."""

import math

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact, MatchedFact
from tests.support.builders.commits import day, vector
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

FRIENDS = ("Ann", "Bo", "Cid", "Dan", "Eve")


async def hear(
    resolver: ResolverHarness, fact: ExtractedFact, similarity: float, number: int, speaker: str | None = None
) -> Commit:
    """A statement with this similarity to what is asked last; all of these are too far for a conflict."""
    own = (math.sqrt(1 - similarity**2) * (axis == number) for axis in range(1, 20))
    matched = MatchedFact(fact=fact, vector=vector(similarity, *own))
    return await resolver.resolve_turn(at=day(number), facts=(matched,), speaker=speaker)


@pytest.mark.parametrize(
    ("known", "asked", "speaker"),
    [
        ("the user", "Mira", None),  # no name of the user is known
        (None, "Mira", None),
        ("Mira Kovac", "Mira", None),
        ("the user", "Mira", "Mira Kovac"),
    ],
)
async def test_a_fact_of_an_unsure_subject_is_shown_before_those_of_other_people(
    resolver: ResolverHarness, known: str | None, asked: str, speaker: str | None
) -> None:
    slot = {"key": "home_city", "single_valued": True}
    fact = extracted_fact(f"{known or 'Somebody'} lives in Rome.", subject=known, **slot)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    await hear(resolver, fact, 0.5, 1, speaker)
    for number, friend in enumerate(FRIENDS, start=2):
        await hear(resolver, extracted_fact(f"{friend} lives in Oslo.", subject=friend, **slot), 0.6, number)
    moved = f"{asked} has moved to Lisbon."
    resolver.chat_model.set_replies(verdicts_by_text({moved: TextVerdict("REPLACE", (fact.text,))}))
    await hear(resolver, extracted_fact(moved, subject=asked, **slot), 1.0, 9)
    others = [f"{friend} lives in Oslo." for friend in FRIENDS]
    # Mira may be another one than Mira Kovac: the model was shown the fact, and may not end it.
    kept = [fact.text] if known == "Mira Kovac" else []
    assert await resolver.active_texts() == sorted([*others, *kept, moved])
    asked = resolver.chat_model.prompts[-1].messages[-1].content
    assert fact.text in asked


@pytest.mark.parametrize("subject", ["the user", None])
async def test_the_own_fact_of_a_user_without_a_name_is_shown_before_those_of_friends(
    resolver: ResolverHarness, subject: str | None
) -> None:
    slot = {"key": "home_city", "single_valued": True}
    friends = (*FRIENDS, "Fay", "Gus", "Hal", "Ian")
    fact = extracted_fact("The user lives in Rome.", subject=subject, **slot)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    await hear(resolver, fact, 0.5, 1)
    for number, friend in enumerate(friends, start=2):
        await hear(resolver, extracted_fact(f"{friend} lives in Oslo.", subject=friend, **slot), 0.9, number)
    moved = "The user has moved to Lisbon."
    resolver.chat_model.set_replies(verdicts_by_text({moved: TextVerdict("REPLACE", (fact.text,))}))
    await hear(resolver, extracted_fact(moved, subject="der Nutzer", **slot), 1.0, 15)
    assert resolver.chat_model.shown[0][0] == fact.text
    assert await resolver.active_texts() == sorted([*(f"{friend} lives in Oslo." for friend in friends), moved])
