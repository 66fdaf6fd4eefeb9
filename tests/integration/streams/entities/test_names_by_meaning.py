"""Things in other words, through the real stages and tables: a near name makes a possible twin, in its scope alone."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.projections.stores.entities import MAX_NEAR, EntityStore
from mnemolog.schemas.command import CommandPayload, Delete, ForgetEntity, MergeEntities, RenameEntity, SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import NameQuery
from mnemolog.schemas.entity_events import EntityRegistered
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.names import name_key
from tests.support.builders.commits import ALICE, fact_id_at
from tests.support.harnesses.named_people import NamedPeople, named_people
from tests.support.servers.unlike_embedder import UnlikeEmbedder

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
ARENA, STADIUM, GROUND = "Allianz Arena", "Bayern stadium", "Munich football ground"
MANY = [f"Ground of the {letter}" for letter in "abcdefghi"]
FIELD, PITCH, TURF = "Sports field", "Old pitch", "Green turf"


@pytest.fixture
def embedder() -> UnlikeEmbedder:
    return UnlikeEmbedder(dict.fromkeys((STADIUM, GROUND, FIELD, PITCH, TURF, "Arena 14", "Arena 15", *MANY), ARENA))


@pytest.fixture
async def people(database: str, embedder: UnlikeEmbedder) -> AsyncIterator[NamedPeople]:
    async with named_people(database, embedder=embedder) as harness:
        yield harness


async def visit(people: NamedPeople, place: str, scope: Scope = ALICE) -> Commit:
    return await people.say(f"I saw {place}", (place, "place"), scope=scope, speaker=None, subject="the user")


def registered(commit: Commit) -> EntityRegistered:
    """The first place that a turn brings."""
    events = commit.entity_events
    return next(event for event in events if isinstance(event, EntityRegistered) and event.type == "place")


async def near_to(people: NamedPeople, place: str, scope: Scope = ALICE) -> Sequence[UUID]:
    """What a new name is a possible twin of."""
    return registered(await visit(people, place, scope)).possible_twins


async def test_a_thing_in_other_words_is_a_possible_twin_and_explained(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    arena = registered(await visit(people, ARENA)).entity_id
    told = await visit(people, f"the {STADIUM}")
    assert registered(told).possible_twins == (arena,)
    explained = await memory.explain(fact_id_at(told), user_id="alice")
    found = f'its object is the {STADIUM}: "the {STADIUM}" was not known before'
    assert f"{found}, and not {ARENA}: the names are near in meaning" in explained.words
    await visit(people, STADIUM, BEN)
    assert await people.is_rebuilt_equal(in_place=True)
    assert await people.rows("SELECT count(*) FROM name_vectors") == [(3,)]
    assert len(await near_to(people, GROUND)) == 2


async def test_another_scope_s_names_are_never_seen(people: NamedPeople) -> None:
    await visit(people, ARENA, BEN)
    await visit(people, ARENA, Scope(user_id="alice", run_id="r1"))
    await visit(people, ARENA, Scope(tenant="other", user_id="alice"))
    assert await near_to(people, GROUND) == ()
    assert len(await near_to(people, STADIUM)) == 1
    assert len(await near_to(people, STADIUM, BEN)) == 1


@pytest.mark.parametrize("how", ["undone", "deleted", "forgotten"])
async def test_what_readers_do_not_see_is_near_nothing_until_an_undo(people: NamedPeople, how: str) -> None:
    told = await visit(people, ARENA)
    hide: dict[str, CommandPayload] = {
        "deleted": Delete(fact_ids=(fact_id_at(told),)),
        "forgotten": ForgetEntity(entity_id=registered(told).entity_id),
    }
    hidden = await (people.undo(told) if how == "undone" else people.order(hide[how]))
    assert await near_to(people, STADIUM) == ()
    await people.undo(hidden)
    assert registered(told).entity_id in await near_to(people, GROUND)


async def test_a_name_is_near_for_the_entity_that_a_merge_or_a_split_gave_it_to(people: NamedPeople) -> None:
    arena, hall = registered(await visit(people, ARENA)).entity_id, registered(await visit(people, "Hall")).entity_id
    merge = await people.order(MergeEntities(entity_ids=(arena,), into=hall))
    assert await near_to(people, STADIUM) == (hall,)
    await people.undo(merge)
    assert arena in await near_to(people, GROUND)
    await people.order(RenameEntity(entity_id=arena, name="Old Hall"))
    liked = await people.say(f"I like {ARENA}", (ARENA, "place"), subject="the user")
    split = SplitEntity(entity_id=arena, name=ARENA, names=(ARENA,), fact_ids=(fact_id_at(liked),))
    done = await people.order(split)
    assert done.outcome == "done", done.detail
    near = await near_to(people, MANY[0])
    assert near
    assert arena not in near


async def test_a_few_names_of_its_numbers_type_and_model_are_near(people: NamedPeople) -> None:
    await visit(people, "Arena 14")
    assert await near_to(people, "Arena 15") == ()
    await people.say(f"I watched {ARENA}", (ARENA, "product"))
    assert await near_to(people, STADIUM) == ()
    for name in MANY:
        await visit(people, name)
    assert len(await near_to(people, FIELD)) == MAX_NEAR
    await people.rows("UPDATE name_vectors SET model = 'other' RETURNING model")
    assert await near_to(people, PITCH) == ()
    await people.rows("UPDATE name_vectors SET embedding = '[1,0]' RETURNING model")
    assert await near_to(people, TURF) == ()


async def test_a_name_that_is_known_is_not_compared_with_others(people: NamedPeople, embedder: UnlikeEmbedder) -> None:
    await visit(people, ARENA)
    await visit(people, STADIUM)
    (vector,) = (await embedder.embed([STADIUM])).vectors
    asked = [NameQuery(key=name_key(STADIUM), type="place", vector=vector)]
    entities = EntityStore(people.pipeline.pool)
    assert await entities.known_entities(ALICE, heads=(), keys=(), meant=asked, near_from=0.8) == []
    await people.rows("UPDATE entity_aliases SET current_id = NULL WHERE alias = %s RETURNING alias", STADIUM)
    (near,) = await entities.known_entities(ALICE, heads=(), keys=(), meant=asked, near_from=0.8)
    assert (near.name, near.near) == (ARENA, (name_key(STADIUM),))
