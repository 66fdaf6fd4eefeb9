"""Merges, splits and forgetting of people, and their undo, look again at all that rested on who is who."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import Confirm, ForgetEntity, MergeEntities, Resolve, SplitEntity, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people
from tests.support.harnesses.resolver_harness import SimilarEmbedder

pytestmark = pytest.mark.postgres
HOME: Final[dict[str, Any]] = {"key": "home_city", "single_valued": True}


ACTIVE, OPEN, ENDED, DENIED = "active", "unresolved", "superseded", "archived"
RETRACTED = "retracted"  # by a statement, or a deletion
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
            case "forget with facts", (name,):
                commit = await self.people.order(ForgetEntity(entity_id=await self.id(name), facts=True))
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

        def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
            labels = [label for label, _ in conflict.candidates if verdict != "ADD"]
            merged = "; ".join([*(known.text for _, known in conflict.candidates), text])
            more: dict[str, Any] = {"text": merged, "search_text": merged} if verdict == "MERGE" else {}
            more |= {"ended_at": datetime(2026, 3, 20, tzinfo=UTC)} if verdict == "EXPIRE" else {}
            return decision_json(conflict.number, verdict, *labels, **more)

        self.people.model.judge = judge
        about: dict[str, Any] = {"subject": name, "entities": [{"name": name, "type": "person", "role": "subject"}]}
        about |= {"action_hint": "new" if verdict in ("ADD", "MERGE") else "update", "certainty": certainty}
        return await self.people.say(text, value=city, **HOME | about | fields)

    async def id(self, name: str) -> UUID:
        return (await self.client.entities.get(name, user_id="alice")).entity.entity_id

    async def homes(self) -> Homes:
        """Per city whether a home is active, unresolved, or what else."""
        rows = await self.people.rows(
            "SELECT value, status, unresolved FROM facts WHERE value <> '' ORDER BY recorded_at"
        )
        return {value: OPEN if unresolved else status for value, status, unresolved in rows}

    async def lives(self) -> dict[str, list[str]]:
        """Where readers see each person live."""
        found = {}
        for entity in await self.client.entities.list(user_id="alice"):
            about = await self.client.entities.get(str(entity.entity_id), user_id="alice")
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
    "forgotten with what was merged, after a move away": [
        (("lives", "Annie", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Ana", "Basel"), {"Bern": ACTIVE, "Basel": ACTIVE}),
        (("merge", "Annie", "Ana"), {"Bern": ACTIVE, "Basel": OPEN}),
        (("lives", "Ana", "Thun", "RETRACT"), {"Bern": RETRACTED, "Basel": RETRACTED, "Thun": ACTIVE}),
        (("forget with facts", "Ana"), {"Bern": RETRACTED, "Basel": RETRACTED, "Thun": RETRACTED}),
        (("undo", "-1"), {"Bern": RETRACTED, "Basel": RETRACTED, "Thun": ACTIVE}),
    ],
    "a home of another Tom": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "-1"), {"Bern": ENDED, "Oslo": ACTIVE}),
    ],
    "another of the name since one was forgotten": [
        (("lives", "Ana", "Basel"), {"Basel": ACTIVE}),
        (("forget", "Ana"), {"Basel": ACTIVE}),
        (("lives", "Ana", "Chur", "REPLACE"), {"Basel": ENDED, "Chur": ACTIVE}),
        (("undo", "-1"), {"Basel": ACTIVE, "Chur": ACTIVE}),
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
    "a move is undone, and again in effect after the split": [
        (("lives", "Tom", "Bern"), {"Bern": ACTIVE}),
        (("lives", "Tom", "Oslo", "REPLACE"), {"Bern": ENDED, "Oslo": ACTIVE}),
        (("split", "Tom", "Tom Berg", "Oslo"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("take back", "Oslo"), {"Bern": ACTIVE, "Oslo": "undone"}),
        (("undo", "-1"), {"Bern": ACTIVE, "Oslo": ACTIVE}),
        (("undo", "0"), {"Bern": ENDED, "Oslo": ACTIVE}),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_what_rested_on_who_is_who_is_looked_at_again(talk: Talk, story: Story) -> None:
    for place, (step, expected) in enumerate(story):
        await talk.do(*step)
        assert await talk.homes() == expected, (place, step)
    assert await talk.people.is_rebuilt_equal()


ENDS: Final[dict[str, dict[str, Any]]] = {
    "told": {"verdict": "RETRACT", "action_hint": "retract"},
    "announced": {"verdict": "EXPIRE", "action_hint": "retract", "valid_until": "2026-03-20T00:00:00+00:00"},
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_an_end_that_was_told_of_another_person_is_taken_back(talk: Talk, end: dict[str, Any]) -> None:
    await talk.do("lives", "Tom", "Bern")
    ended = await talk.say("Tom leaves Bern", "Tom", "Bern", **end)
    (told,) = [event.new_fact for event in ended.events if event.new_fact]
    query = "SELECT status, true_to IS NOT NULL FROM facts WHERE text = 'Tom lives in Bern'"
    (before,) = await talk.people.rows(query)
    assert before[1]
    split = SplitEntity(entity_id=await talk.id("Tom"), name="Tom Berg", fact_ids=(told.fact_id,))
    commit = await talk.people.order(split)
    assert await talk.people.rows(query) == [("active", False)]
    await talk.people.undo(commit)
    assert await talk.people.rows(query) == [before]
    assert await talk.people.is_rebuilt_equal()


@pytest.mark.parametrize("verdict", ["REPLACE", "RETRACT", "CONTRADICT", "EXPIRE"])
@pytest.mark.parametrize("slot", [HOME, {"key": None, "single_valued": False}], ids=["a home", "no slot"])
async def test_an_end_that_a_split_took_back_comes_with_its_undo(
    database: str, verdict: str, slot: dict[str, Any]
) -> None:
    query = "SELECT status, true_to FROM facts WHERE value = 'Bern'"
    async with (
        named_people(database, embedder=SimilarEmbedder()) as people,
        AsyncMemoryClient(postgres=database) as client,
    ):
        talk = Talk(people, client)
        await talk.say("Tom lives in Bern", "Tom", "Bern", certainty="weak", **slot)
        (begun,) = await people.rows(query)
        await talk.say("Tom lives in Rome", "Tom", "Rome", verdict, **slot)
        (ended,) = await people.rows(query)
        assert ended != begun
        await talk.do("split", "Tom", "Tom Berg", "Rome")
        assert await people.rows(query) == [begun]
        await talk.do("undo", "-1")
        assert await people.rows(query) == [ended]
        assert await people.is_rebuilt_equal()


async def test_what_was_merged_of_two_is_a_question_when_they_are_two_again(talk: Talk) -> None:
    await talk.do("lives", "Annie", "Bern")
    await talk.people.say("Ana likes tea", ("Ana", "person"))
    merge = await talk.do("merge", "Annie", "Ana")
    await talk.say("Ana lives in the old town of Bern", "Ana", "Bern", "MERGE")
    query = "SELECT text, status, unresolved FROM facts WHERE value = 'Bern' ORDER BY recorded_at, ordinal"
    both = "Annie lives in Bern; Ana lives in the old town of Bern"
    merged = [("Annie lives in Bern", ENDED, False), (both, ACTIVE, False)]
    assert await talk.people.rows(query) == merged
    parted = await talk.people.undo(merge)
    two = [("Annie lives in Bern", ACTIVE, False), (both, ACTIVE, True)]
    assert await talk.people.rows(query) == two
    await talk.people.undo(parted)
    assert await talk.people.rows(query) == merged
    assert await talk.people.is_rebuilt_equal()


async def test_former_versions_of_a_fact_go_with_it_where_it_is_split_off(talk: Talk) -> None:
    await talk.do("lives", "Tom", "Bern")
    await talk.say("Tom lives in the old town of Bern", "Tom", "Bern", "MERGE")
    fact_ids = [fact_id for (fact_id,) in await talk.people.rows("SELECT fact_id FROM facts WHERE status = 'active'")]
    split = SplitEntity(entity_id=await talk.id("Tom"), name="Tom Berg", fact_ids=tuple(fact_ids))
    commit = await talk.people.order(split)
    assert (commit.outcome, commit.events) == ("done", ())
    homes = await talk.lives()
    assert (homes["Tom"], homes["Tom Berg"]) == ([], ["Bern"])


async def test_an_explanation_says_what_was_looked_at_again_and_why(talk: Talk) -> None:
    await talk.do("lives", "Tom", "Bern")
    await talk.do("lives", "Tom", "Oslo", "REPLACE")
    await talk.do("split", "Tom", "Tom Berg", "Oslo")
    await talk.do("lives", "Annie", "Chur")
    merge = await talk.do("merge", "Annie", "Tom")
    fact_ids = {str(one.value): one.fact_id for one in await talk.client.facts(user_id="alice")}
    said = {
        "Bern": 'end was taken back, because of "Tom lives in Oslo", in command-2: a person split Tom Berg from Tom',
        "Chur": 'it is unresolved beside "Tom lives in Bern", in command-4: a person merged Annie into Tom.',
    }
    for city, words in said.items():
        assert any(words in one for one in (await talk.client.explain(fact_ids[city])).words)
    (event,) = merge.events
    refused = await talk.people.order(Undo(event_id=event.event_id))
    assert (refused.outcome, refused.reason) == ("rejected", "nothing_to_undo")


async def test_a_confirmed_merge_of_what_turns_proposed_is_a_merge(talk: Talk) -> None:
    await talk.do("lives", "Ana", "Basel")
    await talk.do("lives", "my wife", "Bern")
    await talk.people.say("I met my wife Ana", ("my wife Ana", "person"))
    (waiting,) = await talk.client.pending(user_id="alice")
    confirmed = await talk.people.order(Confirm(fact_ids=(waiting.event_id,)))
    assert await talk.homes() == {"Basel": ACTIVE, "Bern": OPEN}
    await talk.people.undo(confirmed)
    assert await talk.homes() == {"Basel": ACTIVE, "Bern": ACTIVE}


async def test_a_question_takes_no_fact_back(talk: Talk) -> None:
    await talk.do("lives", "Annie", "Bern")
    await talk.do("lives", "Ana Keller", "Basel")
    await talk.do("merge", "Annie", "Ana Keller")
    await talk.do("lives", "Ana Keller", "Chur", "REPLACE")
    assert await talk.people.rows("SELECT value FROM facts WHERE is_hidden") == []


@pytest.mark.parametrize("how", ["resolve", "confirm"])
async def test_who_was_known_by_a_fact_that_a_person_has_ended_is_known_still(talk: Talk, how: str) -> None:
    """What a person settles to have ended is not deleted: its names stay, and so does what its turn said."""
    await talk.say("Annie lives in Bern", "Annie", "Bern", category="health")
    if how == "resolve":
        await talk.do("lives", "Ana Keller", "Basel")
        await talk.do("merge", "Ana Keller", "Annie")
        await talk.do("resolve", "Basel", "replace")
        assert await talk.homes() == {"Bern": ENDED, "Basel": ACTIVE}
    else:
        held = await talk.say("She lives in Oslo", "Annie", "Oslo", "REPLACE", "weak", category="health")
        (waiting,) = [event.new_fact for event in held.events if event.new_fact]
        assert await talk.homes() == {"Bern": ACTIVE, "Oslo": "pending_confirmation"}
        await talk.people.order(Confirm(fact_ids=(waiting.fact_id,)))
        assert await talk.homes() == {"Bern": ENDED, "Oslo": ACTIVE}
    known = await talk.client.entities.get("Annie", user_id="alice")
    assert known.name == "Annie"
    assert await talk.people.rows("SELECT value FROM facts WHERE is_hidden") == []
    assert await talk.people.is_rebuilt_equal()
