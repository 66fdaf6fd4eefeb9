"""An overwrite that was held back ends only the facts that it was shown, and only as they were shown."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.pending import pending, unresolved
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Confirm, Delete, Expire, MergeEntities
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactPending, FactReplaced, PendingConfirmed, PendingRejected
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.named_people import named_people
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

ME = ScopeFilter(user_id="alice")
NUTS, PEANUTS = "Mira is allergic to nuts.", "Perhaps Mira is allergic to peanuts."
BOTH, SHELLFISH = "Mira is allergic to nuts, and perhaps to peanuts.", "Mira is allergic to shellfish."
RICHER = "Mira is allergic to nuts and shellfish."
ACME, GLOBEX, INITECH = "Mira works at Acme.", "Mira works at Globex.", "Mira works at Initech."


def allergy(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, **{"key": "allergy", "subject": "Mira", "category": "health", **fields})


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


async def held_merge(resolver: ResolverHarness) -> UUID:
    """A merge of nuts and peanuts that is held back; since then the nuts were merged with shellfish."""
    statement = allergy(PEANUTS, certainty="weak")
    pending_id = await held(resolver, allergy(NUTS), statement, TextVerdict("MERGE", (NUTS,), BOTH))
    resolver.chat_model.set_replies(verdicts_by_text({SHELLFISH: TextVerdict("MERGE", (NUTS,), RICHER)}))
    assert kinds(await resolver.resolve_turn(allergy(SHELLFISH), at=day(2))) == ["facts_merged"]
    return pending_id


async def held_denial(resolver: ResolverHarness) -> UUID:
    """Globex instead of Acme, which never was: held back."""
    return await held(resolver, job(ACME), job(GLOBEX, certainty="strong"), TextVerdict("CONTRADICT", (ACME,)))


async def test_confirming_a_held_merge_keeps_what_its_target_has_become(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    pending_id = await held_merge(resolver)
    (listed,) = await pending(resolver.stored.conn, ME, day(3))
    assert (listed.challenged, [one.text for one in listed.beside]) == ((), [RICHER])
    (event,) = (await commands.execute("c1", Confirm(fact_ids=(pending_id,)), at=day(3))).events
    assert isinstance(event, PendingConfirmed)
    assert (event.targets, event.unresolved) == ((), True)
    assert await resolver.active_texts() == [RICHER, BOTH]
    (conflict,) = await unresolved(resolver.stored.conn, ME, day(4))
    assert (conflict.fact.text, [one.text for one in conflict.beside]) == (BOTH, [RICHER])


async def test_equal_words_later_meet_what_is_active_by_then(resolver: ResolverHarness) -> None:
    await held_denial(resolver)
    resolver.chat_model.set_replies(verdicts_by_text({INITECH: TextVerdict("REPLACE", (ACME,))}))
    await resolver.resolve_turn(job(INITECH, action_hint="update"), at=day(10))
    resolver.chat_model.set_replies(verdicts_by_text({GLOBEX: TextVerdict("REPLACE", (INITECH,))}))
    (event,) = (await resolver.resolve_turn(job(GLOBEX), at=day(20))).events
    assert isinstance(event, FactReplaced)
    assert await resolver.active_texts() == [GLOBEX]


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


async def test_a_repetition_of_what_the_target_became_rejects_the_challenge(resolver: ResolverHarness) -> None:
    berlin, denial = "Mira lives in Berlin.", "Mira never lived in Berlin."
    sister, richer = "Mira lives with her sister.", "Mira lives in Berlin with her sister."
    home = {"key": "home_city", "subject": "Mira", "single_valued": True}
    old, against = extracted_fact(berlin, **home), extracted_fact(denial, certainty="weak", **home)
    await held(resolver, old, against, TextVerdict("CONTRADICT", (berlin,)))
    resolver.chat_model.set_replies(verdicts_by_text({sister: TextVerdict("MERGE", (berlin,), richer)}))
    assert kinds(await resolver.resolve_turn(extracted_fact(sister), at=day(2))) == ["facts_merged"]
    (event,) = (await resolver.resolve_turn(extracted_fact(richer, **home), at=day(3))).events
    assert isinstance(event, PendingRejected)
    assert event.statement is not None
    assert await resolver.active_texts() == [richer]
    assert (await resolver.statuses())[denial] == "archived"


@pytest.mark.parametrize(("at", "status"), [(0.5, "pending_confirmation"), (2, "superseded")])
async def test_an_older_statement_does_not_replace_a_newer_pending_one(
    resolver: ResolverHarness, at: float, status: str
) -> None:
    await held_denial(resolver)
    resolver.chat_model.set_replies(verdicts_by_text({INITECH: TextVerdict("REPLACE", (GLOBEX,))}))
    await resolver.resolve_turn(job(INITECH), at=day(at))
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
