"""What turns tell of known entities: a first proper name, what they are, other names, and that two are one."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import Confirm, MergeEntities, Reject, RenameEntity, SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.texts import name_sentence
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Family:
    """What readers see of the people of a user."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient, database: str) -> None:
        self.people = people
        self.client = client
        self.database = database

    async def seen(self) -> dict[str, str]:
        """The entities by name with their types, the user left out."""
        assert (await rebuild(self.database, TableLogSource(self.people.pipeline.pool), verify_only=True)).equal
        return {one.name: one.type for one in await self.client.entities(user_id="alice") if not one.is_user}

    async def who(self, tie: str) -> list[str]:
        return [one.name for one in await self.client.who(tie, user_id="alice")]


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Family(people, client, database)


async def test_the_first_proper_name_takes_the_place_of_the_tie(family: Family) -> None:
    await family.people.say("My mother lives in Bern", ("my mother", "person"))
    named = await family.people.say("My mother Rosa sings", ("my mother Rosa", "person"))
    assert (await family.seen(), await family.who("my mother")) == ({"Rosa": "person"}, ["Rosa"])
    (rosa,) = await family.client.who("my mother", user_id="alice")
    assert "my mother" in rosa.aliases
    undo = await family.people.undo(named)
    assert await family.seen() == {"my mother": "person"}
    await family.people.undo(undo)
    renamed = await family.people.order(RenameEntity(entity_id=rosa.entity_id, name="Rosalinde"))
    assert await family.seen() == {"Rosalinde": "person"}
    await family.people.undo(renamed)
    assert await family.seen() == {"Rosa": "person"}


async def test_what_is_merged_into_a_tie_names_it(family: Family) -> None:
    await family.people.say("Ana likes tea", ("Ana", "person"))
    await family.people.say("My wife sings", ("my wife", "person"))
    ids = {one.name: one.entity_id for one in await family.client.entities(user_id="alice")}
    merge = await family.people.order(MergeEntities(entity_ids=(ids["Ana"],), into=ids["my wife"]))
    assert await family.seen() == {"Ana": "person"}
    await family.people.undo(merge)
    assert await family.seen() == {"Ana": "person", "my wife": "person"}


async def test_what_nobody_told_is_the_first_type_that_a_turn_tells(family: Family) -> None:
    await family.people.say("I met Ana", ("Ana", "other"))
    told = await family.people.say("My wife Ana sings", ("my wife Ana", "other"))
    assert await family.seen() == {"Ana": "person"}
    undo = await family.people.undo(told)
    assert await family.seen() == {"Ana": "other"}
    await family.people.undo(undo)
    assert await family.seen() == {"Ana": "person"}


async def test_an_extraction_tells_a_type_without_another_name(family: Family) -> None:
    await family.people.say("I know Acme", ("Acme", "other"))
    await family.people.say("I work for Acme", ("Acme", "organisation"))
    assert await family.seen() == {"Acme": "organisation"}


def same(one: str, other: str, predicate: str = "same_as") -> list[dict[str, str]]:
    return [{"subject": one, "predicate": predicate, "object": other, "strength": "strong"}]


async def people_of(family: Family) -> dict[str, list[str]]:
    """The entities by name with their other names, the user left out."""
    assert (await rebuild(family.database, TableLogSource(family.people.pipeline.pool), verify_only=True)).equal
    return {one.name: one.aliases for one in await family.client.entities(user_id="alice") if not one.is_user}


async def pending(family: Family) -> list[PendingMerge]:
    return [one for one in await family.client.pending(user_id="alice") if isinstance(one, PendingMerge)]


ELIZABETH = "Elizabeth, whom everyone calls Bee, sings"


@pytest.mark.parametrize("predicate", ["same_as", "also known as", "nickname_of"])
@pytest.mark.parametrize("names", [("Bee", "Elizabeth"), ("Elizabeth", "Bee")])
async def test_a_turn_tells_another_name(family: Family, names: tuple[str, str], predicate: str) -> None:
    said = await family.people.say(
        ELIZABETH, ("Bee", "person"), ("Elizabeth", "person"), subject="Elizabeth", relations=same(*names, predicate)
    )
    assert await people_of(family) == {"Elizabeth": ["Bee"]}
    assert not await family.client.relations(user_id="alice")
    assert not await pending(family)
    await family.people.say("Bee runs", ("Bee", "person"))
    assert len((await family.client.entity("Elizabeth", user_id="alice")).facts) == 2
    undo = await family.people.undo(said)
    assert await people_of(family) == {"Bee": []}
    await family.people.say("Bee swims", ("Bee", "person"))
    assert len((await family.client.entity("Bee", user_id="alice")).facts) == 2
    await family.people.undo(undo)
    assert await people_of(family) == {"Elizabeth": ["Bee"]}


async def test_a_name_that_nothing_but_an_undone_turn_says_goes_with_it(family: Family) -> None:
    await family.people.say("Elizabeth sings", ("Elizabeth", "person"))
    said = await family.people.say(ELIZABETH, ("Elizabeth", "person"), relations=same("Elizabeth", "Bee"))
    await family.people.say("Elizabeth has seen a bee", ("Elizabeth", "person"))
    assert await people_of(family) == {"Elizabeth": ["Bee"]}
    await family.people.undo(said)
    assert await people_of(family) == {"Elizabeth": []}
    await family.people.say("Bee runs", ("Bee", "person"))
    assert await people_of(family) == {"Elizabeth": [], "Bee": []}


async def test_a_name_that_nobody_said_is_dropped_with_a_note(family: Family) -> None:
    said = await family.people.say("Elizabeth sings", ("Elizabeth", "person"), relations=same("Elizabeth", "Liz"))
    assert await people_of(family) == {"Elizabeth": []}
    missing = await family.client.why_not(said.source_id, user_id="alice")
    assert [(one.name, one.left_out) for one in missing.names if one.left_out] == [("Liz", "not_said")]


async def test_two_known_entities_that_are_said_to_be_one_wait_for_a_person(family: Family) -> None:
    waiting = await said_to_be_one(family)
    assert (waiting.merged_name, waiting.into_name, waiting.decided_by) == ("Liv", "Bea", "model")
    assert waiting.reason == '"Bea and Liv are the same person" says that Liv is Bea'
    confirmed = await family.people.order(Confirm(fact_ids=(waiting.event_id,)))
    assert await people_of(family) == {"Bea": ["Liv"]}
    await family.people.undo(confirmed)
    assert await people_of(family) == {"Bea": [], "Liv": []}
    assert await pending(family)


async def said_to_be_one(family: Family) -> PendingMerge:
    for name in ("Bea", "Liv"):
        await family.people.say(f"{name} runs", (name, "person"))
    await say_they_are_one(family, "Bea", "Liv")
    assert await people_of(family) == {"Bea": [], "Liv": []}
    assert not await family.client.relations(user_id="alice")
    (waiting,) = await pending(family)
    return waiting


async def say_they_are_one(family: Family, one: str, other: str) -> Commit:
    text = f"{one} and {other} are the same person"
    return await family.people.say(text, (one, "person"), (other, "person"), relations=same(one, other))


@pytest.mark.parametrize("names", [("Bea", "Liv"), ("Liv", "Bea")])
async def test_what_a_person_rejected_holds_against_a_model_both_ways(family: Family, names: tuple[str, str]) -> None:
    waiting = await said_to_be_one(family)
    await family.people.order(Reject(fact_ids=(waiting.event_id,)))
    await say_they_are_one(family, *names)
    assert (await pending(family), await people_of(family)) == ([], {"Bea": [], "Liv": []})


@pytest.mark.parametrize("names", [("Bea", "Liv"), ("Liv", "Bea")])
async def test_what_a_person_split_or_merged_holds_against_a_model(family: Family, names: tuple[str, str]) -> None:
    await family.people.say(
        "Bea, whom they call Liv, runs", ("Bea", "person"), ("Liv", "person"), relations=same("Bea", "Liv")
    )
    (bea,) = [one for one in await family.client.entities(user_id="alice") if not one.is_user]
    split = await family.people.order(SplitEntity(entity_id=bea.entity_id, name="Liv", names=("Liv",), fact_ids=()))
    assert split.outcome == "done"
    await say_they_are_one(family, *names)
    assert (await pending(family), await people_of(family)) == ([], {"Bea": [], "Liv": []})
    liv = (await family.client.entity("Liv", user_id="alice")).entity
    await family.people.order(MergeEntities(entity_ids=(liv.entity_id,), into=bea.entity_id))
    await say_they_are_one(family, *names)
    assert (await pending(family), await people_of(family)) == ([], {"Bea": ["Liv"]})


async def test_who_claims_to_be_somebody_waits_for_a_person(family: Family) -> None:
    await family.people.say("Bob runs", ("Bob", "person"))
    await family.people.say("I am Bob and I sing", relations=same("Bob", "Alice"))
    assert await people_of(family) == {"Bob": []}
    (waiting,) = await pending(family)
    assert (waiting.merged_name, waiting.into_name) == ("Bob", "Alice")


async def test_a_name_that_would_move_stays_and_the_turn_tells_whose_it_is(family: Family) -> None:
    await family.people.say("I fly to Paris", ("Paris", "place"))
    city = (await family.client.entity("Paris", user_id="alice")).entity
    said = await family.people.say("Ana, whom they call Paris, runs", ("Ana", "person"), relations=same("Ana", "Paris"))
    assert await people_of(family) == {"Paris": [], "Ana": []}
    missing = await family.client.why_not(said.source_id, user_id="alice")
    (taken,) = [one for one in missing.names if one.left_out]
    assert (taken.name, taken.entity_id, taken.entity) == ("Paris", city.entity_id, "Paris")
    assert name_sentence(taken) == "left out: it stays the name of who had it first (Paris, since 2026-03-02)"
