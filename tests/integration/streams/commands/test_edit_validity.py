"""The end of a fact that is edited, and texts that are not valid."""

from datetime import datetime
from uuid import UUID

import pytest

from mnemolog.schemas.admission import Refusal, parse_command
from mnemolog.schemas.command import CommandPayload, Correct, Edit, Resolve, Update
from tests.support.builders.commits import ALICE, added, commit, day, expired, fact_id_at
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

KNOWN = commit("t1", added("Alice has a lease."), added("Alice has a pass.", valid_until=day(9)))
ANNOUNCED = commit("t2", expired(fact_id_at(KNOWN), ended_at=day(9), text="The lease ends."), at=day(1))
LEASE, PASS = fact_id_at(KNOWN), fact_id_at(KNOWN, 1)


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, ANNOUNCED)
    return CommandHarness(db)


async def valid_until_after(harness: CommandHarness, order: CommandPayload, at: datetime) -> datetime | None:
    """When the fact that the order brings will end."""
    fact_id = fact_id_at(await harness.execute("c1", order, at=at))
    return (await harness.known.facts([fact_id]))[fact_id].ends_at


def edit(fact_id: UUID) -> Edit:
    return Edit(fact_id=fact_id, text="In other words.")


@pytest.mark.parametrize("fact_id", [LEASE, PASS])
async def test_an_edited_text_keeps_the_end_of_the_old_one(harness: CommandHarness, fact_id: UUID) -> None:
    assert await valid_until_after(harness, Update(edits=(edit(fact_id),)), day(2)) == day(9)


@pytest.mark.parametrize("fact_id", [LEASE, PASS])
async def test_a_correction_ends_when_the_old_one_would_have(harness: CommandHarness, fact_id: UUID) -> None:
    assert await valid_until_after(harness, Correct(edit=edit(fact_id)), day(2)) == day(9)


@pytest.mark.parametrize("fact_id", [LEASE, PASS])
async def test_what_follows_an_end_is_not_ended_by_it(harness: CommandHarness, fact_id: UUID) -> None:
    assert await valid_until_after(harness, Correct(edit=edit(fact_id), ended_at=day(9)), day(2)) is None


async def test_what_is_said_after_a_term_has_none(harness: CommandHarness) -> None:
    assert await valid_until_after(harness, Update(edits=(edit(PASS),)), day(12)) is None


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_blank_text_is_refused(text: str) -> None:
    edit = b'{"fact_id": "%s", "text": %s}' % (str(PASS).encode(), repr(text).replace("'", '"').encode())
    command = b'{"command_id": "c1", "scope": %s, "issued_at": "2026-01-01T00:00:00Z", "order": %s}'
    order = b'{"kind": "update", "edits": [%s]}' % edit
    refusal = parse_command(command % (ALICE.model_dump_json().encode(), order), position="")
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "invalid_command"


@pytest.mark.parametrize("lasting_is_target", [False, True])
async def test_what_holds_for_ever_and_what_ends_are_not_merged_by_hand(
    harness: CommandHarness, lasting_is_target: bool
) -> None:
    """One of both would vanish with the term of the other, or outlive its own."""
    ends = commit("t3", added("Alice is in Rome.", valid_until=day(7), unresolved=True))
    lasts = commit("t4", added("Alice lives in Rome.", unresolved=True), at=day(0.1))
    await harness.stored.apply(ends, lasts)
    one, two = (fact_id_at(ends), fact_id_at(lasts))[:: 1 if lasting_is_target else -1]
    order = Resolve(fact_id=one, targets=(two,), action="merge", text="Alice is and lives in Rome.")
    refused = await harness.execute("c1", order, at=day(1))
    assert (refused.outcome, refused.reason) == ("rejected", "invalid_command")
    assert "they hold until different times" in refused.detail
    assert await harness.statuses(one, two) == ["active", "active"]
