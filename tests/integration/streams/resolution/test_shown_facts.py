"""A decision concerns the facts that its model was shown, and no other."""

import math
from datetime import datetime
from typing import Any

import pytest

from mnemolog.projections.queries.explain import explain
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Resolve
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import ConflictResolved, FactAdded
from mnemolog.schemas.facts import ExtractedFact, MatchedFact
from mnemolog.texts import explanation_sentences
from tests.support.builders.commits import day, vector
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

ME = ScopeFilter(user_id="alice")
LIKES = ("Mira likes tea.", "Mira likes jazz.", "Mira plays chess.", "Mira has a dog.", "Mira runs.", "Mira eats meat.")
NO_MEAT = extracted_fact("Mira no longer eats meat.", key="k5", subject="Mira", action_hint="retract")


async def resolve_far(resolver: ResolverHarness, fact: ExtractedFact, number: int) -> Commit:
    matched = MatchedFact(
        fact=fact, vector=vector(math.sqrt(0.5), *(math.sqrt(0.5) * (axis == number + 1) for axis in range(1, 20)))
    )
    return await resolver.resolve_turn(at=day(0.1 * number), facts=(matched,))


async def test_resolve_without_targets_concerns_what_the_model_was_shown(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    for number, text in enumerate(LIKES):
        await resolve_far(resolver, extracted_fact(text, key=f"k{number}"), number)
    resolver.chat_model.set_replies("no JSON at all")
    (event,) = (await resolve_far(resolver, NO_MEAT, 10)).events
    assert isinstance(event, FactAdded)
    assert event.unresolved
    (shown,) = resolver.chat_model.shown
    assert len(shown) == 3 < len(event.decision.candidates)
    (conflict,) = await unresolved(resolver.stored.conn, ME, day(3))
    assert sorted(one.text for one in conflict.beside) == sorted(shown)
    done = await commands.execute("c1", Resolve(fact_id=event.fact.fact_id, action="contradict"), at=day(3))
    (settled,) = done.events
    assert isinstance(settled, ConflictResolved)
    assert set(settled.targets) == set(event.decision.shown)
    assert await resolver.active_texts() == sorted({*LIKES, NO_MEAT.text} - set(shown))


async def test_a_retry_shows_what_the_fact_was_put_beside(resolver: ResolverHarness) -> None:
    """The turn that comes near is far from that: nobody would ever be asked about the two cities of Tom."""
    rome, oslo = "Tom lives in Rome.", "Tom moved to Oslo."
    home: dict[str, Any] = {"key": "home_city", "subject": "Tom", "single_valued": True}
    west = MatchedFact(fact=extracted_fact(rome, **home), vector=vector(0.0, 1.0))
    await resolver.resolve_turn(at=day(0), facts=(west,))
    await resolver.resolve_turn("Bob is from Oslo.", at=day(0.5))
    resolver.chat_model.set_replies("no JSON at all")
    await resolver.resolve_turn(extracted_fact(oslo, **home), at=day(1))
    resolver.chat_model.set_replies(verdicts_by_text({oslo: TextVerdict("REPLACE", (rome,))}))
    alice = extracted_fact("Alice moved to Oslo.", **home | {"subject": "Alice"})
    _, settled = (await resolver.resolve_turn(alice, at=day(2))).events
    assert rome in resolver.chat_model.shown[-1]
    assert isinstance(settled, ConflictResolved)
    assert (settled.action, settled.ended_at) == ("replace", day(1))
    assert len(settled.decision.shown) == len(resolver.chat_model.shown[-1])
    assert set(settled.targets) <= set(settled.decision.shown)
    assert await resolver.active_texts() == [alice.text, "Bob is from Oslo.", oslo]


@pytest.mark.parametrize(("settled_at", "said_at"), [(day(0.5), day(1)), (day(1), None)])
async def test_a_conflict_that_is_settled_later_keeps_whose_words_it_is_about(
    resolver: ResolverHarness, settled_at: datetime, said_at: datetime | None
) -> None:
    """Whether the turn that settles it comes late, or is of the same time."""
    vim, plugins, merged = "Ann uses Vim.", "Ann uses Vim with plugins.", "Ann uses Vim, with plugins."
    slot: dict[str, Any] = {"key": "editor", "subject": "Ann", "single_valued": True}
    await resolver.resolve_turn(extracted_fact(vim, excerpt="I use Vim", **slot), at=day(0), speaker="Ann")
    resolver.chat_model.set_replies("nonsense")
    told = extracted_fact(plugins, excerpt="I use Vim with plugins", importance=0.9, certainty="weak", **slot)
    await resolver.resolve_turn(told, at=day(1), speaker="Ann")
    resolver.chat_model.set_replies(verdicts_by_text({plugins: TextVerdict("MERGE", (vim,), merged)}))
    tea = extracted_fact("Bob likes tea.", excerpt="I like tea")
    _, event = (await resolver.resolve_turn(tea, at=settled_at, speaker="Bob", source_id="bobs-turn")).events
    fact = event.new_fact
    assert fact is not None
    assert (fact.text, fact.speaker, fact.excerpt) == (merged, "Ann", "I use Vim with plugins")
    assert (fact.certainty, fact.importance, fact.said_at) == ("weak", 0.9, said_at)
    explanation, texts = await explain(resolver.stored.conn, "default", fact.fact_id)
    words = "\n".join(explanation_sentences(explanation, texts))
    assert f"It comes from a conflict that was open until turn bobs-turn of {settled_at:%Y-%m-%d %H:%M} UTC; " in words
    assert 'by 2026-01-02 09:00 UTC, Ann had said: "I use Vim with plugins".' in words
    assert "read it there" not in words
