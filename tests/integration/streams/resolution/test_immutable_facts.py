"""What an immutable turn has stated, no other statement ends, merges or changes."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mnemolog.schemas.command import Confirm, Correct, Delete, Edit, Update
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactAdded
from tests.support.builders.commits import day
from tests.support.builders.verdicts import judge_by_text, verdict
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact

pytestmark = pytest.mark.postgres

BERLIN, NEWS = "Mira lives in Berlin.", "Mira lives in Munich."
VERDICTS = ("REPLACE", "CONTRADICT", "MERGE")


@pytest_asyncio.fixture
async def resolver(db: ProjectedDatabase) -> AsyncIterator[ResolverHarness]:
    harness = ResolverHarness(db)
    yield harness
    await harness.close()


async def tell_both(resolver: ResolverHarness, kind: str, *, immutable: bool) -> Commit:
    slot = {"key": "home_city", "subject": "Mira", "single_valued": True}
    await resolver.resolve_turn(extracted_fact(BERLIN, **slot), at=day(0), immutable=immutable)
    text = {"text": "Mira lives in Berlin and Munich."} if kind == "MERGE" else {}
    resolver.chat_model.set_replies(judge_by_text({NEWS: verdict(kind, BERLIN, **text)}))
    return await resolver.resolve_turn(extracted_fact(NEWS, **slot, action_hint="update"), at=day(5))


@pytest.mark.parametrize("kind", VERDICTS)
async def test_a_statement_that_would_change_it_is_held_back(resolver: ResolverHarness, kind: str) -> None:
    held = await tell_both(resolver, kind, immutable=True)
    (event,) = held.events
    assert (event.event, event.decision.guard) == ("fact_pending", "human_word")
    assert (await resolver.statuses())[BERLIN] == "active"


@pytest.mark.parametrize("kind", ["REPLACE", "MERGE"])
async def test_without_the_mark_it_is_changed(resolver: ResolverHarness, kind: str) -> None:
    done = await tell_both(resolver, kind, immutable=False)
    assert [event.decision.guard for event in done.events] == [None]
    assert (await resolver.statuses())[BERLIN] != "active"


async def test_a_human_changes_it_by_command_and_an_application_does_not(
    resolver: ResolverHarness, db: ProjectedDatabase
) -> None:
    told = await resolver.resolve_turn(extracted_fact(BERLIN), at=day(0), immutable=True)
    fact = told.events[0].new_fact
    assert fact is not None
    commands = CommandHarness(db)
    edit = Edit(fact_id=fact.fact_id, text="Mira lives in Bonn.")
    refused = await commands.execute("c1", Update(edits=(edit,)), at=day(1))
    assert (refused.outcome, refused.reason) == ("rejected", "human_word")
    assert (await commands.execute("c2", Correct(edit=edit), at=day(2))).outcome == "done"
    assert await resolver.statuses() == {BERLIN: "superseded", "Mira lives in Bonn.": "active"}


async def test_it_can_be_deleted(resolver: ResolverHarness, db: ProjectedDatabase) -> None:
    told = await resolver.resolve_turn(extracted_fact(BERLIN), at=day(0), immutable=True)
    fact = told.events[0].new_fact
    assert fact is not None
    await CommandHarness(db).execute("c1", Delete(fact_ids=(fact.fact_id,)), at=day(1))
    assert await resolver.statuses() == {BERLIN: "retracted"}


ULM = "Mira lives in Ulm."
SLOT = {"key": "home_city", "subject": "Mira", "single_valued": True}


async def hold_back(resolver: ResolverHarness, *, immutable: bool) -> None:
    """A statement waits for a confirmation because what it would end is immutable."""
    await resolver.resolve_turn(extracted_fact(BERLIN, **SLOT), at=day(0), immutable=True)
    resolver.chat_model.set_replies(judge_by_text({NEWS: verdict("REPLACE", BERLIN)}))
    await resolver.resolve_turn(extracted_fact(NEWS, **SLOT, action_hint="update"), at=day(5), immutable=immutable)
    assert await resolver.statuses() == {BERLIN: "active", NEWS: "pending_confirmation"}


@pytest.mark.parametrize("kind", VERDICTS)
async def test_one_that_waits_for_a_confirmation_is_not_changed_either(resolver: ResolverHarness, kind: str) -> None:
    await hold_back(resolver, immutable=True)
    text = {"text": "Mira lives in Munich and Ulm."} if kind == "MERGE" else {}
    resolver.chat_model.set_replies(judge_by_text({ULM: verdict(kind, NEWS, **text)}))
    (event,) = (await resolver.resolve_turn(extracted_fact(ULM, **SLOT, action_hint="update"), at=day(9))).events
    assert (event.event, event.decision.guard) == ("fact_pending", "human_word")
    assert (await resolver.statuses())[NEWS] == "pending_confirmation"


async def test_one_that_waits_without_the_mark_is_replaced(resolver: ResolverHarness) -> None:
    await hold_back(resolver, immutable=False)
    resolver.chat_model.set_replies(judge_by_text({ULM: verdict("REPLACE", NEWS)}))
    await resolver.resolve_turn(extracted_fact(ULM, **SLOT, action_hint="update"), at=day(9))
    assert (await resolver.statuses())[NEWS] == "superseded"


async def test_a_human_lets_a_change_of_one_that_waits_through(
    resolver: ResolverHarness, db: ProjectedDatabase
) -> None:
    await hold_back(resolver, immutable=True)
    resolver.chat_model.set_replies(judge_by_text({ULM: verdict("REPLACE", NEWS)}))
    (held,) = (await resolver.resolve_turn(extracted_fact(ULM, **SLOT, action_hint="update"), at=day(9))).events
    assert held.new_fact is not None
    done = await CommandHarness(db).execute("c1", Confirm(fact_ids=(held.new_fact.fact_id,)), at=day(10))
    assert done.outcome == "done"
    assert (await resolver.statuses())[NEWS] == "superseded"


@pytest.mark.parametrize("immutable", [True, False])
async def test_one_that_waits_is_not_rejected_by_a_repetition_of_what_it_would_end(
    resolver: ResolverHarness, immutable: bool
) -> None:
    await hold_back(resolver, immutable=immutable)
    await resolver.resolve_turn(extracted_fact(BERLIN, **SLOT), at=day(9))
    assert (await resolver.statuses())[NEWS] == ("pending_confirmation" if immutable else "archived")


@pytest.mark.parametrize(("immutable", "status"), [(True, "active"), (False, "superseded")])
async def test_an_end_that_was_told_before_it_does_not_end_it(
    resolver: ResolverHarness, immutable: bool, status: str
) -> None:
    left = extracted_fact("Mira has left Berlin.", **SLOT, action_hint="retract")
    await resolver.resolve_turn(left, at=day(5))
    resolver.chat_model.set_replies(judge_by_text({left.text: verdict("RETRACT", BERLIN)}))
    late = await resolver.resolve_turn(extracted_fact(BERLIN, **SLOT), at=day(0), immutable=immutable)
    (added,) = late.events
    assert isinstance(added, FactAdded)
    assert (added.unresolved, (await resolver.statuses())[BERLIN]) == (immutable, status)
