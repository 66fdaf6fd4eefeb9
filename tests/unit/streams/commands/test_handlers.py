"""What orders mean for facts, and what refuses them: pure functions, without tables."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.schemas.command import (
    Confirm,
    Correct,
    Delete,
    Edit,
    Expire,
    Reject,
    Resolve,
    SetPolicy,
    Update,
    tenant_scope,
)
from mnemolog.schemas.events import (
    ConflictResolved,
    FactCorrected,
    FactExpired,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    PendingConfirmed,
)
from mnemolog.schemas.facts import EmbeddedFact, ExtractedFact, FactState, FactStatus
from mnemolog.schemas.ids import event_id, fact_id
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import PendingCase, StoredFact
from mnemolog.streams.commands import edits, status_changes
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError
from tests.support.builders.commits import ALICE, BOB, day, pseudo_random_vector

CONTEXT = CommandContext(
    owner=ALICE.owner,
    source_id="c1",
    scope=ALICE,
    issued_at=day(5),
    now=day(5) + timedelta(seconds=3),
    actor=None,
)


def stored_fact(
    text: str = "Alice lives in Bern.", *, status: FactStatus = "active", scope: Scope = ALICE, **fields: Any
) -> StoredFact:
    state_fields = {
        "confidence": 0.8,
        "mention_count": 1,
        "unresolved": False,
        **dict.fromkeys(("last_confirmed_at", "true_to", "closed_at", "believed_to", "superseded_by")),
        "believed_from": day(0),
    }
    given = {name: fields.pop(name) for name in list(fields) if name in state_fields}
    own: dict[str, Any] = {"true_from": day(0), "authority": "extracted", "speaker": "Alice"}
    own |= {name: fields.pop(name) for name in own if name in fields}
    return StoredFact(
        fact_id=uuid4(),
        scope=scope,
        fact=ExtractedFact(**{"text": text, "excerpt": text, "search_text": text, "key": "home_city"} | fields),
        **own,
        state=FactState(**{**state_fields, "status": status, "true_from": own["true_from"], **given}),
    )


def known(*facts: StoredFact) -> dict[UUID, StoredFact]:
    return {fact.fact_id: fact for fact in facts}


def embedded_fact(*texts: str) -> list[EmbeddedFact]:
    return [
        EmbeddedFact(
            fact=ExtractedFact(text=text, excerpt=text, search_text=text), vector=pseudo_random_vector(text, 3)
        )
        for text in texts
    ]


def updates(*edits_: tuple[StoredFact, str]) -> tuple[Update, list[EmbeddedFact]]:
    order = Update(edits=tuple(Edit(fact_id=fact.fact_id, text=text) for fact, text in edits_))
    return order, embedded_fact(*(text for _, text in edits_))


def refusal_detail(reason: str, *parts: str) -> Any:
    return pytest.raises(CommandRefusedError, match=rf"(?s){reason}: .*" + ".*".join(parts))


def test_an_update_keeps_all_that_it_does_not_change() -> None:
    old = stored_fact(value="Bern", category="identity", importance=0.7, subject="Alice", valid_until=day(9))
    order, words = updates((old, "Alice lives in Basel."))
    (event,) = edits.update(CONTEXT, order, known(old), words)
    assert isinstance(event, FactReplaced)
    kept = ("key", "category", "importance", "subject", "valid_until")
    assert [getattr(event.fact, name) for name in kept] == [getattr(old.fact, name) for name in kept]
    assert event.fact.value == "Basel"
    assert (event.ended_at, event.fact.true_from, event.fact.confidence) == (day(5), day(5), 0.8)
    assert (event.fact.fact_id, event.event_id) == (fact_id(ALICE.owner, "c1", 0), event_id(ALICE.owner, "c1", 0))
    assert event.fact.vector == words[0].vector
    assert event.decision.reason == "an application updated it"


@pytest.mark.parametrize(
    ("true_from", "issued_at", "ended_at"),
    [(day(0), day(4), day(4)), (day(4.5), day(4), day(4.5)), (day(0), day(8), CONTEXT.now)],
)
def test_nothing_ends_before_it_began_or_later_than_now(
    true_from: datetime, issued_at: datetime, ended_at: datetime
) -> None:
    old = stored_fact(true_from=true_from)
    order, words = updates((old, "Alice lives in Basel."))
    given = replace(CONTEXT, issued_at=issued_at)
    (event,) = edits.update(given, order, known(old), words)
    assert isinstance(event, FactReplaced)
    assert (event.ended_at, event.fact.true_from) == (ended_at, ended_at)


def test_the_same_edit_twice_counts_once() -> None:
    one, other = stored_fact(), stored_fact("Alice has a cat.")
    order, words = updates((one, "Basel."), (other, "A dog."), (one, "Basel."))
    made = edits.update(CONTEXT, order, known(one, other), words)
    assert [(event.ordinal, event.fact.text) for event in made if isinstance(event, FactReplaced)] == [
        (0, "Basel."),
        (1, "A dog."),
    ]


def test_two_edits_of_one_fact_contradict_each_other() -> None:
    one = stored_fact()
    order, words = updates((one, "Basel."), (one, "Biel."))
    with refusal_detail("invalid_command", "edited twice"):
        edits.update(CONTEXT, order, known(one), words)


def test_a_refusal_lists_all_that_stands_in_the_way_and_tells_no_foreign_text() -> None:
    closed, foreign, fine = stored_fact(status="archived"), stored_fact("A secret.", scope=BOB), stored_fact()
    nobody = uuid4()
    order = Delete(fact_ids=(closed.fact_id, foreign.fact_id, nobody, fine.fact_id))
    with refusal_detail("foreign_fact") as error:
        status_changes.delete(CONTEXT, order, known(closed, foreign, fine))
    detail = error.value.detail
    assert f"{closed.fact_id} is archived: see its history for the fact in its place" in detail
    assert f"{nobody} is not known: check the id" in detail
    assert f"{foreign.fact_id} belongs to another scope: send the command in the scope" in detail
    assert str(fine.fact_id) not in detail
    assert "secret" not in detail


def test_only_a_human_overrules_a_human() -> None:
    old = stored_fact(authority="human")
    order, words = updates((old, "Alice lives in Basel."))
    with refusal_detail("human_word"):
        edits.update(CONTEXT, order, known(old), words)
    (event,) = edits.correct(CONTEXT, Correct(edit=order.edits[0]), known(old), words)
    assert isinstance(event, FactCorrected)
    assert (event.fact.authority, event.fact.confidence, event.fact.true_from) == ("human", 1.0, old.true_from)
    assert (event.decision.by, event.decision.reason) == ("human", "a human corrected it")


def test_a_correction_of_what_has_ended_is_true_from_then_on() -> None:
    old = stored_fact()
    order, words = updates((old, "Alice lives in Basel."))
    (event,) = edits.correct(CONTEXT, Correct(edit=order.edits[0], ended_at=day(2)), known(old), words)
    assert isinstance(event, FactCorrected)
    assert (event.ended_at, event.fact.true_from) == (day(2), day(2))
    with refusal_detail("invalid_command", "give an ended_at that is not before that"):
        edits.correct(CONTEXT, Correct(edit=order.edits[0], ended_at=day(-1)), known(old), words)


def test_deleted_facts_have_an_event_each() -> None:
    one, other = stored_fact(), stored_fact(status="pending_confirmation")
    order = Delete(fact_ids=(one.fact_id, other.fact_id, one.fact_id))
    made = status_changes.delete(CONTEXT, order, known(one, other))
    assert [event.targets for event in made if isinstance(event, FactRetracted)] == [(one.fact_id,), (other.fact_id,)]
    assert made[0].decision.before[0].text == "Alice lives in Bern."


def test_many_deleted_facts_share_events() -> None:
    many = [uuid4() for _ in range(250)]
    made = status_changes.delete_all(CONTEXT, many, {})
    assert [len(event.targets) for event in made if isinstance(event, FactRetracted)] == [100, 100, 50]
    assert [event.ordinal for event in made] == [0, 1, 2]
    assert status_changes.delete_all(CONTEXT, [], {}) == ()


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
    pending, active = status_changes.confirm(
        CONTEXT, order, known(one, other, closed, waiting), {waiting.fact_id: case}
    )
    assert isinstance(pending, PendingConfirmed)
    assert (pending.targets, pending.action, pending.ended_at) == ((one.fact_id,), "replace", day(2))
    assert active.event == "fact_confirmed"
    assert {pending.decision.by, active.decision.by} == {"human"}


def test_only_what_waits_can_be_rejected() -> None:
    one, waiting = stored_fact(), stored_fact(status="pending_confirmation")
    (event,) = status_changes.reject(CONTEXT, Reject(fact_ids=(waiting.fact_id,)), known(waiting))
    assert event.event == "pending_rejected"
    with refusal_detail("not_pending", str(one.fact_id)):
        status_changes.reject(CONTEXT, Reject(fact_ids=(waiting.fact_id, one.fact_id)), known(one, waiting))


def test_a_conflict_is_settled_against_what_is_given_or_still_open() -> None:
    doubtful, one, closed = (
        stored_fact(unresolved=True, true_from=day(3)),
        stored_fact(true_from=day(1)),
        stored_fact(status="archived"),
    )
    facts, beside = known(doubtful, one, closed), (one.fact_id, closed.fact_id)
    order = Resolve(fact_id=doubtful.fact_id, action="replace")
    (event,) = edits.resolve(CONTEXT, order, facts, beside, [])
    assert isinstance(event, ConflictResolved)
    assert (event.targets, event.ended_at) == ((one.fact_id,), day(3))
    named = order.model_copy(update={"targets": (closed.fact_id,)})
    with refusal_detail("closed_fact", str(closed.fact_id)):
        edits.resolve(CONTEXT, named, facts, (), [])
    with refusal_detail("invalid_command", "name targets"):
        edits.resolve(CONTEXT, order, facts, (closed.fact_id,), [])


def test_a_merge_has_the_best_of_its_parents() -> None:
    doubtful = stored_fact(unresolved=True, true_from=day(3), confidence=0.6)
    one = stored_fact(true_from=day(1), confidence=0.9, authority="human")
    order = Resolve(fact_id=doubtful.fact_id, action="merge", text="Bern and Chur.")
    (event,) = edits.resolve(CONTEXT, order, known(doubtful, one), (one.fact_id,), embedded_fact("Bern and Chur."))
    assert isinstance(event, FactsMerged)
    assert event.targets == (doubtful.fact_id, one.fact_id)
    assert (event.fact.true_from, event.fact.confidence, event.fact.authority) == (day(1), 0.9, "human")
    assert event.fact.text == event.statement.text == "Bern and Chur."


def test_only_what_has_ended_expires() -> None:
    due, later = stored_fact(valid_until=day(4), true_to=day(6)), stored_fact(valid_until=day(6))
    elsewhere, closed = stored_fact(valid_until=day(1), scope=BOB), stored_fact(valid_until=day(1), status="retracted")
    facts = known(due, later, elsewhere, closed)
    (event,) = status_changes.expire(CONTEXT, Expire(fact_ids=(*facts, uuid4())), facts)
    assert isinstance(event, FactExpired)
    assert (event.targets, event.ended_at, event.decision.by) == ((due.fact_id,), day(4), "timer")


def test_a_tenants_policy_is_set_in_the_scope_of_its_agent() -> None:
    order = SetPolicy(level="tenant", policy=Policy(add_only=True))
    with refusal_detail("invalid_command", "mnemolog-policy"):
        status_changes.set_policy(CONTEXT, order)
    whole = tenant_scope("default")
    given = replace(CONTEXT, scope=whole)
    (event,) = status_changes.set_policy(given, order)
    assert event.event == "policy_set"
