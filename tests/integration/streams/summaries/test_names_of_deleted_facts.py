"""Names that only a deleted fact told are in no summary."""

import pytest

from mnemolog.schemas.command import Delete
from mnemolog.schemas.entities import NamedEntity
from tests.support.builders.commits import day
from tests.support.builders.model_replies import summary_reply
from tests.support.harnesses.resolver_harness import extracted_fact
from tests.support.harnesses.summary_harness import SummaryHarness

pytestmark = pytest.mark.postgres
LIVES, MARRIED = "Ana lives in Lisbon", "Ana Goldmann has married"


async def told(memory: SummaryHarness) -> None:
    await memory.say(LIVES)
    named = (NamedEntity(name="Ana Goldmann", type="person", role="subject"),)
    fact = extracted_fact(MARRIED, subject="Ana Goldmann", entities=named)
    await memory.resolver.resolve_turn(fact, at=day(20))
    assert "Ana Goldmann" in (await memory.details()).entity.aliases


async def test_the_model_is_not_told_a_name_of_a_deleted_fact(memory: SummaryHarness) -> None:
    await told(memory)
    await memory.order(Delete(fact_ids=(await memory.fact_id(MARRIED),)))
    memory.replies = [summary_reply(("Ana Goldmann lives in Lisbon.", (1,)))] * 2
    commit = await memory.summarise()
    assert memory.tasks[0].aliases == ()
    assert (commit.outcome, commit.reason) == ("rejected", "no_valid_reply")
    assert await memory.shown() is None


async def test_a_summary_is_hidden_with_the_fact_that_told_a_name_in_it(memory: SummaryHarness) -> None:
    await told(memory)
    memory.replies = [summary_reply(("Ana Goldmann lives in Lisbon.", (1, 2)))]
    await memory.summarise()
    assert (memory.tasks[0].name, memory.tasks[0].aliases) == ("Ana", ("Ana Goldmann",))
    assert await memory.shown() is not None
    await memory.order(Delete(fact_ids=(await memory.fact_id(MARRIED),)))
    assert await memory.shown() is None


async def test_an_entity_is_called_by_a_name_that_its_facts_have(memory: SummaryHarness) -> None:
    named = (NamedEntity(name="Ana Goldmann", type="person", role="subject"),)
    fact = extracted_fact(MARRIED, subject="Ana Goldmann", entities=named)
    await memory.resolver.resolve_turn(fact, at=day(1))
    await memory.say("x", LIVES)
    await memory.order(Delete(fact_ids=(await memory.fact_id(MARRIED),)))
    await memory.summarise()
    assert (memory.tasks[0].name, memory.tasks[0].aliases) == ("Ana", ())


async def test_a_name_within_a_longer_word_is_no_name_that_facts_have(memory: SummaryHarness) -> None:
    await memory.say("Robert lives in Lisbon", name="Robert")
    await memory.say("Paints at night", name="Rob")
    await memory.summarise("Robert")
    assert (memory.tasks[0].name, memory.tasks[0].aliases) == ("Robert", ())
