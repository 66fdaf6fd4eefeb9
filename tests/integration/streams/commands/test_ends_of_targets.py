"""What each command does to a fact that its target had ended: Rome, which ended when the target, Oslo, began."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import CommandPayload, Confirm, Correct, Delete, DeleteAll, Edit, Resolve, Undo, Update
from tests.support.builders.commits import day
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

SLOT: dict[str, Any] = {"subject": "Mira", "single_valued": True}
ROME, OSLO, BERN = "Mira lives in Rome.", "Mira moved to Oslo.", "Mira lives in Bern."
OPEN, AT_OSLO, AT_BERN = None, day(5), day(9)


def edit(fact_id: UUID, text: str, **fields: Any) -> Edit:
    return Edit(fact_id=fact_id, text=text, **fields)


def resolved(action: str) -> Callable[[UUID, UUID], CommandPayload]:
    text = "Mira lives in Oslo and in Bern." if action == "merge" else None
    return lambda oslo, bern: Resolve.model_validate(
        {"fact_id": bern, "action": action, "targets": (oslo,), "text": text}
    )


COMMANDS: dict[str, tuple[Callable[[UUID, UUID], CommandPayload], datetime | None]] = {
    "delete": (lambda oslo, _: Delete(fact_ids=(oslo,)), OPEN),
    "delete_all": (lambda *_: DeleteAll(key="home_city"), AT_OSLO),
    "undo": (lambda *_: Undo(source_id="t1"), OPEN),
    "correct to a denial": (lambda oslo, _: Correct(edit=edit(oslo, "Mira never moved to Oslo.")), OPEN),
    "correct": (lambda oslo, _: Correct(edit=edit(oslo, "Mira moved to Paris.", value="Paris")), AT_OSLO),
    "correct what was true": (
        lambda oslo, _: Correct(edit=edit(oslo, "Mira moved to Paris.", value="Paris"), ended_at=day(8)),
        AT_OSLO,
    ),
    "update": (lambda oslo, _: Update(edits=(edit(oslo, "Mira lives in Paris.", value="Paris"),)), AT_OSLO),
    "confirm": (lambda oslo, _: Confirm(fact_ids=(oslo,)), AT_OSLO),
    "resolve keep_both": (resolved("keep_both"), AT_OSLO),
    "resolve keep_old": (resolved("keep_old"), AT_OSLO),
    "resolve merge": (resolved("merge"), AT_OSLO),
    "resolve replace": (resolved("replace"), AT_OSLO),
    "resolve contradict": (resolved("contradict"), AT_BERN),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_what_a_command_does_to_what_its_target_had_ended(db: ProjectedDatabase, name: str) -> None:
    resolver, commands = ResolverHarness(db), CommandHarness(db)
    make, end = COMMANDS[name]
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME,))}))
    rome = await resolver.resolve_turn(extracted_fact(ROME, key="home_city", **SLOT), at=day(1))
    oslo = await resolver.resolve_turn(extracted_fact(OSLO, key="home_city", action_hint="update", **SLOT), at=day(5))
    resolver.chat_model.set_replies("this is no JSON")
    bern = await resolver.resolve_turn(extracted_fact(BERN, key="home_city", **SLOT), at=day(9))
    await resolver.close()
    ids = [commit.events[0].new_fact.fact_id for commit in (rome, oslo, bern) if commit.events[0].new_fact]
    commit = await commands.execute("c", make(ids[1], ids[2]), at=day(20))
    assert commit.outcome == "done", commit.detail
    (state,) = await commands.states(ids[0])
    assert (state.status, state.true_to) == ("active" if end is None else "superseded", end)
