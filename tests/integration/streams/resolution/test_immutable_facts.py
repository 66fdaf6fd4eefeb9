"""What an immutable turn has stated, no other statement ends, merges or changes."""

import pytest

from mnemolog.schemas.command import Confirm, Correct, Delete, Edit, Update
from mnemolog.schemas.events import FactAdded
from tests.support.builders.commits import day, fact_id_at
from tests.support.builders.verdicts import judge_by_text, verdict
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.resolver_harness import ResolverHarness, home

pytestmark = pytest.mark.postgres

BERLIN, NEWS, ULM = "Mira lives in Berlin.", "Mira lives in Munich.", "Mira lives in Ulm."
VERDICTS = ("REPLACE", "CONTRADICT", "MERGE")


async def tell_change(resolver: ResolverHarness, news: str, known: str, kind: str, **fields: bool) -> list[object]:
    """What becomes of news of which the model says that they change a known fact: the event, and the guard."""
    text = {"text": f"{known[:-1]} and {news.rsplit(maxsplit=1)[-1]}"} if kind == "MERGE" else {}
    resolver.chat_model.set_replies(judge_by_text({news: verdict(kind, known, **text)}))
    at = day(5 if news == NEWS else 9)
    (event,) = (await resolver.resolve_turn(home(news, action_hint="update"), at=at, source_id=news, **fields)).events
    return [event.event, event.decision.guard]


async def tell_news(resolver: ResolverHarness, *, news: bool) -> None:
    """News that would change an immutable fact, and wait; they may be immutable themselves."""
    await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=True)
    assert await tell_change(resolver, NEWS, BERLIN, "REPLACE", immutable=news) == ["fact_pending", "human_word"]


@pytest.mark.parametrize("kind", VERDICTS)
async def test_a_statement_that_would_change_it_is_held_back(resolver: ResolverHarness, kind: str) -> None:
    await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=True)
    assert await tell_change(resolver, NEWS, BERLIN, kind) == ["fact_pending", "human_word"]
    assert (await resolver.statuses())[BERLIN] == "active"


@pytest.mark.parametrize("kind", VERDICTS)
async def test_one_that_waits_for_a_confirmation_is_not_changed_either(resolver: ResolverHarness, kind: str) -> None:
    await tell_news(resolver, news=True)
    assert await tell_change(resolver, ULM, NEWS, kind) == ["fact_pending", "human_word"]
    assert (await resolver.statuses())[NEWS] == "pending_confirmation"


async def test_without_the_mark_it_is_changed(resolver: ResolverHarness) -> None:
    await resolver.resolve_turn(home(BERLIN), at=day(0))
    assert await tell_change(resolver, NEWS, BERLIN, "REPLACE") == ["fact_replaced", None]
    assert await resolver.statuses() == {BERLIN: "superseded", NEWS: "active"}


async def test_what_takes_the_place_of_one_that_waits_without_the_mark_waits_too(resolver: ResolverHarness) -> None:
    await tell_news(resolver, news=False)
    resolver.chat_model.set_replies(judge_by_text({ULM: verdict("REPLACE", NEWS)}))
    rejected, held = (await resolver.resolve_turn(home(ULM, action_hint="update"), at=day(9))).events
    assert (rejected.event, held.event, held.decision.guard) == ("pending_rejected", "fact_pending", "human_word")
    assert await resolver.statuses() == {BERLIN: "active", NEWS: "archived", ULM: "pending_confirmation"}


async def test_a_human_changes_it_and_an_application_does_not(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    edit = Edit(
        fact_id=fact_id_at(await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=True)),
        text="Mira lives in Bonn.",
    )
    refused = await commands.execute("c1", Update(edits=(edit,)), at=day(1))
    assert (refused.outcome, refused.reason) == ("rejected", "human_word")
    assert (await commands.execute("c2", Correct(edit=edit), at=day(2))).outcome == "done"
    assert await resolver.statuses() == {BERLIN: "superseded", "Mira lives in Bonn.": "active"}


async def test_it_can_be_deleted(resolver: ResolverHarness, commands: CommandHarness) -> None:
    told = await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=True)
    await commands.execute("c1", Delete(fact_ids=(fact_id_at(told),)), at=day(1))
    assert await resolver.statuses() == {BERLIN: "retracted"}


async def test_a_human_lets_a_change_of_one_that_waits_pass(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    await tell_news(resolver, news=True)
    await tell_change(resolver, ULM, NEWS, "REPLACE")
    ((held,),) = await resolver.stored.rows(f"SELECT fact_id FROM facts WHERE text = '{ULM}'")  # noqa: S608 - no input
    assert (await commands.execute("c1", Confirm(fact_ids=(held,)), at=day(10))).outcome == "done"
    assert (await resolver.statuses())[NEWS] == "superseded"


@pytest.mark.parametrize("immutable", [True, False])
async def test_no_repetition_of_what_it_would_end_rejects_one_that_waits(
    resolver: ResolverHarness, immutable: bool
) -> None:
    await tell_news(resolver, news=immutable)
    await resolver.resolve_turn(home(BERLIN), at=day(9))
    assert (await resolver.statuses())[NEWS] == ("pending_confirmation" if immutable else "archived")


@pytest.mark.parametrize(("immutable", "status"), [(True, "active"), (False, "superseded")])
async def test_an_end_that_was_told_before_ends_it_not(resolver: ResolverHarness, immutable: bool, status: str) -> None:
    left = home("Mira has left Berlin.", action_hint="retract")
    await resolver.resolve_turn(left, at=day(5))
    resolver.chat_model.set_replies(judge_by_text({left.text: verdict("RETRACT", BERLIN)}))
    (added,) = (await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=immutable)).events
    assert isinstance(added, FactAdded)
    assert (added.unresolved, (await resolver.statuses())[BERLIN]) == (immutable, status)
