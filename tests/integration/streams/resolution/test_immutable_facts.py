"""What an immutable turn has stated, no other statement ends, merges or changes."""

import pytest

from mnemolog.schemas.command import Correct, Edit, Update
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


@pytest.mark.parametrize("kind", VERDICTS)
async def test_a_statement_that_would_change_it_is_held_back(resolver: ResolverHarness, kind: str) -> None:
    await resolver.resolve_turn(home(BERLIN), at=day(0), immutable=True)
    assert await tell_change(resolver, NEWS, BERLIN, kind) == ["fact_pending", "human_word"]
    assert (await resolver.statuses())[BERLIN] == "active"


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
