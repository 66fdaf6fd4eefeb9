"""What is counted of entities, with the real stages and tables."""

import pytest
from prometheus_client import REGISTRY

from mnemolog.schemas.command import MergeEntities, RenameEntity
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres


class Counts:
    """What was counted since the test began."""

    def __init__(self) -> None:
        self._before = self._now()

    def of(self, name: str, **labels: str) -> float:
        key = (name, frozenset(labels.items()))
        return self._now().get(key, 0.0) - self._before.get(key, 0.0)

    @staticmethod
    def _now() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for metric in REGISTRY.collect()
            for sample in metric.samples
            if sample.name.startswith(("mnemolog_entit", "mnemolog_turn_entity"))
        }


async def entity_id(people: NamedPeople, name: str) -> str:
    ((found,),) = await people.rows("SELECT entity_id FROM entities WHERE name = %s", name)
    return str(found)


async def test_new_entities_and_the_steps_that_find_them_are_counted(people: NamedPeople) -> None:
    counts = Counts()
    await people.say("My wife Ana Keller paints", ("my wife Ana Keller", "person"))
    await people.say("Ana sings in Bern", ("Bern", "place"), subject="Ana")
    await people.say("I like Tom from work and another Tom", ("Tom from work", "person"), ("another Tom", "person"))
    await people.say("I fix R2 daily", ("R2", "robot"))
    registered = "mnemolog_entities_registered_total"
    assert counts.of(registered, type="person", possible_twin="no") == 3  # the user, Ana Keller, Tom from work
    assert counts.of(registered, type="place", possible_twin="no") == 1
    assert counts.of(registered, type="custom", possible_twin="no") == 1  # any word can be a type
    assert counts.of(registered, type="person", possible_twin="yes") == 1
    links = "mnemolog_entity_links_total"
    assert [counts.of(links, step=step) for step in ("new", "prefix", "user")] == [5, 1, 3]
    assert counts.of("mnemolog_turn_entity_links_count") == 4
    assert counts.of("mnemolog_turn_entity_links_sum") == 9


async def test_decisions_about_entities_are_counted_by_who_decided(people: NamedPeople) -> None:
    await people.say("Rex bites", subject="Rex")
    await people.say("Bello barks", subject="Bello")
    counts = Counts()
    rex, bello = await entity_id(people, "Rex"), await entity_id(people, "Bello")
    merge = await people.order(MergeEntities.model_validate({"entity_ids": [bello], "into": rex}, strict=False))
    await people.order(RenameEntity.model_validate({"entity_id": rex, "name": "Rexi"}, strict=False))
    await people.undo(merge)
    changes = "mnemolog_entity_changes_total"
    for event in ("entities_merged", "entity_renamed", "entity_decision_undone"):
        assert counts.of(changes, event=event, by="application") + counts.of(changes, event=event, by="human") == 1
