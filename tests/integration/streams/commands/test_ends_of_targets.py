"""What commands do to ends: of facts that their target had ended, and of the facts that they bring."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import CommandPayload, Confirm, Correct, Delete, DeleteAll, Edit, Resolve, Undo, Update
from tests.support.builders.commits import added, commit, day, expired, fact_id_at, replaced, with_decision
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
