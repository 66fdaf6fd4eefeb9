"""The facts of many others of one key leave room for the fact that the statement may be about."""

import math

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact, MatchedFact
from tests.support.builders.commits import day, vector
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

FRIENDS = ("Ann", "Bo", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ian")


async def hear(
    resolver: ResolverHarness, fact: ExtractedFact, similarity: float, number: int, speaker: str | None = None
) -> Commit:
    """A statement with this similarity to what is asked last; all of these are too far for a conflict."""
    own = (math.sqrt(1 - similarity**2) * (axis == number) for axis in range(1, 20))
    matched = MatchedFact(fact=fact, vector=vector(similarity, *own))
    return await resolver.resolve_turn(at=day(number), facts=(matched,), speaker=speaker)


@pytest.mark.parametrize(
    ("known", "asked", "speaker", "others", "similarity", "is_replaced"),
    [
        pytest.param("the user", "Mira", None, 5, 0.6, True, id="no name of the user is known"),
        pytest.param(None, "Mira", None, 5, 0.6, True, id="nobody is named"),
        pytest.param("Mira Kovac", "Mira", None, 5, 0.6, False, id="perhaps another one"),
        pytest.param("the user", "Mira", "Mira Kovac", 5, 0.6, True, id="a name of the speaker"),
        pytest.param("the user", "der Nutzer", None, 9, 0.9, True, id="the user without a name"),
        pytest.param(None, "der Nutzer", None, 9, 0.9, True, id="the user, and nobody"),
    ],
)
async def test_a_fact_that_may_be_of_the_subject_is_shown_before_those_of_other_people(
    resolver: ResolverHarness,
    *,
    known: str | None,
    asked: str,
    speaker: str | None,
    others: int,
    similarity: float,
    is_replaced: bool,
) -> None:
    slot = {"key": "home_city", "single_valued": True}
    own, moved = f"{known or 'Somebody'} lives in Rome.", f"{asked} has moved to Lisbon."
    of_friends = [f"{friend} lives in Oslo." for friend in FRIENDS[:others]]
    resolver.chat_model.set_replies(verdicts_by_text({}))
    await hear(resolver, extracted_fact(own, subject=known, **slot), 0.5, 1, speaker)
    for number, text in enumerate(of_friends, start=2):
        await hear(resolver, extracted_fact(text, subject=text.split()[0], **slot), similarity, number)
    resolver.chat_model.set_replies(verdicts_by_text({moved: TextVerdict("REPLACE", (own,))}))
    await hear(resolver, extracted_fact(moved, subject=asked, **slot), 1.0, 15)
    assert own in resolver.chat_model.shown[0]
    assert await resolver.active_texts() == sorted([*of_friends, moved, *([] if is_replaced else [own])])
