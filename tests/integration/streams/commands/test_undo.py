"""Taking back on real tables: by event, by source, by whoever decided; all in one scope, and as a rebuild has it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import CommandPayload, Delete, DeleteAll, Edit, Resolve, SetPolicy, Undo, Update
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    pseudo_random_vector,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
    with_decision,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

KNOWN = commit("t1", added("Alice lives in Bern."), added("Alice has a cat."), added("Alice skis.", unresolved=True))
BERN, CAT, SKIS = (fact_id_at(KNOWN, ordinal) for ordinal in range(3))
BOBS = commit("b1", added("Bob's secret is 4711."), scope=BOB)
APP = Scope(user_id="alice", app_id="app")


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, BOBS)
    return CommandHarness(db)


async def current_states(harness: CommandHarness) -> dict[UUID, Any]:
    rows = await harness.stored.rows("SELECT fact_id, to_jsonb(f) - 'state_since' FROM facts AS f")
    return dict(rows)


async def pending_rows(harness: CommandHarness) -> list[Any]:
    return await harness.stored.rows(
        "SELECT fact_id, settlement, settled_at, settled_by FROM pending_confirmations ORDER BY fact_id"
    )


WAITING = commit("t2", pending("Alice lives in Chur.", BERN, action="replace", ended_at=day(1)), at=day(1))
CHUR = fact_id_at(WAITING)


DRAFTS = [
    added("Alice rows."),
    skipped(BERN),
    confirmed(BERN),
    merged("Alice lives in Bern with a cat.", BERN, CAT),
    replaced("Alice lives in Rome.", BERN),
    replaced("Alice will live in Rome.", BERN, ended_at=day(90)),
    contradicted("Alice lives in Rome.", BERN),
    extended("Alice lives in Bern's old town.", BERN),
    related("Alice works in Bern.", BERN),
    expired(BERN, ended_at=day(1)),
    expired(BERN, ended_at=day(90), text="Alice moves out in spring."),
    retracted(BERN),
    retracted(BERN, ended_at=day(1), text="Alice no longer lives in Bern."),
    pending("Alice lives in Thun.", BERN),
    pending_confirmed(CHUR, BERN, action="replace", ended_at=day(1), text="Alice lives in Chur."),
    pending_rejected(CHUR, confirmed=BERN, text="Alice lives in Bern."),
    corrected("Alice lives in Biel.", BERN),
    corrected("Alice lives in Biel.", BERN, ended_at=day(1)),
    resolved(SKIS, CAT, action="keep_both"),
    resolved(SKIS, CAT, action="keep_old"),
    resolved(SKIS, CAT, action="contradict"),
    resolved(SKIS, CAT, action="replace", ended_at=day(1)),
]


async def test_each_event_can_be_taken_back_and_put_back(harness: CommandHarness) -> None:
    """One event after the other on the same facts, each undone, reinstated and undone again."""
    await harness.stored.apply(WAITING)
    before, cases = await current_states(harness), await pending_rows(harness)
    for number, draft in enumerate(DRAFTS):

        async def undo(step: str, order: Undo, number: int = number) -> Commit:
            done = await harness.execute(f"u{number}-{step}", order, at=day(3))
            assert done.outcome == "done", (number, done.detail)
            return done

        async def is_as_before(number: int = number) -> bool:
            states = await current_states(harness)
            new = [states[fact_id]["status"] for fact_id in states.keys() - before.keys()]
            assert {fact_id: states[fact_id] for fact_id in before} == before, number
            return set(new) <= {"undone"} and [row for row in await pending_rows(harness) if row[0] == CHUR] == cases

        made = commit(f"e{number}", draft, at=day(2))
        await harness.stored.apply(made)
        after, cases_after = await current_states(harness), await pending_rows(harness)
        assert after != before
        first = await undo("a", Undo(event_id=event_id_at(made)))
        assert await is_as_before()
        await undo("b", Undo(event_id=event_id_at(first)))
        assert await current_states(harness) == after
        assert [row[:2] for row in await pending_rows(harness)] == [row[:2] for row in cases_after]
        await undo("c", Undo(source_id=f"u{number}-b"))
        assert await is_as_before()
    assert await harness.stored.rows("SELECT count(*) FROM memory_events WHERE stale") == [(0,)]
    assert (await rebuild(harness.stored.url, TableLogSource(harness.stored.pool))).equal


async def test_a_command_can_be_taken_back(harness: CommandHarness) -> None:
    before = await current_states(harness)
    orders: list[tuple[CommandPayload, int]] = [
        (Update(edits=(Edit(fact_id=BERN, text="Basel."), Edit(fact_id=CAT, text="A dog."))), 2),
        (Delete(fact_ids=(BERN, CAT)), 2),
        (DeleteAll(), 1),
        (Resolve(fact_id=SKIS, targets=(CAT,), action="merge", text="Alice skis with a cat."), 1),
    ]
    for number, (order, again) in enumerate(orders):
        await harness.execute(f"c{number}", order, at=day(1))
        states = await current_states(harness)
        assert {fact_id: states[fact_id] for fact_id in before} != before
        undo = await harness.execute(f"u{number}", Undo(source_id=f"c{number}"), at=day(2), actor="ana@example.org")
        assert len(undo.events) == again
        assert undo.events[0].decision.reason.startswith("ana@example.org took back ")
        states = await current_states(harness)
        assert {fact_id: states[fact_id] for fact_id in before} == before
        refused = await harness.execute(f"r{number}", Undo(source_id=f"c{number}"), at=day(3))
        assert (refused.outcome, refused.reason) == ("rejected", "already_undone")


async def test_two_thousand_deleted_facts_can_be_taken_back(harness: CommandHarness) -> None:
    many = [added(f"Fact {number}.", vector=pseudo_random_vector(number, 3)) for number in range(999)]
    await harness.stored.apply(commit("m1", *many), commit("m2", *many[:998]))
    before = await current_states(harness)
    deleted = await harness.execute("c1", DeleteAll(), at=day(1))
    assert (deleted.outcome, await harness.texts_with_status()) == ("done", [])
    undo = await harness.execute("u1", Undo(source_id="c1"), at=day(2))
    assert (undo.outcome, undo.detail) == ("done", "")
    assert await current_states(harness) == before


async def test_more_than_one_command_can_take_back_is_refused_whole(
    harness: CommandHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemolog.streams.commands.handler.MAX_FACTS", 2)
    before = await current_states(harness)
    refused = await harness.execute("u1", Undo(source_id="t1"), at=day(1))
    assert (refused.outcome, refused.events) == ("rejected", ())
    assert "more than the 2 events that one command can undo" in refused.detail
    assert await current_states(harness) == before


async def test_what_later_decisions_build_on_is_refused_with_the_list_and_taken_back_with_cascade(
    harness: CommandHarness,
) -> None:
    before = await current_states(harness)
    rome = commit("t2", replaced("Alice lives in Rome.", BERN), at=day(1))
    still = commit("t3", confirmed(fact_id_at(rome), "Yes, Rome."), at=day(2))
    oslo = commit("t4", replaced("Alice lives in Oslo.", fact_id_at(rome)), added("Alice has skis."), at=day(3))
    waiting = commit("t5", pending("Alice lives in Riga.", fact_id_at(oslo)), at=day(4))
    await harness.stored.apply(rome, still, oslo, waiting)
    refused = await harness.execute("u1", Undo(event_id=event_id_at(rome)), at=day(5))
    assert (refused.outcome, refused.reason) == ("rejected", "built_upon")
    assert all(
        part in refused.detail for part in (str(event_id_at(still)), "t3", '"Yes, Rome."', str(event_id_at(oslo)))
    )
    undo = await harness.execute("u2", Undo(event_id=event_id_at(rome), cascade=True), at=day(5))
    assert undone_by(undo) == [event_id_at(waiting), event_id_at(oslo), event_id_at(still), event_id_at(rome)]
    states = await current_states(harness)
    assert {fact_id: states[fact_id] for fact_id in before} == before
    assert "Alice has skis." in await harness.texts_with_status()
    assert await pending_rows(harness) == [(fact_id_at(waiting), "undone", undo.decided_at, event_id_at(undo))]
    assert (await rebuild(harness.stored.url, TableLogSource(harness.stored.pool))).equal


def by(model: str, prompt_version: str, draft: Draft) -> Draft:
    return with_decision(draft, by="model", model=model, prompt_version=prompt_version)


async def test_what_a_model_or_a_prompt_version_decided_in_a_window_is_taken_back(harness: CommandHarness) -> None:
    extract = Step(stage="extract", milliseconds=1, model="bad", prompt_version="extract-9")
    early = commit("t2", by("bad", "resolve-9", replaced("Alice lives in Rome.", BERN)), at=day(1))
    good = commit("t3", by("good", "resolve-9", replaced("Alice has a dog.", CAT)), at=day(2))
    bad = commit("t4", by("bad", "resolve-9", retracted(fact_id_at(early), ended_at=day(2))), at=day(3))
    read = commit("t5", added("Alice rows."), added("Alice runs."), at=day(3), steps=[extract])
    asked = Step(stage="resolve", milliseconds=1, model="bad", prompt_version="resolve-9")
    beside = commit("t7", added("Alice sings."), at=day(3), steps=[asked])  # it was asked about something else
    elsewhere = commit("t6", by("bad", "resolve-9", added("Alice uses an app.")), at=day(3), scope=APP)
    bobs = commit("b2", by("bad", "resolve-9", added("Bob rows.")), at=day(3), scope=BOB)
    step = extract.model_copy(update={"model": "m", "instructions": "instructions-0a1b"})
    instructed = commit("t8", added("Alice swims."), at=day(3), steps=[step])
    other = commit(
        "t9", added("Alice dives."), at=day(3), steps=[step.model_copy(update={"instructions": "instructions-2c3d"})]
    )
    await harness.stored.apply(early, good, bad, read, beside, elsewhere, bobs, instructed, other)
    window = {"since": day(2), "until": day(4)}
    undo = await harness.execute("u1", Undo.model_validate({"model": "bad", **window}), at=day(5))
    assert undone_by(undo) == [event_id_at(read, 1), event_id_at(read, 0), event_id_at(bad)]
    assert await harness.texts_with_status(scope=ALICE) == [
        *("Alice dives.", "Alice has a dog.", "Alice lives in Rome.", "Alice sings.", "Alice skis."),
        *("Alice swims.", "Alice uses an app."),
    ]
    again = await harness.execute("u2", Undo.model_validate({"model": "bad", **window}), at=day(5))
    assert again.reason == "nothing_to_undo"
    both = Undo.model_validate({"model": "good", "prompt_version": "resolve-9", **window})
    assert len((await harness.execute("u3", both, at=day(5))).events) == 1
    neither = Undo.model_validate({"model": "good", "prompt_version": "resolve-1", **window})
    assert (await harness.execute("u4", neither, at=day(5))).reason == "nothing_to_undo"
    told = Undo.model_validate({"prompt_version": "instructions-0a1b", **window})
    assert undone_by(await harness.execute("u6", told, at=day(5))) == [event_id_at(instructed)]
    prompt = Undo.model_validate({"prompt_version": "resolve-9", "since": day(0), "until": day(4)})
    assert (await harness.execute("u5", prompt, at=day(5))).outcome == "done"
    assert "Alice lives in Bern." in await harness.texts_with_status()


async def test_a_prompt_version_stands_for_its_variants(harness: CommandHarness) -> None:
    versions = ("extract-9", "extract-9-turns-1", "extract-90", "extract-9b-turns-1")
    steps = [Step(stage="extract", milliseconds=1, model="m", prompt_version=version) for version in versions]
    read = [commit(f"t{place}", added(f"Alice knows {place}."), steps=[step]) for place, step in enumerate(steps, 10)]
    decided = [
        commit(f"t{place}", by("m", version, added(f"Alice has {place}.")))
        for place, version in enumerate(("resolve-9-names-1", "resolve-9", "resolve-91"), 20)
    ]
    await harness.stored.apply(*read, *decided)
    for version, taken in {"extract-9": read[:2], "resolve-9": decided[:2]}.items():
        selected = Undo.model_validate({"prompt_version": version, "since": day(-1), "until": day(4)})
        undo = await harness.execute(f"undo-{version}", selected, at=day(5))
        assert set(undone_by(undo)) == {event_id_at(one) for one in taken}


async def test_what_is_not_there_or_anothers_is_refused(harness: CommandHarness) -> None:
    await harness.execute("policy", SetPolicy(level="scope", policy=Policy(add_only=True)), at=day(0.5))
    before = await current_states(harness)
    orders = [Undo(event_id=uuid4()), Undo(event_id=event_id_at(BOBS))]
    orders += [Undo(source_id=source) for source in ("b1", "nobody", "policy")]
    for number, order in enumerate(orders):
        refused = await harness.execute(f"u{number}", order, at=day(1))
        assert (refused.outcome, refused.reason) == ("rejected", "nothing_to_undo")
        assert "secret" not in refused.detail
    assert await current_states(harness) == before


async def test_a_diff_tells_what_holds_again_where_its_successor_was(harness: CommandHarness) -> None:
    async def told(since: float) -> Sequence[tuple[str, str | None, str | None, list[str]]]:
        changes = await diff(harness.stored.conn, ScopeFilter.of_scope(ALICE), day(since), day(100))
        in_order = [(kind, one.text, one.status, [old.text for old in one.old]) for kind, one in changes.in_order]
        assert len(changes.undone) == sum(kind == "undone" for kind, *_ in in_order)
        return in_order

    rome, together = "Alice lives in Rome.", "Alice lives in Bern with a cat."
    bern, cat, skis = (event.new_fact.text for event in KNOWN.events if event.new_fact)
    await harness.stored.apply(commit("t2", replaced(rome, BERN), at=day(1)))
    await harness.execute("c1", Undo(source_id="t2"), at=day(2))
    await harness.stored.apply(commit("t3", added("Alice rows."), at=day(2.5)))
    assert await told(0.5) == [
        ("replaced", rome, None, [bern]),
        ("undone", bern, "active", [rome]),
        ("added", "Alice rows.", None, []),
    ]
    await harness.execute("c2", Undo(source_id="c1"), at=day(3))
    assert await told(3) == [("undone", rome, "active", [bern])]
    await harness.execute("c3", Undo(source_id="c2"), at=day(4))
    await harness.stored.apply(commit("t4", merged(together, BERN, CAT), at=day(4.5)))
    await harness.execute("c4", Undo(source_id="t4"), at=day(5))
    assert await told(5) == [("undone", bern, "active", [together]), ("undone", cat, "active", [together])]
    await harness.stored.apply(commit("t5", retracted(BERN), confirmed(CAT), at=day(5.5)))
    await harness.execute("c5", Undo(source_id="t5"), at=day(6))
    assert sorted(await told(6)) == [("undone", cat, "active", []), ("undone", bern, "active", [])]
    await harness.execute("c6", Undo(source_id="t1", cascade=True), at=day(7))
    assert {one for _, one, status, old in await told(7) if (status, old) == ("undone", [])} == {bern, cat, skis}


def undone_by(made: Commit) -> list[UUID]:
    return [event.undone for event in made.events if event.event == "decision_undone"]
