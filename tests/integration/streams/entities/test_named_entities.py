"""Whom facts name, in real tables: one entity under all its names, in one scope alone, counted, bounded and rebuilt."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from mnemolog.projections.stores import entities
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


async def names(people: NamedPeople, user_id: str = "alice") -> list[tuple[str, str]]:
    """The names and types of the active entities, the user among them, in the order of the log."""
    query = "SELECT name, type FROM entities WHERE user_id = %s AND status = 'active' ORDER BY recorded_at, ordinal"
    return [(name, kind) for name, kind in await people.rows(query, user_id)]


async def test_the_user_is_known_among_more_entities_than_are_looked_up(
    people: NamedPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer entities have the name that is looked up; the user has none."""
    monkeypatch.setattr(entities, "MAX_FOUND", 2)
    await people.say("I sail", speaker=None)
    for place in ("work", "school", "golf"):
        await people.say(f"Tom from {place} sings", subject=f"Tom from {place}", speaker=None)
    await people.say("I saw Tom", ("Tom", "person"), speaker=None)
    users = await people.rows("SELECT count(DISTINCT entity_id) FROM entity_aliases WHERE kind = 'user'")
    assert users == [(1,)]


async def test_new_entities_and_the_steps_that_find_them_are_counted(people: NamedPeople) -> None:
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(f"mnemolog_{name}", labels) or 0.0

    def counts() -> list[float]:
        kinds = (("person", "no"), ("place", "no"), ("custom", "no"), ("person", "yes"))  # any word can be a type
        return [
            *(counted("entities_registered_total", type=kind, possible_twin=twin) for kind, twin in kinds),
            *(counted("entity_links_total", step=step) for step in ("new", "prefix", "user")),
            counted("turn_entity_links_count"),
            counted("turn_entity_links_sum"),
        ]

    before = counts()
    await people.say("My wife Ana Keller paints", ("my wife Ana Keller", "person"))
    await people.say("Ana sings in Bern", ("Bern", "place"), subject="Ana")
    await people.say("I like Tom from work and another Tom", ("Tom from work", "person"), ("another Tom", "person"))
    await people.say("I fix R2 daily", ("R2", "robot"))
    added = [now - then for now, then in zip(counts(), before, strict=True)]
    assert added == [3, 1, 1, 1, 5, 1, 3, 4, 9]


HOSTILE = (
    "Ben",
    "Ben's wife Ana",
    "my wife Ana); DROP TABLE entities; --",
    "Ana\u202egnirtS",
    "@user",
    "wife of 00000000-0000-0000-0000-000000000000",
    '{"event": "entities_merged", "into": "ben"}',
    "Ana (work)",
    "{Ana,Eve}",
    "%s{}\\",
)


async def test_hostile_texts_change_their_own_scope_alone_within_bounds(people: NamedPeople) -> None:
    async def of_ben() -> list[list[Any]]:
        """Everything that is known of Ben's entities."""
        queries = (
            "SELECT * FROM entities WHERE user_id = 'ben' ORDER BY entity_id",
            "SELECT * FROM entity_aliases WHERE user_id = 'ben' ORDER BY entity_id, kind, key",
            "SELECT l.* FROM fact_entities l JOIN facts f USING (fact_id) WHERE f.user_id = 'ben' ORDER BY event_id",
        )
        return [await people.rows(query) for query in queries]

    await people.say("I met my wife Ana", ("my wife Ana", "person"), scope=BEN, speaker="Ben")
    before = await of_ben()
    for number, name in enumerate(HOSTILE):
        await people.say(
            f"{number}: I am Ben, and {name} is my wife Ana", (name, "person"), speaker="Ben", subject="Ben"
        )
        await people.say(f"{number}: forget {name}", (name, "person"), speaker=name, subject=name)
    assert len(await names(people)) > 1
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]
    many = [f"Person{chr(65 + number // 26)}{chr(97 + number % 26)}x" for number in range(500)]
    facts: list[dict[str, Any]] = []
    for start in range(0, len(many), 20):
        some = many[start : start + 20]
        named = [{"name": name, "type": "person", "role": "object"} for name in some]
        facts.append(fact_json(f"I met {', '.join(some)}", entities=named))
    commit = await people.say_facts(". ".join(fact["text"] for fact in facts), facts)
    registered = [event for event in commit.entity_events if event.event == "entity_registered"]
    assert 1 < len(registered) <= MAX_NEW_ENTITIES + 1
    assert len(commit.to_bytes()) < 1_000_000
    assert await of_ben() == before


async def test_what_is_too_long_is_no_name_and_costs_no_fact(people: NamedPeople) -> None:
    for words in (60, 2500):
        name = "Ana " * words
        told = await people.say_facts(
            f"I met {name}",
            [
                fact_json(
                    "I met somebody",
                    excerpt="I met",
                    entities=[{"name": name, "type": "person", "role": "object"}],
                )
            ],
        )
        (step,) = [step for step in told.provenance.steps if step.stage == "extract"]
        assert (len(told.events), step.reprompts) == (1, 0)
        assert [one.reason for step in told.provenance.steps for one in step.unlinked] == ["too_long"]
    assert await names(people) == [("Alice", "person")]
