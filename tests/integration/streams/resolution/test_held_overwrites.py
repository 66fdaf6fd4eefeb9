"""An overwrite that was held back ends only the facts that it was shown, and only as they were shown."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import Confirm, Delete, Expire, MergeEntities
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactPending
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.named_people import named_people
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

ACME, GLOBEX = "Mira works at Acme.", "Mira works at Globex."


def job(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, **{"key": "employer", "subject": "Mira", "single_valued": True, **fields})


def kinds(commit: Commit) -> list[str]:
    return [event.event for event in commit.events]


async def held(resolver: ResolverHarness, old: ExtractedFact, new: ExtractedFact, verdict: TextVerdict) -> UUID:
    """A known fact, and a statement against it that is held back."""
    await resolver.resolve_turn(old, at=day(0))
    resolver.chat_model.set_replies(verdicts_by_text({new.text: verdict}))
    (event,) = (await resolver.resolve_turn(new, at=day(1))).events
    assert isinstance(event, FactPending)
    return event.fact.fact_id


@pytest.mark.parametrize(
    ("command", "expected", "status"),
    [
        pytest.param(Delete, ["fact_retracted", "pending_confirmed"], "active", id="deleted: nothing opposes it"),
        pytest.param(Expire, ["fact_expired", "pending_rejected"], "archived", id="expired"),
    ],
)
async def test_a_command_and_the_timer_settle_it_too(
    resolver: ResolverHarness,
    commands: CommandHarness,
    command: type[Delete | Expire],
    expected: list[str],
    status: str,
) -> None:
    old, denial = job(ACME, valid_until=day(5)), job(GLOBEX, certainty="strong")
    await held(resolver, old, denial, TextVerdict("CONTRADICT", (ACME,)))
    ((acme,),) = await resolver.stored.rows("SELECT fact_id FROM facts WHERE status = 'active'")
    commit = await commands.execute("c1", command(fact_ids=(acme,)), at=day(6))
    assert kinds(commit) == expected
    assert commit.events[1].decision.by == "rule"
    assert (await resolver.statuses())[GLOBEX] == status


@pytest.mark.parametrize("confirmed_by", ["a person", "another turn"])
@pytest.mark.parametrize("verdict", ["REPLACE", "RETRACT", "CONTRADICT"])
async def test_confirmed_after_a_split_it_ends_no_fact_of_the_other(
    database: str, verdict: str, confirmed_by: str
) -> None:
    """Annie was merged into Ana, and the home of Annie was to end by a move of Ana; then the merge was undone."""

    def home_of(name: str, city: str) -> dict[str, Any]:
        named = [{"name": name, "type": "person", "role": "subject"}]
        return {"key": "home_city", "single_valued": True, "value": city, "subject": name, "entities": named}

    def all_shown(conflict: NumberedConflict) -> Mapping[str, Any]:
        return decision_json(conflict.number, verdict, *(label for label, _ in conflict.candidates))

    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        await people.say("Annie lives in Bern", category="identity", **home_of("Annie", "Bern"))
        await people.say("Ana lives in Basel", category="identity", **home_of("Ana", "Basel"))
        ids = {one.name: one.entity_id for one in await client.entities.list(user_id="alice")}
        merge = await people.order(MergeEntities(entity_ids=(ids["Annie"],), into=ids["Ana"]))
        people.model.judge = all_shown
        moved = home_of("Ana", "Chur") | {"certainty": "weak", "action_hint": "update"}
        event, *_ = (await people.say("Ana lives in Chur", **moved)).events
        assert isinstance(event, FactPending)
        assert len(event.targets) == 2
        assert (await people.undo(merge)).outcome == "done"
        if confirmed_by == "a person":
            commit = await people.order(Confirm(fact_ids=(event.fact.fact_id,)))
        else:
            commit = await people.say("Ana lives in Chur", **moved)
        assert kinds(commit) == ["pending_confirmed"]
        rows = await people.rows("SELECT text, unresolved FROM facts WHERE status = 'active' ORDER BY text")
        assert rows == [("Ana lives in Chur", False), ("Annie lives in Bern", False)]
        assert await people.is_rebuilt_equal()
