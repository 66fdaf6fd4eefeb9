"""What is held back, left open, ordered and taken back: by further turns and by commands."""

import pytest

from mnemolog.projections.effects import HUMAN_CONFIRMATION
from mnemolog.schemas.policy import Policy
from tests.changes import Change
from tests.scenes.stage import answered, both, new, old, said, scene, shown
from tests.servers.scripted import Ruling
from tests.world import Person, day


async def held_back(person: Person, ruling: Ruling) -> Change:
    """An unsure word about a fact of high risk waits for a confirmation."""
    await person.says(said(old(person), category="health"))
    change = await shown(person, answered(person, ruling, certainty="weak"))
    assert change.events == ["fact_pending"]
    return change


async def confirmed(person: Person, ruling: Ruling) -> Change:
    """The same, and a human confirms it."""
    waiting = await held_back(person, ruling)
    (row,) = waiting.pending
    change = await shown(person, person.orders("confirm", row["fact_id"]))
    (stands,) = (one for one in change.after.values() if one["fact_id"] == row["fact_id"])
    assert stands["status"] == "active"
    assert stands["confidence"] >= HUMAN_CONFIRMATION
    assert stands["believed_from"] == stands["state_since"] > stands["recorded_at"]
    assert change.pending == []
    return change


async def unresolved(person: Person, action: str) -> Change:
    """No valid ruling comes back, and a human settles it."""
    await person.says(said(old(person)))
    await person.says(said(new(person)), answers=["Let me think about it."])
    assert (await person.facts())[new(person)]["unresolved"]
    change = await shown(person, person.orders("resolve", await person.fact_id(new(person)), action))
    assert not change.new["unresolved"]
    return change


@scene("fact_pending", arbitration="mark_pending_confirmation")
async def what_is_held_back(ann: Person) -> Change:
    change = await held_back(ann, Ruling("REPLACE"))
    (row,) = change.pending
    assert (change.old, change.new["believed_from"]) == (change.before[old(ann)], None)
    assert (row["targets"], row["action"], row["guard"]) == ([change.old["fact_id"]], "replace", "high_risk")
    return change


@scene("pending_confirmed", resolution="MERGE", arbitration="update", reconciliation="UPDATE", classification="update")
async def a_confirmed_merge(ann: Person) -> Change:
    change = await confirmed(ann, Ruling("MERGE", text=both(ann)))
    assert (change.old["status"], change.old["superseded_by"]) == ("superseded", change.after[both(ann)]["fact_id"])
    return change


@scene(
    "pending_confirmed",
    resolution="REPLACE",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def a_confirmed_replacement(ann: Person) -> Change:
    change = await confirmed(ann, Ruling("REPLACE"))
    assert (change.old["status"], change.old["true_to"]) == ("superseded", day(1))
    return change


@scene(
    "pending_confirmed",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def a_confirmed_contradiction(ann: Person) -> Change:
    change = await confirmed(ann, Ruling("CONTRADICT"))
    assert (change.old["status"], change.old["believed_to"]) == ("archived", change.new["believed_from"])
    return change


@scene("pending_confirmed", arbitration="expire", reconciliation="DELETE")
async def a_confirmed_end(ann: Person) -> Change:
    change = await confirmed(ann, Ruling("RETRACT"))
    assert (change.old["status"], change.old["true_to"]) == ("retracted", day(1))
    return change


@scene("pending_confirmed", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE")
async def what_is_confirmed_by_being_said_again(ann: Person) -> Change:
    await held_back(ann, Ruling("REPLACE"))
    change = await shown(ann, answered(ann, Ruling("KEEP", (new(ann),)), certainty="weak"))
    assert (change.new["mention_count"], change.new["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert (change.old["status"], change.old["true_to"], change.pending) == ("superseded", day(1), [])
    return change


@scene("pending_rejected", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def what_is_rejected(ann: Person) -> Change:
    waiting = await held_back(ann, Ruling("REPLACE"))
    change = await shown(ann, ann.orders("reject", waiting.new["fact_id"]))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert change.old == waiting.old
    return change


@scene("pending_rejected", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def what_is_rejected_by_saying_the_old_again(ann: Person) -> Change:
    await held_back(ann, Ruling("REPLACE"))
    change = await shown(ann, ann.says(said(old(ann), certainty="weak")))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert (change.old["mention_count"], change.old["confidence"]) == (2, pytest.approx(0.95 + 0.25 * 0.05))
    return change


@scene("fact_retracted", arbitration="expire", reconciliation="DELETE")
async def what_is_deleted(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, ann.orders("delete", await ann.fact_id(old(ann))))
    assert (change.old["status"], change.old["true_to"], change.brought) == ("retracted", None, set())
    assert change.old["believed_to"] == change.old["state_since"]
    return change


@scene(
    "fact_corrected",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def what_a_human_corrects(ann: Person) -> Change:
    await ann.says(said(old(ann), certainty="weak"))
    change = await shown(ann, ann.orders("correct", await ann.fact_id(old(ann)), new(ann)))
    assert (change.new["authority"], change.new["confidence"], change.new["status"]) == ("human", 1.0, "active")
    assert (change.old["status"], change.old["believed_to"]) == ("superseded", change.new["believed_from"])
    return change


@scene("fact_corrected", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE")
async def what_a_human_ends(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, ann.orders("correct", await ann.fact_id(old(ann)), new(ann), ended_at=day(5)))
    assert (change.old["status"], change.old["true_to"], change.new["true_from"]) == ("superseded", day(5), day(5))
    return change


@scene("conflict_resolved", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def what_is_settled_for_the_old(ann: Person) -> Change:
    change = await unresolved(ann, "keep_old")
    assert (change.new["status"], change.old) == ("archived", change.before[old(ann)])
    return change


@scene("conflict_resolved")
async def what_is_settled_for_both(ann: Person) -> Change:
    change = await unresolved(ann, "keep_both")
    assert (change.new["status"], change.old) == ("active", change.before[old(ann)])
    return change


@scene(
    "conflict_resolved",
    resolution="REPLACE",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def what_is_settled_for_the_new(ann: Person) -> Change:
    change = await unresolved(ann, "replace")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    return change


@scene("conflict_resolved", resolution="CONTRADICT", arbitration="supersede", reconciliation="UPDATE")
async def what_is_settled_against_the_old(ann: Person) -> Change:
    change = await unresolved(ann, "contradict")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    return change


@scene("decision_undone")
async def what_is_taken_back(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    before = (await ann.facts())[old(ann)]
    await answered(ann, Ruling("REPLACE"))
    change = await shown(ann, ann.orders("undo", turn_id=f"{ann.name}-1"))
    assert change.old == before | {"state_since": change.old["state_since"]}
    assert (change.new["status"], change.new["believed_to"]) == ("undone", change.new["state_since"])
    return change


@scene("policy_set")
async def what_is_decreed(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, ann.orders("set_policy", Policy(add_only=True)))
    assert change.before == change.after
    (row,) = await ann.world.rows("SELECT policy FROM policies WHERE user_id = %s", ann.name)
    assert Policy.model_validate(row["policy"]) == Policy(add_only=True)
    return change
