"""Commands that change the status of facts, and the policy: pure functions, without tables."""

from dataclasses import replace
from uuid import uuid4

import pytest

from mnemolog.schemas.command import Confirm, Delete, Expire, Reject, SetPolicy, tenant_scope
from mnemolog.schemas.events import FactExpired, FactRetracted, PendingConfirmed
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.stored import PendingCase
from mnemolog.streams.commands import status_changes
from mnemolog.streams.commands.context import CommandRefusedError
from tests.support.builders.commits import BOB, day
from tests.support.builders.stored_facts import CONTEXT, by_id, stored_fact


def test_a_refusal_lists_all_that_stands_in_the_way_and_tells_no_foreign_text() -> None:
    closed, foreign, fine = stored_fact(status="archived"), stored_fact("A secret.", scope=BOB), stored_fact()
    nobody = uuid4()
    order = Delete(fact_ids=(closed.fact_id, foreign.fact_id, nobody, fine.fact_id))
    with pytest.raises(CommandRefusedError) as error:
        status_changes.delete(CONTEXT, order, by_id(closed, foreign, fine))
    detail = error.value.detail
    assert error.value.reason == "foreign_fact"
    assert f"{closed.fact_id} is archived: see its history for the fact in its place" in detail
    assert f"{nobody} is not known: check the id" in detail
    assert f"{foreign.fact_id} belongs to another scope: send the command in the scope" in detail
    assert str(fine.fact_id) not in detail
    assert "secret" not in detail
    with pytest.raises(CommandRefusedError, match="closed_fact"):
        status_changes.confirm(CONTEXT, Confirm(fact_ids=(fine.fact_id, closed.fact_id)), by_id(closed, fine), {})


def test_deleted_facts_have_an_event_each_and_many_share_events() -> None:
    one, other = stored_fact(), stored_fact(status="pending_confirmation")
    order = Delete(fact_ids=(one.fact_id, other.fact_id, one.fact_id))
    made = status_changes.delete(CONTEXT, order, by_id(one, other))
    assert [event.targets for event in made if isinstance(event, FactRetracted)] == [(one.fact_id,), (other.fact_id,)]
    assert made[0].decision.before[0].text == "Alice lives in Bern."
    many = status_changes.delete_all(CONTEXT, [uuid4() for _ in range(250)], {})
    assert [len(event.targets) for event in many if isinstance(event, FactRetracted)] == [100, 100, 50]
    assert [event.ordinal for event in many] == [0, 1, 2]
    assert status_changes.delete_all(CONTEXT, [], {}) == ()


CHAINS = {
    "a newer version": ([("superseded", True)], "01"),
    "the end of it": ([("retracted", True)], "01"),
    "an announcement that has come": ([("expired", True)], "01"),
    "three versions": ([("superseded", True), ("superseded", True)], "012"),
    "a correction": ([("archived", False)], "1"),
    "what it was merged into, and a later version": ([("superseded", False), ("superseded", True)], "12"),
}
"""The statuses of former versions, whether each is still believed, and the places of the versions that are deleted."""


@pytest.mark.parametrize(("former", "deleted"), CHAINS.values(), ids=CHAINS)
def test_a_former_version_is_deleted_with_each_that_took_its_place(
    former: list[tuple[FactStatus, bool]], deleted: str
) -> None:
    versions = [stored_fact()]
    for status, is_believed in reversed(former):
        believed_to = None if is_believed else day(3)
        next_id = versions[0].fact_id
        versions.insert(0, stored_fact(status=status, believed_to=believed_to, superseded_by=next_id))
    order = Delete(fact_ids=(versions[0].fact_id, versions[-1].fact_id))
    (event,) = status_changes.delete(CONTEXT, order, by_id(*versions))
    assert event.affected_ids == tuple(versions[int(place)].fact_id for place in reversed(deleted))
    assert [one.fact_id for one in event.decision.before] == list(event.affected_ids)


def test_a_confirmed_fact_ends_what_is_still_open_of_what_it_challenged() -> None:
    one, closed, waiting = stored_fact(), stored_fact(status="retracted"), stored_fact(status="pending_confirmation")
    other = stored_fact()
    case = PendingCase(
        fact_id=waiting.fact_id,
        targets=(one.fact_id, closed.fact_id),
        action="replace",
        ended_at=day(2),
        needs_human=True,
        said_at=day(1),
    )
    order = Confirm(fact_ids=(waiting.fact_id, other.fact_id))
    facts = by_id(one, other, closed, waiting)
    pending, active = status_changes.confirm(CONTEXT, order, facts, {waiting.fact_id: case})
    assert isinstance(pending, PendingConfirmed)
    assert (pending.targets, pending.action, pending.ended_at) == ((one.fact_id,), "replace", day(2))
    assert active.event == "fact_confirmed"
    assert {pending.decision.by, active.decision.by} == {"person"}


def test_only_what_waits_can_be_rejected() -> None:
    one, waiting = stored_fact(), stored_fact(status="pending_confirmation")
    (event,) = status_changes.reject(CONTEXT, Reject(fact_ids=(waiting.fact_id,)), by_id(waiting))
    assert event.event == "pending_rejected"
    with pytest.raises(CommandRefusedError, match=f"not_pending: {one.fact_id} is active"):
        status_changes.reject(CONTEXT, Reject(fact_ids=(waiting.fact_id, one.fact_id)), by_id(one, waiting))


def test_only_what_has_ended_expires() -> None:
    due, later = stored_fact(valid_until=day(4), true_to=day(6)), stored_fact(valid_until=day(6))
    announced, lasting = stored_fact(true_to=day(3)), stored_fact()
    elsewhere, closed = stored_fact(valid_until=day(1), scope=BOB), stored_fact(valid_until=day(1), status="retracted")
    facts = by_id(due, later, announced, lasting, elsewhere, closed)
    made = status_changes.expire(CONTEXT, Expire(fact_ids=(*facts, uuid4())), facts)
    assert [(event.targets, event.ended_at, event.decision.by) for event in made if isinstance(event, FactExpired)] == [
        ((due.fact_id,), day(4), "timer"),
        ((announced.fact_id,), day(3), "timer"),
    ]


def test_a_tenants_policy_is_set_in_the_scope_of_its_agent() -> None:
    order = SetPolicy(level="tenant", policy=Policy(add_only=True))
    with pytest.raises(CommandRefusedError, match=r"invalid_command: .*mnemolog-policy"):
        status_changes.set_policy(CONTEXT, order)
    (event,) = status_changes.set_policy(replace(CONTEXT, scope=tenant_scope("default")), order)
    assert event.event == "policy_set"
