"""Cases of pending, unresolved, corrected and undone facts, driven by turns and commands."""

import pytest

from mnemolog.projections.write.effects import HUMAN_CONFIDENCE
from mnemolog.schemas.policy import Policy
from tests.support.cases.event_cases import (
    event_case,
    extraction_of,
    merged_text,
    new_text,
    observe_old_and_new,
    old_text,
    say_new,
)
from tests.support.harnesses.fact_changes import Change
from tests.support.harnesses.pipeline_harness import Person, day
from tests.support.servers.scripted_model import ScriptedDecision


async def pending_overwrite(person: Person, decision: ScriptedDecision) -> Change:
    """An uncertain statement about a fact of a high-risk category: the overwrite is pending."""
    await person.say(extraction_of(old_text(person), category="health"))
    change = await observe_old_and_new(person, say_new(person, decision, certainty="weak"))
    assert change.events == ["fact_pending"]
    return change


async def confirmed_overwrite(person: Person, decision: ScriptedDecision) -> Change:
    """The same, and a human confirms it."""
    waiting = await pending_overwrite(person, decision)
    (row,) = waiting.pending
    change = await observe_old_and_new(person, person.run_command("confirm", row["fact_id"]))
    (confirmed,) = (one for one in change.after.values() if one["fact_id"] == row["fact_id"])
    assert confirmed["status"] == "active"
    assert confirmed["confidence"] >= HUMAN_CONFIDENCE
    assert confirmed["believed_from"] == confirmed["state_since"] > confirmed["recorded_at"]
    assert change.pending == []
    return change


async def resolved_conflict(person: Person, action: str) -> Change:
    """The model gives no valid decision, and a human resolves the conflict."""
    await person.say(extraction_of(old_text(person)))
    await person.say(extraction_of(new_text(person)), answers=["Let me think about it."])
    assert (await person.facts())[new_text(person)]["unresolved"]
    change = await observe_old_and_new(
        person, person.run_command("resolve", await person.fact_id(new_text(person)), action)
    )
    assert not change.new["unresolved"]
    return change


@event_case("fact_pending", arbitration="mark_pending_confirmation")
async def pending(ann: Person) -> Change:
    change = await pending_overwrite(ann, ScriptedDecision("REPLACE"))
    (row,) = change.pending
    assert (change.old, change.new["believed_from"]) == (change.before[old_text(ann)], None)
    assert (row["targets"], row["action"], row["guard"]) == ([change.old["fact_id"]], "replace", "high_risk")
    return change


@event_case(
    "pending_confirmed", resolution="MERGE", arbitration="update", reconciliation="UPDATE", classification="update"
)
async def confirmed_merge(ann: Person) -> Change:
    change = await confirmed_overwrite(ann, ScriptedDecision("MERGE", text=merged_text(ann)))
    assert (change.old["status"], change.old["superseded_by"]) == (
        "superseded",
        change.after[merged_text(ann)]["fact_id"],
    )
    return change


@event_case(
    "pending_confirmed",
    resolution="REPLACE",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def confirmed_replacement(ann: Person) -> Change:
    change = await confirmed_overwrite(ann, ScriptedDecision("REPLACE"))
    assert (change.old["status"], change.old["true_to"]) == ("superseded", day(1))
    return change


@event_case(
    "pending_confirmed",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def confirmed_contradiction(ann: Person) -> Change:
    change = await confirmed_overwrite(ann, ScriptedDecision("CONTRADICT"))
    assert (change.old["status"], change.old["believed_to"]) == ("archived", change.new["believed_from"])
    return change


@event_case("pending_confirmed", arbitration="expire", reconciliation="DELETE")
async def confirmed_retraction(ann: Person) -> Change:
    change = await confirmed_overwrite(ann, ScriptedDecision("RETRACT"))
    assert (change.old["status"], change.old["true_to"]) == ("retracted", day(1))
    return change


@event_case("pending_confirmed", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE")
async def confirmed_by_repetition(ann: Person) -> Change:
    await pending_overwrite(ann, ScriptedDecision("REPLACE"))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("KEEP", (new_text(ann),)), certainty="weak"))
    assert (change.new["mention_count"], change.new["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert (change.old["status"], change.old["true_to"], change.pending) == ("superseded", day(1), [])
    return change


@event_case("pending_rejected", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def rejected_by_command(ann: Person) -> Change:
    waiting = await pending_overwrite(ann, ScriptedDecision("REPLACE"))
    change = await observe_old_and_new(ann, ann.run_command("reject", waiting.new["fact_id"]))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert change.old == waiting.old
    return change


@event_case("pending_rejected", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def rejected_by_old_fact_repeated(ann: Person) -> Change:
    await pending_overwrite(ann, ScriptedDecision("REPLACE"))
    change = await observe_old_and_new(ann, ann.say(extraction_of(old_text(ann), certainty="weak")))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert (change.old["mention_count"], change.old["confidence"]) == (2, pytest.approx(0.95 + 0.25 * 0.05))
    return change


@event_case("fact_retracted", arbitration="expire", reconciliation="DELETE")
async def deletion(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, ann.run_command("delete", await ann.fact_id(old_text(ann))))
    assert (change.old["status"], change.old["true_to"], change.new_texts) == ("retracted", None, set())
    assert change.old["believed_to"] == change.old["state_since"]
    return change


@event_case(
    "fact_corrected",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def correction(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann), certainty="weak"))
    change = await observe_old_and_new(ann, ann.run_command("correct", await ann.fact_id(old_text(ann)), new_text(ann)))
    assert (change.new["authority"], change.new["confidence"], change.new["status"]) == ("human", 1.0, "active")
    assert (change.old["status"], change.old["believed_to"]) == ("superseded", change.new["believed_from"])
    return change


@event_case("fact_corrected", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE")
async def correction_with_end(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(
        ann, ann.run_command("correct", await ann.fact_id(old_text(ann)), new_text(ann), ended_at=day(5))
    )
    assert (change.old["status"], change.old["true_to"], change.new["true_from"]) == ("superseded", day(5), day(5))
    return change


@event_case("conflict_resolved", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def resolved_keep_old(ann: Person) -> Change:
    change = await resolved_conflict(ann, "keep_old")
    assert (change.new["status"], change.old) == ("archived", change.before[old_text(ann)])
    return change


@event_case("conflict_resolved")
async def resolved_keep_both(ann: Person) -> Change:
    change = await resolved_conflict(ann, "keep_both")
    assert (change.new["status"], change.old) == ("active", change.before[old_text(ann)])
    return change


@event_case(
    "conflict_resolved",
    resolution="REPLACE",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def resolved_replace(ann: Person) -> Change:
    change = await resolved_conflict(ann, "replace")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    return change


@event_case("conflict_resolved", resolution="CONTRADICT", arbitration="supersede", reconciliation="UPDATE")
async def resolved_contradict(ann: Person) -> Change:
    change = await resolved_conflict(ann, "contradict")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    return change


@event_case("decision_undone")
async def undone_replacement(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    before = (await ann.facts())[old_text(ann)]
    await say_new(ann, ScriptedDecision("REPLACE"))
    change = await observe_old_and_new(ann, ann.run_command("undo", turn_id=f"{ann.name}-1"))
    assert change.old == before | {"state_since": change.old["state_since"]}
    assert (change.new["status"], change.new["believed_to"]) == ("undone", change.new["state_since"])
    return change


@event_case("policy_set")
async def policy_change(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, ann.run_command("set_policy", Policy(add_only=True)))
    assert change.before == change.after
    (row,) = await ann.harness.rows("SELECT policy FROM policies WHERE user_id = %s", ann.name)
    assert Policy.model_validate(row["policy"]) == Policy(add_only=True)
    return change
