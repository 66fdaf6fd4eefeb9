"""What commands do to ends: of facts that their target had ended, and of the facts that they bring."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import CommandPayload, Confirm, Correct, Delete, DeleteAll, Edit, Resolve, Undo, Update
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import (
    added,
    commit,
    contradicted,
    day,
    expired,
    fact_id_at,
    merged,
    pending,
    replaced,
    retracted,
    with_decision,
)
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

SLOT: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
ROME = commit("t0", added("Mira lives in Rome.", value="Rome", **SLOT), at=day(1))
OSLO = commit(
    "t1",
    replaced("Mira moved to Oslo.", fact_id_at(ROME), value="Oslo", action_hint="update", **SLOT),
    at=day(5),
)
BERN = commit(
    "t2",
    with_decision(added("Mira lives in Bern.", value="Bern", unresolved=True, **SLOT), shown=(fact_id_at(OSLO),)),
    at=day(9),
)
OPEN, AT_OSLO, AT_BERN = None, day(5), day(9)


def correct(text: str, **fields: Any) -> Correct:
    return Correct(edit=Edit(fact_id=fact_id_at(OSLO), text=text, value="Paris"), **fields)


def resolve(action: str) -> Resolve:
    text = "Mira lives in Oslo and in Bern." if action == "merge" else None
    return Resolve.model_validate(
        {"fact_id": fact_id_at(BERN), "action": action, "targets": (fact_id_at(OSLO),), "text": text}
    )


COMMANDS: dict[str, tuple[CommandPayload, datetime | None]] = {
    "delete": (Delete(fact_ids=(fact_id_at(OSLO),)), OPEN),
    "delete_all": (DeleteAll(key="home_city"), AT_OSLO),
    "undo": (Undo(source_id="t1"), OPEN),
    "correct to a denial": (correct("Mira never moved to Oslo."), OPEN),
    "correct": (correct("Mira moved to Paris."), AT_OSLO),
    "correct what was true": (correct("Mira moved to Paris.", ended_at=day(8)), AT_OSLO),
    "update": (Update(edits=(correct("Mira lives in Paris.").edit,)), AT_OSLO),
    "confirm": (Confirm(fact_ids=(fact_id_at(OSLO),)), AT_OSLO),
    "resolve keep_both": (resolve("keep_both"), AT_OSLO),
    "resolve keep_old": (resolve("keep_old"), AT_OSLO),
    "resolve replace": (resolve("replace"), AT_OSLO),
    "resolve contradict": (resolve("contradict"), AT_BERN),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_what_a_command_does_to_what_its_target_had_ended(db: ProjectedDatabase, name: str) -> None:
    """Rome ended when the target, Oslo, began; Bern, which is said last, is unresolved beside Oslo."""
    await db.apply(ROME, OSLO, BERN)
    command, end = COMMANDS[name]
    commands = CommandHarness(db)
    done = await commands.execute("c", command, at=day(20))
    assert done.outcome == "done", done.detail
    (state,) = await commands.states(fact_id_at(ROME))
    assert (state.status, state.true_to) == ("active" if end is None else "superseded", end)


PRAGUE = commit("t3", replaced("Mira moved to Prague.", fact_id_at(OSLO), value="Prague", **SLOT), at=day(6))
LEFT = commit("t3", retracted(fact_id_at(OSLO), ended_at=day(6), text="Mira left Oslo.", **SLOT), at=day(6))
OVER = commit("t3", expired(fact_id_at(OSLO), ended_at=day(6), text="Oslo is over.", **SLOT), at=day(6))
MORE = commit("t3", merged("Mira moved to Oslo with Tom.", fact_id_at(OSLO), value="Oslo", **SLOT), at=day(6))
VERSIONS = {
    "a newer value": (OSLO, PRAGUE),
    "an end": (OSLO, LEFT),
    "an announcement": (OSLO, OVER),
    "a merge": (OSLO, MORE),
    "the first of three": (ROME, PRAGUE),
    "the first, with an end": (ROME, LEFT),
    "the first, with an announcement": (ROME, OVER),
    "the first, with a merge": (ROME, MORE),
}


@pytest.mark.parametrize("name", VERSIONS)
async def test_a_former_version_is_deleted_with_each_that_took_its_place(db: ProjectedDatabase, name: str) -> None:
    """What the versions had ended before the named one is open again; undo brings back what was."""
    named, last = VERSIONS[name]
    await db.apply(ROME, OSLO, last)
    commands, versions = CommandHarness(db), [fact_id_at(one) for one in (ROME, OSLO, last)]
    before = await commands.states(*versions)
    done = await commands.execute("c", Delete(fact_ids=(fact_id_at(named),)), at=day(20))
    assert (done.outcome, str(fact_id_at(named)) in done.detail) == ("done", True)
    rome = "retracted" if named is ROME else "active"
    deleted = [rome, "superseded" if last is MORE else "retracted", "retracted"]
    assert await commands.statuses(*versions) == deleted
    assert [one.believed_to is None for one in await commands.states(*versions)] == [rome == "active", False, False]
    await commands.execute("u", Undo(source_id="c"), at=day(21))
    assert await commands.states(*versions) == before
    again = await commands.execute("r", Undo(source_id="u"), at=day(22))
    assert again.outcome == "done", again.detail
    assert await commands.statuses(*versions) == deleted
    assert await db.rows("SELECT detail FROM rejections") == []


DENIED = commit("t3", contradicted("Mira lives in Lima.", fact_id_at(OSLO), value="Lima", **SLOT), at=day(6))


def edits(named: Commit, text: str) -> list[CommandPayload]:
    edit = Edit(fact_id=fact_id_at(named), text=text)
    return [Update(edits=(edit,)), Correct(edit=edit)]


@pytest.mark.parametrize("last", [PRAGUE, LEFT, OVER, DENIED], ids=["newer value", "end", "announcement", "denial"])
@pytest.mark.parametrize("place", [0, 1], ids=["update", "correct"])
async def test_what_has_ended_is_not_edited_nor_what_ended_it(db: ProjectedDatabase, last: Commit, place: int) -> None:
    await db.apply(ROME, OSLO, last)
    commands, versions = CommandHarness(db), [fact_id_at(one) for one in (ROME, OSLO, last)]
    before = await commands.states(*versions)
    for number, named in enumerate((ROME, OSLO)):
        done = await commands.execute(f"c{number}", edits(named, "Mira lived in Kyiv.")[place], at=day(20))
        assert (done.outcome, done.reason) == ("rejected", "closed_fact"), done.detail
    assert await commands.states(*versions) == before


@pytest.mark.parametrize(("first", "place"), [("update", 0), ("update", 1), ("correct", 1), ("merge", 0), ("merge", 1)])
async def test_an_edit_by_the_id_of_a_former_version_takes_the_newest(
    db: ProjectedDatabase, first: str, place: int
) -> None:
    await db.apply(ROME, OSLO)
    commands = CommandHarness(db)
    if first == "merge":
        await db.apply(MORE)
        newest = fact_id_at(MORE)
    else:
        order = edits(OSLO, "Mira moved to Oslo with Tom.")[first == "correct"]
        newest = fact_id_at(await commands.execute("c", order, at=day(20)))
    done = await commands.execute("d", edits(OSLO, "Mira moved to Oslo with Tim.")[place], at=day(21))
    assert (done.outcome, str(fact_id_at(OSLO)) in done.detail) == ("done", True), done.detail
    assert await commands.statuses(newest) == ["superseded"]
    ended = commit("t4", replaced("Mira moved to Riga.", fact_id_at(done), value="Riga", **SLOT), at=day(30))
    await db.apply(ended)
    refused = await commands.execute("e", edits(OSLO, "Mira moved to Oslo with Tam.")[place], at=day(31))
    assert (refused.outcome, refused.reason) == ("rejected", "closed_fact")
    assert await commands.statuses(fact_id_at(ended)) == ["active"]


HOMES = ("Al lives in Oslo.", "Oslo", "Al no longer lives in Oslo.", "Al does not live in Oslo.", "Al lives in Rome.")
JOBS = ("Al works at Acme.", "Acme", "Al does not work at Acme.", "Al never works at Acme.", "Al works at Globex.")
SPORT = ("Runs daily.", "daily", "Does not run.", "Never runs.", "Runs yearly.")


@pytest.mark.parametrize(("told", "value", "denial", "other_denial", "new"), [HOMES, JOBS, SPORT])
@pytest.mark.parametrize(
    ("ways", "begins"), [("UC", None), ("UC", day(2)), ("UU", None), ("CC", None), ("UCC", None), ("UUC", None)]
)
async def test_no_new_text_of_a_fact_brings_an_older_one_back(  # noqa: PLR0917 -- a row
    db: ProjectedDatabase,
    told: str,
    value: str,
    denial: str,
    other_denial: str,
    new: str,
    ways: str,
    begins: datetime | None,
) -> None:
    """The last text says what holds, with the value that it shows, however the denials before it were given."""
    key = "employer" if "works" in told else "home_city"
    known = commit("t0", added(told, value=value, key=key, single_valued=True, subject="Al"), at=day(1))
    await db.apply(known)
    commands, versions = CommandHarness(db), [fact_id_at(known)]
    texts = [denial, *([other_denial] if len(ways) > 2 else []), new]
    for place, (way, text) in enumerate(zip(ways, texts, strict=True)):
        is_last, is_corrected = place == len(ways) - 1, way == "C"
        edit = Edit(fact_id=versions[0], text=text, true_from=begins if is_last else None)
        order = Correct(edit=edit) if is_corrected else Update(edits=(edit,))
        done = await commands.execute(f"c{place}", order, at=day(10 + place))
        assert done.outcome == "done", done.detail
        versions.append(fact_id_at(done))
        assert [one for one in await commands.statuses(*versions) if one == "active"] == ["active"]
        assert await commands.statuses(versions[-1]) == ["active"]
    fact = (await commands.known.facts(versions[-1:]))[versions[-1]].fact
    assert (fact.key, fact.value, fact.action_hint) == (key, new.rsplit(maxsplit=1)[-1].strip("."), "new")


@pytest.mark.parametrize("way", [0, 1])
async def test_what_denies_a_new_text_leaves_the_former_one_ended(db: ProjectedDatabase, way: int) -> None:
    await db.apply(ROME)
    commands = CommandHarness(db)
    made = await commands.execute("c", edits(ROME, "Mira lives in Paris.")[0], at=day(10))
    denied = await commands.execute("d", edits(ROME, "Mira does not live in Paris.")[way], at=day(11))
    assert denied.outcome == "done", denied.detail
    assert await commands.statuses(fact_id_at(ROME), fact_id_at(made)) == ["superseded", "superseded"]


LATE = commit("t9", added("Mira lived in Kyiv.", value="Kyiv", true_from=day(0), **SLOT), at=day(22))
KYIV = LATE.events[0].model_copy(update={"ended_at": AT_OSLO, "ended_by": fact_id_at(OSLO)})


@pytest.mark.parametrize("name", ["delete", "delete_all", "undo", "correct to a denial"])
async def test_a_command_that_is_put_back_in_effect_leaves_ended_what_it_left_ended(
    db: ProjectedDatabase, name: str
) -> None:
    """What was added in between, ended by its target, is opened as it would be by a new command."""
    await db.apply(ROME, OSLO, BERN)
    command, end = COMMANDS[name]
    commands = CommandHarness(db)
    await commands.execute("c", command, at=day(20))
    await commands.execute("u", Undo(source_id="c"), at=day(21))
    await db.apply(LATE.model_copy(update={"events": (KYIV,)}))
    again = await commands.execute("r", Undo(source_id="u"), at=day(23))
    assert again.outcome == "done", again.detail
    rome, kyiv = await commands.states(fact_id_at(ROME), fact_id_at(LATE))
    assert (rome.status, rome.true_to) == ("active" if end is None else "superseded", end)
    assert kyiv.superseded_by != fact_id_at(OSLO)


TERMS = commit("t1", added("Alice has a lease."), added("Alice has a pass.", valid_until=day(9)))
LEASE, PASS = fact_id_at(TERMS), fact_id_at(TERMS, 1)


@pytest.mark.parametrize(
    ("order", "ends_at"),
    [
        (lambda edit: Update(edits=(edit,)), day(9)),
        (lambda edit: Correct(edit=edit), day(9)),
        (lambda edit: Correct(edit=edit, ended_at=day(9)), None),  # what follows an end is not ended by it
    ],
    ids=["update", "correct", "correct what was true"],
)
async def test_an_edited_text_ends_when_the_old_one_would_have(
    db: ProjectedDatabase, order: Callable[[Edit], CommandPayload], ends_at: datetime | None
) -> None:
    await db.apply(TERMS, commit("t2", expired(LEASE, ended_at=day(9), text="The lease ends."), at=day(1)))
    harness = CommandHarness(db)
    made: list[UUID] = []
    for fact_id in (LEASE, PASS):
        done = await harness.execute(
            f"c-{fact_id}", order(Edit(fact_id=fact_id, text="A lease, or a pass.")), at=day(2)
        )
        made.append(fact_id_at(done))
    facts = await harness.known.facts(made)
    assert [facts[fact_id].ends_at for fact_id in made] == [ends_at] * 2


@pytest.mark.parametrize(
    ("then", "end"),
    [
        pytest.param(lambda later: Update(edits=(Edit(fact_id=later, text="Not Bonn."),)), day(20), id="updated"),
        pytest.param(lambda later: Delete(fact_ids=(later,)), day(20), id="deleted"),
        pytest.param(lambda _: Undo(source_id="c1"), OPEN, id="undone"),
    ],
)
async def test_an_update_that_begins_later_frees_the_former_text_by_its_undo_alone(
    db: ProjectedDatabase, then: Callable[[UUID], CommandPayload], end: datetime | None
) -> None:
    harness = CommandHarness(db)
    await db.apply(ROME)
    edit = Edit(fact_id=fact_id_at(ROME), text="Mira lives in Bonn.", true_from=day(20))
    planned = await harness.execute("c1", Update(edits=(edit,)), at=day(2))
    await harness.execute("c2", then(fact_id_at(planned)), at=day(3))
    (rome,) = await harness.states(fact_id_at(ROME))
    assert (rome.status, rome.true_to) == ("active", end)


@pytest.mark.parametrize("others", [(), ("Mira lives in Chur.",)])
async def test_what_waits_holds_once_all_that_opposed_it_is_deleted_and_its_key_has_nothing_else(
    db: ProjectedDatabase, others: tuple[str, ...]
) -> None:
    waits = commit("t1", pending("Mira lives in Ulm.", fact_id_at(ROME), value="Ulm", **SLOT), at=day(2))
    more = [commit(f"o{number}", added(text, **SLOT), at=day(3)) for number, text in enumerate(others)]
    await db.apply(ROME, waits, *more)
    harness = CommandHarness(db)
    done = await harness.execute("c1", Delete(fact_ids=(fact_id_at(ROME),)), at=day(4))
    (ulm,) = await harness.states(fact_id_at(waits))
    assert (ulm.status, ulm.confidence) == ("archived" if others else "active", 0.95)
    await harness.execute("c2", Undo(source_id=done.source_id), at=day(5))
    assert await harness.statuses(fact_id_at(ROME), fact_id_at(waits)) == ["active", "pending_confirmation"]
