"""Summaries of entities through the real resolver and tables: what readers see of them, and when no more."""

from collections.abc import Awaitable, Callable

import pytest

from mnemolog.projections.context import Context
from mnemolog.schemas.command import (
    Correct,
    Delete,
    DeleteAll,
    Edit,
    ForgetEntity,
    SplitEntity,
    SummariseEntity,
    Undo,
    Update,
)
from mnemolog.schemas.entities import NamedEntity
from mnemolog.schemas.entity_events import EntitySummarised
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import day
from tests.support.builders.model_replies import summary_reply
from tests.support.harnesses.resolver_harness import extracted_fact
from tests.support.harnesses.summary_harness import SummaryHarness

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
LIVES, WORKS = "Ana lives in Lisbon", "Ana works at Acme"


async def told(memory: SummaryHarness) -> None:
    await memory.say(LIVES)
    await memory.say(WORKS, key="employer")


async def test_a_summary_is_an_event_written_from_the_active_facts_of_an_entity(memory: SummaryHarness) -> None:
    await told(memory)
    await memory.say("Bea lives in Rome", name="Bea")
    memory.replies = [summary_reply(("Ana lives in Lisbon and works at Acme.", (1, 2)))]
    commit = await memory.summarise()
    (event,) = commit.entity_events
    assert isinstance(event, EntitySummarised)
    assert {fact.text for fact in memory.tasks[0].facts} == {LIVES, WORKS}
    assert (event.version, event.left_out, event.language) == (1, 0, "facts")
    assert (event.decision.model, event.decision.prompt_version) == ("reader-1", "summarise-1")
    assert (event.input_tokens, event.output_tokens) == (10, 5)
    shown = await memory.shown()
    assert shown is not None
    assert shown.summary == "Ana lives in Lisbon and works at Acme."
    assert (shown.version, shown.changed, shown.is_stale) == (1, 0, False)
    assert set(shown.fact_ids) == {await memory.fact_id(LIVES), await memory.fact_id(WORKS)}
    assert await memory.shown("Bea") is None
    assert await memory.is_rebuilt_equal()


async def test_what_is_refused_says_why_and_costs_no_call(memory: SummaryHarness) -> None:
    await told(memory)
    ana = await memory.entity_id()
    await memory.say("Ana lives in Oslo", scope=BEN)
    foreign = await memory.order(SummariseEntity(entity_id=await memory.entity_id("Ana", BEN)))
    await memory.set_policy(entity_summary="off")
    off = await memory.order(SummariseEntity(entity_id=ana))
    await memory.set_policy(entity_summary="on_demand")
    await memory.order(DeleteAll())
    nothing = await memory.order(SummariseEntity(entity_id=ana))
    assert [(commit.outcome, commit.reason) for commit in (foreign, off, nothing)] == [
        ("rejected", "foreign_entity"),
        ("rejected", "summaries_off"),
        ("rejected", "nothing_to_summarise"),
    ]
    assert not memory.tasks


async def deleted(memory: SummaryHarness) -> None:
    await memory.order(Delete(fact_ids=(await memory.fact_id(WORKS),)))


async def corrected(memory: SummaryHarness) -> None:
    await memory.order(Correct(edit=Edit(fact_id=await memory.fact_id(WORKS), text="Ana works at Initech")))


async def undone(memory: SummaryHarness) -> None:
    await memory.order(Undo(source_id="t1"))


async def deleted_after_a_change(memory: SummaryHarness) -> None:
    """What was true before and has ended is not deleted itself, and stays ended: what took its place is deleted."""
    await memory.order(Update(edits=(Edit(fact_id=await memory.fact_id(WORKS), text="Ana works at Initech"),)))
    await memory.order(DeleteAll(key="employer"))
    assert (await memory.resolver.statuses())[WORKS] == "superseded"


async def split_off(memory: SummaryHarness) -> None:
    split = SplitEntity(entity_id=await memory.entity_id(), name="Ann", fact_ids=(await memory.fact_id(WORKS),))
    assert (await memory.order(split)).outcome == "done"


@pytest.mark.parametrize("take_back", [deleted, corrected, undone, deleted_after_a_change, split_off])
async def test_a_fact_that_is_taken_back_does_not_live_on_in_a_summary(
    memory: SummaryHarness, take_back: Callable[[SummaryHarness], Awaitable[None]]
) -> None:
    await told(memory)
    memory.replies = [summary_reply(("Ana lives in Lisbon and works at Acme.", (1, 2)))]
    await memory.summarise()
    assert await memory.shown() is not None
    await take_back(memory)
    assert await memory.shown() is None
    rows = await memory.stored.rows("SELECT summary, summary_version, summary_stale FROM memory.entities")
    assert set(rows) <= {(None, None, None)}
    assert await memory.is_rebuilt_equal()


async def test_a_summary_is_undone_by_its_source_or_by_its_model(memory: SummaryHarness) -> None:
    await told(memory)
    first = await memory.summarise()
    undo = await memory.order(Undo(source_id=first.source_id))
    assert undo.outcome == "done"
    assert await memory.shown() is None
    await memory.order(Undo(source_id=undo.source_id))
    shown = await memory.shown()
    assert shown is not None
    assert shown.changed == 0
    by_prompt = Undo(prompt_version="summarise-1", since=first.decided_at, until=first.decided_at.replace(year=2099))
    assert (await memory.order(by_prompt)).outcome == "done"
    assert await memory.shown() is None
    assert (await memory.order(by_prompt)).reason == "nothing_to_undo"
    assert await memory.is_rebuilt_equal()


async def test_sql_users_see_the_summary_until_the_entity_is_forgotten(memory: SummaryHarness) -> None:
    await told(memory)
    await memory.say("Ana lives in Oslo", scope=BEN)
    await memory.summarise()
    assert (await memory.details("Ana", BEN)).summary is None
    await memory.say("Ana has a dog")
    query = (
        "SELECT summary LIKE '%Acme%', summary_version, summary_stale FROM memory.entities WHERE summary IS NOT NULL"
    )
    assert await memory.stored.rows(query) == [(True, 1, True)]
    await memory.order(ForgetEntity(entity_id=await memory.entity_id()))
    assert await memory.stored.rows(query) == []
    assert await memory.stored.rows("SELECT s.summary FROM entities e, summary_of_entity(e.entity_id) s") == []


async def test_a_context_has_summaries_only_where_they_are_asked_for(memory: SummaryHarness) -> None:
    await told(memory)
    await memory.summarise()
    await memory.say("Ana has a dog")
    plain = await memory.client.context("Where does Ana live?", user_id="alice", threshold=0)
    assert plain.summaries == ()
    assert "Summaries" not in plain.text
    shown = await memory.client.context("Where does Ana live?", user_id="alice", threshold=0, summaries=True)
    (about,) = shown.summaries
    assert (about.name, about.version, about.changed) == ("Ana", 1, 1)
    assert shown.text.endswith(f"### Summaries\n\n- [may be out of date] Ana: {about.summary}")
    assert about.summary in shown.recalled
    assert shown.facts == plain.facts
    tight = await memory.client.context(
        "Where does Ana live?", user_id="alice", threshold=0, summaries=True, budget_tokens=shown.tokens - 1
    )
    assert (tight.summaries, tight.text) == ((), plain.text)
    assert [(one.summary.name, one.reason) for one in tight.left_out_summaries] == [("Ana", "budget")]


async def test_a_context_without_doubtful_facts_has_no_summary_of_one(memory: SummaryHarness) -> None:
    async def context(*, doubtful: bool, min_confidence: float = 0.5) -> Context:
        return await memory.client.context(
            "Where does Ana live?",
            user_id="alice",
            threshold=0,
            summaries=True,
            doubtful=doubtful,
            min_confidence=min_confidence,
        )

    await told(memory)
    await memory.summarise()
    certain = await context(doubtful=False)
    assert (len(certain.summaries), certain.left_out_summaries) == (1, ())
    without = await context(doubtful=False, min_confidence=0.96)
    assert (without.text, without.facts, without.summaries) == ("", (), ())
    (left_out,) = without.left_out_summaries
    assert (left_out.reason, left_out.summary) == ("doubtful", certain.summaries[0])
    with_doubtful = await context(doubtful=True, min_confidence=0.96)
    assert with_doubtful.summaries == certain.summaries


# Names that only a deleted fact told

MARRIED = "Ana Goldmann has married"


async def married(memory: SummaryHarness) -> None:
    await memory.say(LIVES)
    named = (NamedEntity(name="Ana Goldmann", type="person", role="subject"),)
    fact = extracted_fact(MARRIED, subject="Ana Goldmann", entities=named)
    await memory.resolver.resolve_turn(fact, at=day(20))
    assert "Ana Goldmann" in (await memory.details()).entity.aliases


async def test_a_summary_goes_with_the_fact_that_told_a_name_in_it(memory: SummaryHarness) -> None:
    await married(memory)
    memory.replies = [summary_reply(("Ana Goldmann lives in Lisbon.", (1, 2)))]
    await memory.summarise()
    assert (memory.tasks[0].name, memory.tasks[0].aliases) == ("Ana", ("Ana Goldmann",))
    assert await memory.shown() is not None
    await memory.order(Delete(fact_ids=(await memory.fact_id(MARRIED),)))
    assert await memory.shown() is None
    memory.replies = [summary_reply(("Ana Goldmann lives in Lisbon.", (1,)))] * 2
    commit = await memory.summarise()
    assert memory.tasks[1].aliases == ()
    assert (commit.outcome, commit.reason) == ("rejected", "no_valid_reply")
    assert await memory.shown() is None


async def test_an_entity_is_called_by_a_name_that_its_facts_have(memory: SummaryHarness) -> None:
    named = (NamedEntity(name="Ana Goldmann", type="person", role="subject"),)
    fact = extracted_fact(MARRIED, subject="Ana Goldmann", entities=named)
    await memory.resolver.resolve_turn(fact, at=day(1))
    await memory.say("x", LIVES)
    await memory.order(Delete(fact_ids=(await memory.fact_id(MARRIED),)))
    await memory.summarise()
    assert (memory.tasks[0].name, memory.tasks[0].aliases) == ("Ana", ())
    await memory.say("Robert lives in Lisbon", name="Robert")
    await memory.say("Paints at night", name="Rob")
    await memory.summarise("Robert")  # whose other name is only within a longer word of his facts
    assert (memory.tasks[1].name, memory.tasks[1].aliases) == ("Robert", ())
