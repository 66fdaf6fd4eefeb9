"""What a person sees at a prompt: short, with the whole ids, and results that are sequences."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from mnemolog import AsyncMemoryClient, MemoryClient, Profile, Result, SearchResult, Settings
from mnemolog.projections.queries.diff import Change
from mnemolog.projections.queries.explain import FactEvent
from mnemolog.testing.tables import made
from mnemolog.types import ConflictingFact, Diff, FactRef, FoundFact, History, PendingFact, UnresolvedFact
from tests.support.builders.hits import AT, ID, a_fact, a_hit, a_turn_hit


def test_a_fact_is_its_text_its_slot_its_status_and_its_id() -> None:
    assert repr(a_fact()) == (
        "Fact(text='Alice lives in Bern.', key='home_city', value='Bern', status='active', user_id='alice', "
        f"fact_id='{ID}')"
    )
    assert repr(made(FoundFact, a_fact())) == f"Found{a_fact()!r}"


def test_a_result_says_what_became_of_the_turn() -> None:
    memory = FactRef(fact_id=ID, text="Alice lives in Bern.")
    assert repr(Result(turn_id="t1", status="stored", added=(memory,))) == (
        f"Result(turn_id='t1', status='stored', added=(FactRef(text='Alice lives in Bern.', fact_id='{ID}'),))"
    )
    reused = Result(turn_id="t1", status="nothing_stored", reused=True)
    assert repr(reused) == "Result(turn_id='t1', status='nothing_stored', reused=True)"
    failed = Result(turn_id="t1", status="failed", error="invalid_reply", attempt=2)
    assert repr(failed) == "Result(turn_id='t1', status='failed', error='invalid_reply', attempt=2)"


def test_what_is_undecided_is_short() -> None:
    known = ConflictingFact(
        fact_id=ID, text="Alice lives in Bern.", status="active", confidence=0.9, authority="extracted", excerpt="",
        source_id="t1", true_from=AT,
    )  # fmt: skip
    waits: dict[str, Any] = {
        "reason": "a high-risk fact",
        "model": None,
        "since": AT,
        "age": timedelta(1),
        "event_id": ID,
    }
    waits["event_id"] = ID
    held = PendingFact(
        fact=a_fact("Alice lives in Ulm.", "pending_confirmation"), challenged=(known,), beside=(), action="replace",
        ended_at=AT, guard="high_risk", verdict="REPLACE", decided_by="rule", needs_human=True, **waits,
    )  # fmt: skip
    assert repr(known) == f"ConflictingFact(text='Alice lives in Bern.', status='active', fact_id='{ID}')"
    assert repr(held) == (
        f"PendingFact(fact={held.fact}, action='replace', challenged=({known},), guard='high_risk', "
        "reason='a high-risk fact', needs_human=True)"
    )
    open_conflict = UnresolvedFact(fact=replace(a_fact(), unresolved=True), beside=(known,), **waits)
    assert repr(open_conflict) == (
        "UnresolvedFact(fact=Fact(text='Alice lives in Bern.', key='home_city', value='Bern', status='active', "
        f"unresolved=True, user_id='alice', fact_id='{ID}'), beside=({known},), reason='a high-risk fact')"
    )


def test_what_was_published_is_short() -> None:
    turn = Result(turn_id="t1", tenant="default", user_id="alice", position="t/0/1", content_hash="x")
    assert repr(turn) == "Result(turn_id='t1', status='pending')"
    assert repr(Result(turn_id="c1", order="delete")) == "Result(turn_id='c1', status='pending', order='delete')"


def test_found_facts_are_a_sequence_and_a_list_for_people() -> None:
    found = SearchResult(hits=(a_hit(), a_hit(status="pending_confirmation")), mode="hybrid")
    assert [hit.fact.status for hit in found] == ["active", "pending_confirmation"]
    assert (len(found), bool(found), found[0]) == (2, True, a_hit())
    assert str(found).splitlines() == [
        "SearchResult, hybrid, 2 hits:",
        f"  1. Alice lives in Bern. ({ID})",
        f"  2. Alice lives in Bern. [pending_confirmation] ({ID})",
    ]
    assert repr(a_hit()) == f"Hit('Alice lives in Bern.', status='active', similarity=0.83, fact_id='{ID}')"
    nothing = SearchResult(hits=(), mode="lexical", notice="full-text search only: no key")
    assert (bool(nothing), str(nothing)) == (False, "SearchResult, lexical, 0 hits:\n  full-text search only: no key")


def test_found_turns_are_listed_after_the_facts() -> None:
    found = SearchResult(hits=(a_hit(),), mode="hybrid", turns=(a_turn_hit(),))
    assert str(found).splitlines() == [
        "SearchResult, hybrid, 1 hit:",
        f"  1. Alice lives in Bern. ({ID})",
        "  1 turn:",
        "  1. I live in Bern. (t1)",
    ]
    assert repr(a_turn_hit()) == "TurnHit('I live in Bern.', speaker='Alice', turn_id='t1')"


def test_a_profile_is_its_sections() -> None:
    profile = Profile(identity=[{"text": "Alice lives in Bern."}, {"text": "Alice is a nurse."}], updated_at=AT)
    assert str(profile).splitlines() == [
        "Profile, 2 entries:", "identity:", "  Alice lives in Bern.", "  Alice is a nurse.",
    ]  # fmt: skip
    assert str(Profile()) == "Profile, empty"


def test_a_history_and_a_diff_are_lines() -> None:
    event = FactEvent(
        event_id=ID, event="fact_added", fact_id=ID, targets=[], source_id="t1", occurred_at=AT, decided_at=AT,
        decided_by="rule", reason="nothing like it was known", model=None, prompt_version=None, guard=None,
        stale=False, undone=False, candidates=[], moved_ends=[],
    )  # fmt: skip
    assert str(History(versions=[a_fact()], events=[event], relations=[])).splitlines() == [
        "History, 1 version:", f"  active: Alice lives in Bern. ({ID})", "1 event:",
        "  2026-03-01 09:00 UTC fact_added: nothing like it was known",
    ]  # fmt: skip
    change = Change(
        at=AT, event="fact_added", fact_id=ID, text="Alice lives in Bern.", old=(), reason="", decided_by=""
    )
    changes = Diff(since=AT, until=AT + timedelta(days=1), axis="believed", added=(change,))
    assert str(changes).splitlines()[1:] == ["  added: Alice lives in Bern."]
    assert str(Diff(since=AT, until=AT, axis="true")).endswith("no change")


def test_a_client_says_what_it_is_bound_to_and_no_password() -> None:
    settings = Settings(postgres="postgresql://me:secret@host/db")
    bound = AsyncMemoryClient(settings=settings).scope(user_id="alice", run_id="r1")
    assert repr(bound) == "AsyncMemoryClient(user_id='alice', run_id='r1')"
    with MemoryClient(settings=settings) as memory:
        assert repr(memory) == "MemoryClient()"
        assert repr(memory.scope(user_id="alice")) == "MemoryClient(user_id='alice')"
