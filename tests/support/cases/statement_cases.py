"""Cases of turns: a statement meets a known fact, and the model decides how they relate."""

from datetime import UTC, datetime
from functools import partial
from typing import Final

import pytest

from mnemolog.projections.queries.results import WriteResult
from tests.support.cases.event_cases import (
    event_case,
    extraction_of,
    merged_text,
    new_text,
    observe_old_and_new,
    old_text,
    say_new,
)
from tests.support.harnesses.fact_changes import Change, observe_change
from tests.support.harnesses.pipeline_harness import START, Person, day
from tests.support.servers.kafka_client import wait_until
from tests.support.servers.scripted_model import ScriptedDecision

FAR_FUTURE: Final = datetime(datetime.now(UTC).year + 5, 1, 1, tzinfo=UTC)


@event_case("fact_added", resolution="ADD", arbitration="insert", reconciliation="ADD")
async def first_statement(ann: Person) -> Change:
    change = await observe_change(ann, ann.say(extraction_of(old_text(ann))), old=old_text(ann), new=old_text(ann))
    assert (change.new["status"], change.new["mention_count"], change.new["true_from"]) == ("active", 1, START)
    assert change.new["believed_from"] == change.new["recorded_at"]
    return change


@event_case("fact_added")
async def late_news_is_history(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("REPLACE"), occurred_at=day(-3)))
    assert (change.new["status"], change.new["true_from"], change.new["true_to"]) == ("superseded", day(-3), START)
    assert change.new["superseded_by"] == change.old["fact_id"]
    assert change.old == change.before[old_text(ann)]
    return change


@event_case("fact_skipped", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def equal_text_is_skipped(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, ann.say(extraction_of(old_text(ann))))
    assert (change.old["mention_count"], change.old["confidence"], change.new_texts) == (2, 0.95, set())
    assert change.old["last_confirmed_at"] == day(1)
    return change


@event_case("fact_confirmed", resolution="KEEP", arbitration="noop", reconciliation="NOOP", classification="noop")
async def same_meaning_confirms(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann), certainty="weak"))
    again = f"Emacs is what {ann.name} writes with."
    said = ann.say(extraction_of(again), decisions={again: ScriptedDecision("KEEP")})
    change = await observe_change(ann, said, old=old_text(ann), new=again)
    assert (change.old["mention_count"], change.old["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert change.new_texts == set()
    return change


@event_case("facts_merged", resolution="MERGE", arbitration="update", reconciliation="UPDATE", classification="update")
async def merge(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("MERGE", text=merged_text(ann))))
    merged = change.after[merged_text(ann)]
    assert (change.old["status"], change.new_texts) == ("superseded", {merged_text(ann)})
    assert (merged["status"], merged["supersedes"], merged["true_from"]) == ("active", [change.old["fact_id"]], START)
    assert change.old["believed_to"] == merged["believed_from"]
    return change


@event_case(
    "fact_replaced", resolution="REPLACE", arbitration="supersede", reconciliation="UPDATE", classification="update"
)
async def replacement(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("REPLACE")))
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    assert change.new["supersedes"] == [change.old["fact_id"]]
    assert change.old["closed_at"] == change.new["recorded_at"]
    return change


@event_case(
    "fact_contradicted",
    resolution="CONTRADICT",
    arbitration="supersede",
    reconciliation="UPDATE",
    classification="update",
)
async def contradiction(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann), certainty="strong"))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("CONTRADICT")))
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    assert change.old["believed_to"] == change.new["believed_from"]
    return change


@event_case("fact_extended", resolution="ADD", arbitration="insert", reconciliation="ADD", classification="extend")
async def extension(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("EXTEND")))
    assert (change.old, change.new["status"]) == (change.before[old_text(ann)], "active")
    assert change.relations == [(new_text(ann), "extends", old_text(ann))]
    return change


@event_case("facts_related", resolution="ADD", arbitration="insert", reconciliation="ADD", classification="similar")
async def similar_fact(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("SIMILAR")))
    assert (change.old, change.new["status"]) == (change.before[old_text(ann)], "active")
    assert change.relations == [(new_text(ann), "similar", old_text(ann))]
    return change


@event_case("fact_expired", arbitration="expire", reconciliation="DELETE")
async def announced_end(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("EXPIRE", ended_at=day(7))))
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("expired", day(7), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change


@event_case("fact_expired")
async def announced_future_end(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("EXPIRE", ended_at=FAR_FUTURE)))
    assert (change.old["status"], change.old["true_to"]) == ("active", FAR_FUTURE)
    assert change.old["closed_at"] == change.new["recorded_at"]
    return change


@event_case("fact_expired", arbitration="expire", reconciliation="DELETE")
async def timer_expiry(ann: Person) -> Change:
    async def by_the_timer() -> WriteResult:
        query = "SELECT source_id FROM memory_events WHERE event = 'fact_expired' AND user_id = %s"
        (event,) = await wait_until(partial(ann.harness.rows, query, ann.name))
        return await ann.harness.memory.status(str(event["source_id"]), user_id=ann.name)

    await ann.say(extraction_of(old_text(ann), valid_until=day(2).isoformat()))
    change = await observe_old_and_new(ann, by_the_timer())
    assert (change.old["status"], change.old["true_to"], change.new_texts) == ("expired", day(2), set())
    assert (change.result.source_kind, change.result.order) == ("command", "expire")
    return change


@event_case("fact_retracted", arbitration="expire", reconciliation="DELETE")
async def retraction(ann: Person) -> Change:
    await ann.say(extraction_of(old_text(ann)))
    change = await observe_old_and_new(ann, say_new(ann, ScriptedDecision("RETRACT"), action_hint="retract"))
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("retracted", day(1), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change
