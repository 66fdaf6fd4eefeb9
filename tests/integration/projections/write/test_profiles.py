"""The profile of a scope, on a real Postgres."""

from datetime import timedelta

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import MovedEnd
from tests.support.builders.commits import (
    BOB,
    added,
    commit,
    contradicted,
    day,
    expired,
    fact_id_at,
    merged,
    pending,
    replaced,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


def overwritten() -> list[Commit]:
    """A fact that was replaced, merged and contradicted in turn; and one of another person."""
    first = commit("t1", added("Alice lives in Bern.", category="identity"), at=day(1))
    second = commit("t2", replaced("Alice lives in Rome.", fact_id_at(first), category="identity"), at=day(2))
    third = commit("t3", merged("Alice lives in Rome with Ana.", fact_id_at(second), category="identity"), at=day(3))
    last = commit("t4", contradicted("Alice never lived in Rome.", fact_id_at(third), category="identity"), at=day(4))
    return [first, second, third, last, commit("b1", added("Bob eats no nuts.", category="health"), scope=BOB)]


async def test_profiles_say_what_is_active(db: ProjectedDatabase) -> None:
    await db.apply(*overwritten())
    ((identity, sensitive, changes, updated_at),) = await db.rows(
        "SELECT identity, sensitive_topics, recent_changes, updated_at FROM profiles WHERE owner = 'default/alice'"
    )
    assert [(entry["text"], entry["confidence"], entry["at"]) for entry in identity] == [
        ("Alice never lived in Rome.", 0.95, "2026-01-05T09:00:00.000000Z")
    ]
    assert sensitive == []
    assert [(change["event"], change["text"], [old["text"] for old in change["old"]]) for change in changes] == [
        ("fact_contradicted", "Alice never lived in Rome.", ["Alice lives in Rome with Ana."]),
        ("facts_merged", "Alice lives in Rome with Ana.", ["Alice lives in Rome."]),
        ("fact_replaced", "Alice lives in Rome.", ["Alice lives in Bern."]),
    ]
    assert updated_at == day(4) + timedelta(seconds=3)
    ((sensitive,),) = await db.rows("SELECT sensitive_topics FROM profiles WHERE owner = 'default/bob'")
    assert [entry["text"] for entry in sensitive] == ["Bob eats no nuts."]


async def test_a_profile_section_begins_with_what_is_surest(db: ProjectedDatabase) -> None:
    drafts = [added(f"{confidence}", category="health", confidence=confidence) for confidence in (0.6, 0.95, 0.4)]
    await db.apply(commit("t1", *drafts))
    ((sensitive,),) = await db.rows("SELECT sensitive_topics FROM profiles")
    assert [entry["text"] for entry in sensitive] == ["0.95", "0.6", "0.4"]


async def test_a_profile_section_is_bounded(db: ProjectedDatabase) -> None:
    drafts = [added(f"Alice is also called {number}.", category="identity") for number in range(60)]
    await db.apply(commit("t1", *drafts))
    assert await db.rows("SELECT jsonb_array_length(identity) FROM profiles") == [(50,)]


async def test_profiles_say_what_decisions_ended(db: ProjectedDatabase) -> None:
    log = every_decision_log()
    await db.apply(*log[:8])
    ((changes,),) = await db.rows("SELECT recent_changes FROM profiles")
    assert [(change["event"], change["text"], [old["text"] for old in change["old"]]) for change in changes] == [
        ("fact_replaced", "New.", ["Fact 7."]),
        ("conflict_resolved", "Or so.", ["Fact 6."]),
        ("pending_confirmed", "B.", ["Fact 4."]),
        ("fact_corrected", "Rather.", ["Fact 3."]),
        ("fact_retracted", "No longer.", ["Fact 2."]),
        ("fact_expired", "Fact 1.", ["Fact 1."]),
    ]
    await db.apply(log[8])
    ((changes,),) = await db.rows("SELECT recent_changes FROM profiles")
    assert changes[0]["event"] == "conflict_resolved"
    await db.apply(log[9])
    ((changes,),) = await db.rows("SELECT recent_changes FROM profiles")
    assert changes[0]["event"] == "fact_replaced"


async def test_profiles_know_of_no_fact_that_waits_and_when_others_end(db: ProjectedDatabase) -> None:
    drafts = [added("Lease.", category="identity"), added("Other.", category="identity", confidence=0.5)]
    first = commit("t1", *drafts, at=day(1))
    announced = expired(fact_id_at(first), ended_at=day(20), text="The lease ends.")
    waits = pending("Never.", fact_id_at(first, 1), category="identity")
    await db.apply(first, commit("t2", announced, waits, at=day(2)))
    ((identity,),) = await db.rows("SELECT identity FROM profiles")
    assert [(entry["text"], entry["valid_until"]) for entry in identity] == [
        ("Lease.", "2026-01-21T09:00:00.000000Z"),
        ("Other.", None),
    ]


async def test_a_profile_says_what_is_unresolved(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("t1", added("Bern.", category="identity"), added("Rome.", category="identity", unresolved=True))
    )
    ((identity,),) = await db.rows("SELECT identity FROM profiles")
    assert {entry["text"]: entry["unresolved"] for entry in identity} == {"Bern.": False, "Rome.": True}


async def test_a_recent_change_names_what_it_ended_and_no_fact_that_is_open_again(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Bern."), at=day(1))
    second = commit("t2", replaced("Rome.", fact_id_at(first)), at=day(2))
    reopened = MovedEnd(fact_id=fact_id_at(first), ender=fact_id_at(second))
    denied = contradicted("Not Rome.", fact_id_at(second))
    third = commit("t3", lambda place: denied(place).model_copy(update={"moved_ends": (reopened,)}), at=day(3))
    await db.apply(first, second, third)
    ((changes,),) = await db.rows("SELECT recent_changes FROM profiles")
    assert [old["text"] for old in changes[0]["old"]] == ["Rome."]
