"""Merges, splits and forgetting of people, and their undo, look again at all that rested on who is who."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import ForgetEntity, MergeEntities, Resolve, SplitEntity, Undo
from mnemolog.schemas.commit import Commit
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: Final = {"key": "home_city", "single_valued": True}


ACTIVE, OPEN, ENDED, DENIED = "active", "unresolved", "superseded", "archived"
Homes = dict[str, str]
Step = tuple[str, ...]
Story = list[tuple[Step, Homes]]


@dataclass
class Talk:
    """People and their homes: what is said of them, which commands are sent, and what holds after each."""

    people: NamedPeople
    client: AsyncMemoryClient
    commits: list[Commit] = field(default_factory=list)

    async def do(self, what: str, *words: str) -> Commit:
        """One step; `undo -1` takes back the last command."""
        match what, words:
            case "undo", (place,):
                commit = await self.people.undo(self.commits[int(place)])
            case "merge", names:
                *merged, into = [await self.id(name) for name in names]
                commit = await self.people.order(MergeEntities(entity_ids=tuple(merged), into=into))
            case "split", (name, new, *cities):
                found = await self.people.rows("SELECT fact_id FROM facts WHERE value = ANY(%s)", cities)
                fact_ids = tuple(fact_id for (fact_id,) in found)
                payload = SplitEntity(entity_id=await self.id(name), name=new, fact_ids=fact_ids)
                commit = await self.people.order(payload)
            case "forget", (name,):
                commit = await self.people.order(ForgetEntity(entity_id=await self.id(name)))
            case "take back", (city,):
                ((source_id,),) = await self.people.rows("SELECT source_id FROM facts WHERE value = %s", city)
                commit = await self.people.order(Undo(source_id=source_id))
            case "resolve", (city, action):
                ((fact_id,),) = await self.people.rows("SELECT fact_id FROM facts WHERE value = %s", city)
                commit = await self.people.order(Resolve.model_validate({"fact_id": fact_id, "action": action}))
            case "lives", (name, city, *verdict):
                return await self.say(f"{name} lives in {city}", name, city, *verdict)
            case _:
                raise AssertionError(what)
        self.commits.append(commit)
        assert (commit.outcome, commit.detail) == ("done", ""), (what, words)
        return commit

    async def say(
        self, text: str, name: str, city: str, verdict: str = "ADD", certainty: str = "explicit", **fields: Any
    ) -> Commit:
        """A turn about the home of somebody; with a verdict it ends the homes that the model is shown."""
        more = {"text": text, "search_text": text} if verdict == "MERGE" else {}
        self.people.model.judge = lambda conflict: decision_json(
            conflict.number, verdict, *(label for label, _ in conflict.candidates if verdict != "ADD"), **more
        )
        about = {"subject": name, "entities": [{"name": name, "type": "person", "role": "subject"}]}
        hint = {"action_hint": "update"} if verdict != "ADD" else {}
        return await self.people.say(text, value=city, **HOME | about | hint | {"certainty": certainty} | fields)

    async def id(self, name: str) -> UUID:
        return (await self.client.entity(name, user_id="alice")).entity.entity_id

    async def homes(self) -> Homes:
        """Per city whether a home is active, unresolved, or what else."""
        rows = await self.people.rows("SELECT value, status, unresolved FROM facts ORDER BY recorded_at, ordinal")
        return {value: OPEN if unresolved else status for value, status, unresolved in rows}

    async def questions(self) -> dict[str, list[str]]:
        """The values of unresolved facts, each with the values beside it."""
        asked = await self.client.unresolved(user_id="alice")
        return {str(one.fact.value): sorted(known.text.split()[-1] for known in one.beside) for one in asked}

    async def lives(self) -> dict[str, list[str]]:
        """Where readers see each person live."""
        found = {}
        for entity in await self.client.entities(user_id="alice"):
            about = await self.client.entity(str(entity.entity_id), user_id="alice")
            found[entity.name] = [str(one.fact.value) for one in about.facts if one.fact.key == "home_city"]
        return found


@pytest.fixture
async def talk(database: str) -> AsyncIterator[Talk]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Talk(people, client)


STORIES: Final[dict[str, Story]] = {
    "two homes": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana Keller", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana Keller"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("undo", "-1"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("undo", "-1"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("resolve", "Basel", "replace"), {"Bern": ENDED, "Basel": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Basel": ACTIVE}),
    ],
    "the newer home is that of the merged": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana Keller", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Ana Keller", "Annie"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("resolve", "Basel", "contradict"), {"Bern": DENIED, "Basel": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("undo", "-1"), {"Bern": DENIED, "Basel": ACTIVE}),
    ],
    "one home": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana Keller", "bern"), {"Bern": ACTIVE, "bern": ACTIVE}),
        (("merge", "Annie", "Ana Keller"), {"Bern": ACTIVE, "bern": ACTIVE}),
        (("undo", "-1"), {"Bern": ACTIVE, "bern": ACTIVE}),
    ],
    "a home that had ended": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Annie", "Thun", "REPLACE"), {"Bern": ENDED, "Thun": ACTIVE}),
        (("lives", "Ana Keller", "Basel"), {"Bern": ENDED, "Thun": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana Keller"), {"Bern": ENDED, "Thun": ACTIVE, "Basel": OPEN}),
        (("undo", "-1"), {"Bern": ENDED, "Thun": ACTIVE, "Basel": ACTIVE}),
    ],
    "a move after the merge": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("lives", "Ana", "Chur", "REPLACE"), {"Bern": ENDED, "Basel": ENDED, "Chur": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Basel": ENDED, "Chur": ACTIVE}),
    ],
    "a denial after the merge": [
        (("lives", "Annie", "Bern", "ADD", "weak"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel", "ADD", "weak"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("lives", "Ana", "Chur", "CONTRADICT"), {"Bern": DENIED, "Basel": DENIED, "Chur": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": DENIED, "Chur": ACTIVE}),
        (("undo", "-1"), {"Bern": DENIED, "Basel": DENIED, "Chur": ACTIVE}),
    ],
    "a home of another Tom": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ACTIVE}),
    ],
    "the older home is of the other Tom": [
        (("lives", "Tom", "Bern", "ADD", "weak"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "CONTRADICT"), {"Bern": DENIED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Bern"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": DENIED, "Oslo": ACTIVE}),
    ],
    "a home between two of the other Tom": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("lives", "Tom", "Chur", "REPLACE"), {"Bern": ENDED, "Oslo": ENDED, "Chur": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ENDED, "Oslo": ACTIVE, "Chur": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ENDED, "Chur": ACTIVE}),
    ],
    "three of one person, parted in order": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("lives", "Hanna", "Chur"), {"Bern": ACTIVE, "Basel": ACTIVE, "Chur": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": ACTIVE}),
        (("merge", "Ana", "Hanna"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": OPEN}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ACTIVE, "Chur": OPEN}),
        (("undo", "1"), {"Bern": ACTIVE, "Basel": ACTIVE, "Chur": ACTIVE}),
        (("undo", "2"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": ACTIVE}),
        (("undo", "3"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": OPEN}),
    ],
    "three of one person, the last one parted first": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("lives", "Hanna", "Chur"), {"Bern": ACTIVE, "Basel": ACTIVE, "Chur": ACTIVE}),
        (("merge", "Annie", "Hanna", "Ana"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": OPEN}),
        (("lives", "Ana", "Olten", "REPLACE"), {"Bern": ENDED, "Basel": ENDED, "Chur": ENDED, "Olten": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": ACTIVE, "Olten": ACTIVE}),
    ],
    "forgotten and known again": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("forget", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("undo", "-1"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ACTIVE}),
    ],
    "another of the name since one was forgotten": [
        (("lives", "Ana", "Basel"), {"Basel": ACTIVE}),
        (("forget", "Ana"), {"Basel": ACTIVE}),
        (("lives", "Ana", "Chur", "REPLACE"), {"Basel": ENDED, "Chur": ACTIVE}),
        (("undo", "-1"), {"Basel": ACTIVE, "Chur": ACTIVE}),
    ],
    "a turn is undone after the split": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("take back", "Oslo"), {"Bern": ACTIVE, "Oslo": "undone"}),
        (("undo", "0"), {"Bern": ACTIVE, "Oslo": "undone"}),
    ],
    "a turn is undone after the split was": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("take back", "Oslo"), {"Bern": ACTIVE, "Oslo": "undone"}),
    ],
    "the move is undone after the merge was": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("lives", "Ana", "Chur", "REPLACE"), {"Bern": ENDED, "Basel": ENDED, "Chur": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": ACTIVE}),
        (("take back", "Chur"), {"Bern": ACTIVE, "Basel": ACTIVE, "Chur": "undone"}),
        (("undo", "-2"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": "undone"}),
    ],
    "a move is undone after the merge": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("lives", "Ana", "Chur", "REPLACE"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": OPEN}),
        (("take back", "Chur"), {"Bern": ACTIVE, "Basel": OPEN, "Chur": "undone"}),
        (("undo", "-1"), {"Bern": ACTIVE, "Basel": ENDED, "Chur": OPEN}),
    ],
    "a move is undone, and again in effect after the split": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("take back", "Oslo"), {"Bern": ACTIVE, "Oslo": "undone"}),
        (("undo", "-1"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "0"), {"Bern": ENDED, "Oslo": ACTIVE}),
    ],
    "a home is told again of who was parted": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "0"), {"Bern": ACTIVE, "Oslo": OPEN}),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_what_rested_on_who_is_who_is_looked_at_again(talk: Talk, story: Story) -> None:
    for place, (step, expected) in enumerate(story):
        await talk.do(*step)
        assert await talk.homes() == expected, (place, step)
    assert await talk.people.is_rebuilt_equal()
