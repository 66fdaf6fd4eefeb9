"""The explanation of a fact tells what was decided about its entities since."""

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.schemas.command import MergeEntities, RenameEntity
from tests.support.harnesses.named_people import named_people

pytestmark = pytest.mark.postgres


async def test_changes_of_the_entities_of_a_fact_are_told_with_it(database: str) -> None:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as memory:
        told = await people.say("Rex bites", subject="Rex")
        await people.say("Bello barks", subject="Bello")
        await people.say("Tom sings", subject="Tom")
        rex, bello, tom = [(await memory.entity(name, user_id="alice")).entity for name in ("Rex", "Bello", "Tom")]
        await people.order(RenameEntity(entity_id=tom.entity_id, name="Thomas"))
        await people.order(RenameEntity(entity_id=rex.entity_id, name="Rexi"))
        merge = await people.order(MergeEntities(entity_ids=(rex.entity_id,), into=bello.entity_id))
        await people.undo(merge)
        assert told.events[0].new_fact is not None
        explained = await memory.explain(told.events[0].new_fact.fact_id, user_id="alice")
    (subject,) = explained.entities
    assert subject.step == "new"
    assert [(one.event, one.undone) for one in subject.changes] == [
        ("entity_renamed", False),
        ("entities_merged", True),
    ]
    words = [one for one in explained.words if one.startswith("since then")]
    assert len(words) == 2
    assert words[0].startswith("since then a rename is about Rexi")
    assert words[1].endswith(", which was undone")
