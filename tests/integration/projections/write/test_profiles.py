"""The profile of a scope, on a real Postgres."""

from datetime import timedelta
from typing import Any

import pytest

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


async def recent_changes(db: ProjectedDatabase) -> list[tuple[str, str, list[str]]]:
    ((changes,),) = await db.rows("SELECT recent_changes FROM profiles WHERE user_id = 'alice'")
    return [(change["event"], change["text"], [old["text"] for old in change["old"]]) for change in changes]


async def test_profiles_say_what_is_active_and_what_it_took_the_place_of(db: ProjectedDatabase) -> None:
    identity: dict[str, Any] = {"category": "identity"}
    first = commit("t1", added("Alice lives in Bern.", **identity), at=day(1))
    second = commit("t2", replaced("Alice lives in Rome.", fact_id_at(first), **identity), at=day(2))
    third = commit("t3", merged("Alice lives in Rome with Ana.", fact_id_at(second), **identity), at=day(3))
    last = commit("t4", contradicted("Alice never lived in Rome.", fact_id_at(third), **identity), at=day(4))
    await db.apply(first, second, third, last, commit("b1", added("Bob eats no nuts.", category="health"), scope=BOB))
    profiles = "SELECT sections, updated_at FROM profiles ORDER BY user_id"
    (alices, updated_at), (bobs, _) = await db.rows(profiles)
    assert [(entry["text"], entry["confidence"], entry["at"]) for entry in alices["identity"]] == [
        ("Alice never lived in Rome.", 0.95, "2026-01-05T09:00:00.000000Z")
    ]
    assert ({*alices}, updated_at) == ({"identity"}, day(4) + timedelta(seconds=3))
    assert [entry["text"] for entry in bobs["sensitive_topics"]] == ["Bob eats no nuts."]
    assert await recent_changes(db) == [
        ("fact_contradicted", "Alice never lived in Rome.", ["Alice lives in Rome with Ana."])
    ]


async def test_a_profile_section_begins_with_what_is_surest_and_is_bounded(db: ProjectedDatabase) -> None:
    sure = [added(f"{confidence}", category="health", confidence=confidence) for confidence in (0.6, 0.95, 0.4)]
    many = [added(f"Alice is also called {number}.", category="identity") for number in range(60)]
    await db.apply(commit("t1", *sure, *many))
    ((sections,),) = await db.rows("SELECT sections FROM profiles")
    sensitive = [entry["text"] for entry in sections["sensitive_topics"]]
    assert (sensitive, len(sections["identity"])) == (["0.95", "0.6", "0.4"], 50)


async def test_profiles_say_what_decisions_ended(db: ProjectedDatabase) -> None:
    log = every_decision_log()
    await db.apply(*log[:8])
    replacing, *before = await recent_changes(db)
    assert [replacing, *before] == [
        ("fact_replaced", "New.", ["Fact 7."]),
        ("conflict_resolved", "Or so.", ["Fact 6."]),
        ("pending_confirmed", "B.", ["Fact 4."]),
        ("fact_corrected", "Rather.", ["Fact 3."]),
        ("fact_retracted", "No longer.", ["Fact 2."]),
        ("fact_expired", "Fact 1.", ["Fact 1."]),
    ]
    await db.apply(log[8])  # undone
    assert (await recent_changes(db))[0] == before[0]
    await db.apply(log[9])  # and done again
    assert (await recent_changes(db))[0] == replacing


async def test_profiles_know_of_no_fact_that_waits_when_others_end_and_what_is_unresolved(
    db: ProjectedDatabase,
) -> None:
    doubts: dict[str, dict[str, Any]] = {
        "Lease.": {},
        "Other.": {"confidence": 0.5},
        "Rome.": {"confidence": 0.4, "unresolved": True},
    }
    drafts = [added(text, category="identity", **fields) for text, fields in doubts.items()]
    first = commit("t1", *drafts, at=day(1))
    announced = expired(fact_id_at(first), ended_at=day(20), text="The lease ends.")
    waits = pending("Never.", fact_id_at(first, 1), category="identity")
    await db.apply(first, commit("t2", announced, waits, at=day(2)))
    ((identity,),) = await db.rows("SELECT sections -> 'identity' FROM profiles")
    assert [(entry["text"], entry["valid_until"], entry["unresolved"]) for entry in identity] == [
        ("Lease.", "2026-01-21T09:00:00.000000Z", False),
        ("Other.", None, False),
        ("Rome.", None, True),
    ]


async def test_a_recent_change_names_what_it_ended_and_no_fact_that_is_open_again(db: ProjectedDatabase) -> None:
    first = commit("t1", added("Bern."), at=day(1))
    second = commit("t2", replaced("Rome.", fact_id_at(first)), at=day(2))
    reopened = MovedEnd(fact_id=fact_id_at(first), ender=fact_id_at(second))
    denied = contradicted("Not Rome.", fact_id_at(second))
    third = commit("t3", lambda place: denied(place).model_copy(update={"moved_ends": (reopened,)}), at=day(3))
    await db.apply(first, second, third)
    assert (await recent_changes(db))[0] == ("fact_contradicted", "Not Rome.", ["Rome."])
