"""Facts of one entity and key meet, whatever name was used and however many other facts the key has."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio

from mnemolog.projections.stores.facts import CandidateFinder
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: Final[dict[str, Any]] = {"key": "home_city", "single_valued": True, "category": "other"}
OTHERS: Final = ("Ben", "Carl", "Dora", "Emil", "Fritz", "Gina")
RUN: Final = Scope(user_id="alice", run_id="r")


def replace(conflict: NumberedConflict) -> Mapping[str, Any]:
    return decision_json(conflict.number, "REPLACE", *(label for label, _ in conflict.candidates))


@pytest_asyncio.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, replace) as opened:
        yield opened


async def lives(people: NamedPeople, who: str, city: str, scope: Scope = ALICE) -> None:
    subject = [{"name": who, "type": "person", "role": "subject"}]
    await people.say(f"{who} lives in {city}", subject=who, value=city, entities=subject, scope=scope, **HOME)


async def tell_name(people: NamedPeople, scope: Scope = ALICE) -> None:
    named = [{"name": "Alice's wife Ana", "type": "person", "role": "subject"}]
    await people.say("Alice's wife Ana sings", subject="Alice's wife Ana", entities=named, scope=scope)


async def active(people: NamedPeople, scope: Scope = ALICE) -> list[str]:
    query = "SELECT text FROM facts WHERE status = 'active' AND run_id = %s ORDER BY recorded_at, ordinal"
    return [text for (text,) in await people.rows(query, scope.run_id or "")]


async def test_a_fact_of_the_entity_by_another_name_is_ended_among_many_of_its_key(people: NamedPeople) -> None:
    await lives(people, "Alice's wife", "Bern")
    await tell_name(people)
    for name in OTHERS:
        await lives(people, name, "Ulm")
    await lives(people, "Ana", "Rome")
    said = await active(people)
    assert "Alice's wife lives in Bern" not in said
    assert {f"{name} lives in Ulm" for name in OTHERS} <= {*said}
    assert "Ana lives in Rome" in said


async def test_what_is_told_of_her_in_another_scope_stays(people: NamedPeople) -> None:
    for scope in (ALICE, RUN):
        await lives(people, "Alice's wife", "Bern", scope)
        await tell_name(people, scope)
    for name in OTHERS:
        await lives(people, name, "Ulm")
    await lives(people, "Ana", "Rome")
    assert "Alice's wife lives in Bern" in await active(people, RUN)
    assert "Alice's wife lives in Bern" not in await active(people)


@pytest.mark.parametrize(("others", "asked"), [(OTHERS, 1), (OTHERS[:3], 0)])
async def test_nothing_is_looked_up_where_all_facts_of_the_key_are_candidates(
    people: NamedPeople, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...], asked: int
) -> None:
    looked_up: list[int] = []
    found = CandidateFinder.facts_of_entities

    async def facts_of_entities(finder: CandidateFinder, scope: Scope, requests: Any, **times: Any) -> Any:
        looked_up.append(len(requests))
        return await found(finder, scope, requests, **times)

    monkeypatch.setattr(CandidateFinder, "facts_of_entities", facts_of_entities)
    await tell_name(people)
    for name in others:
        await lives(people, name, "Ulm")
    await lives(people, "Ana", "Rome")
    await lives(people, "Hanna", "Rome")  # nobody is known by this name
    await lives(people, "Ben", "Rome")  # has one name
    assert looked_up == [1] * asked
