"""What turns do: a statement meets a known one, and the model says how they stand to each other."""

from datetime import UTC, datetime
from functools import partial
from typing import Final

import pytest

from mnemolog.projections.results import WriteResult
from tests.changes import Change, changed
from tests.kafka import until
from tests.scenes.stage import answered, both, new, old, said, scene, shown
from tests.servers.scripted import Ruling
from tests.world import START, Person, day

FAR: Final = datetime(2999, 1, 1, tzinfo=UTC)


@scene("fact_added", resolution="ADD", arbitration="insert", reconciliation="ADD")
async def what_is_new(ann: Person) -> Change:
    change = await changed(ann, ann.says(said(old(ann))), old=old(ann), new=old(ann))
    assert (change.new["status"], change.new["mention_count"], change.new["true_from"]) == ("active", 1, START)
    assert change.new["believed_from"] == change.new["recorded_at"]
    return change


@scene("fact_added")
async def what_comes_late(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("REPLACE"), occurred_at=day(-3)))
    assert (change.new["status"], change.new["true_from"], change.new["true_to"]) == ("superseded", day(-3), START)
    assert change.new["superseded_by"] == change.old["fact_id"]
    assert change.old == change.before[old(ann)]
    return change


@scene("fact_skipped", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def what_is_repeated(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, ann.says(said(old(ann))))
    assert (change.old["mention_count"], change.old["confidence"], change.brought) == (2, 0.95, set())
    assert change.old["last_confirmed_at"] == day(1)
    return change


@scene("fact_confirmed", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def what_is_said_in_other_words(ann: Person) -> Change:
    await ann.says(said(old(ann), certainty="weak"))
    change = await shown(ann, answered(ann, Ruling("KEEP")))
    assert (change.old["mention_count"], change.old["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert change.brought == set()
    return change


@scene("facts_merged", resolution="MERGE", arbitration="update", reconciliation="UPDATE", classification="update")
async def what_makes_one_of_two(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("MERGE", text=both(ann))))
    merged = change.after[both(ann)]
    assert (change.old["status"], change.brought) == ("superseded", {both(ann)})
    assert (merged["status"], merged["supersedes"], merged["true_from"]) == ("active", [change.old["fact_id"]], START)
    assert change.old["believed_to"] == merged["believed_from"]
    return change


@scene("fact_replaced", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE", classification="update")
async def what_was_and_is_over(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("REPLACE")))
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    assert change.new["supersedes"] == [change.old["fact_id"]]
    assert change.old["closed_at"] == change.new["recorded_at"]
    return change


@scene(
    "fact_contradicted",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def what_never_was(ann: Person) -> Change:
    await ann.says(said(old(ann), certainty="strong"))
    change = await shown(ann, answered(ann, Ruling("CONTRADICT")))
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    assert change.old["believed_to"] == change.new["believed_from"]
    return change


@scene("fact_extended", resolution="ADD", arbitration="insert", reconciliation="ADD", classification="extend")
async def what_adds_detail(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("EXTEND")))
    assert (change.old, change.new["status"]) == (change.before[old(ann)], "active")
    assert change.relations == [(new(ann), "extends", old(ann))]
    return change


@scene("facts_related", resolution="ADD", arbitration="insert", reconciliation="ADD", classification="similar")
async def what_is_of_the_same(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("SIMILAR")))
    assert (change.old, change.new["status"]) == (change.before[old(ann)], "active")
    assert change.relations == [(new(ann), "similar", old(ann))]
    return change


@scene("fact_expired", arbitration="expire", reconciliation="DELETE")
async def what_has_an_end(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("EXPIRE", ended_at=day(7))))
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("expired", day(7), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change


@scene("fact_expired")
async def what_will_end(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("EXPIRE", ended_at=FAR)))
    assert (change.old["status"], change.old["true_to"]) == ("active", FAR)
    assert change.old["closed_at"] == change.new["recorded_at"]
    return change


@scene("fact_expired", arbitration="expire", reconciliation="DELETE")
async def what_the_timer_ends(ann: Person) -> Change:
    async def by_the_timer() -> WriteResult:
        query = "SELECT source_id FROM memory_events WHERE event = 'fact_expired' AND user_id = %s"
        (event,) = await until(partial(ann.world.rows, query, ann.name))
        return await ann.world.memory.status(event["source_id"], user_id=ann.name)

    await ann.says(said(old(ann), valid_until=day(2).isoformat()))
    change = await shown(ann, by_the_timer())
    assert (change.old["status"], change.old["true_to"], change.brought) == ("expired", day(2), set())
    assert (change.result.source_kind, change.result.order) == ("command", "expire")
    return change


@scene("fact_retracted", arbitration="expire", reconciliation="DELETE")
async def what_is_over(ann: Person) -> Change:
    await ann.says(said(old(ann)))
    change = await shown(ann, answered(ann, Ruling("RETRACT"), action_hint="retract"))
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("retracted", day(1), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change
