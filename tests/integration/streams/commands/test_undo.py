"""Taking back on real tables: by event, by source, by whoever decided; all in one scope, and as a rebuild has it."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import DeleteAll, SetPolicy, Undo
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
    day,
    event_id_at,
    fact_id_at,
    pending,
    pseudo_random_vector,
    replaced,
    retracted,
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


def undone_by(made: Commit) -> list[UUID]:
    return [event.undone for event in made.events if event.event == "decision_undone"]
