"""Things in other words, through the real stages and tables: a near name makes a possible twin, in its scope alone."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.entities import MAX_NEAR, EntityStore
from mnemolog.schemas.command import Delete, ForgetEntity, MergeEntities, RenameEntity, SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import NameQuery
from mnemolog.schemas.entity_events import EntityRegistered
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.names import name_key
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.named_people import NamedPeople, named_people
from tests.support.servers.unlike_embedder import UnlikeEmbedder

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
ARENA, STADIUM, GROUND = "Allianz Arena", "Bayern stadium", "Munich football ground"
MANY = [f"Ground of the {letter}" for letter in "abcdefghij"]


@pytest.fixture
def embedder() -> UnlikeEmbedder:
    return UnlikeEmbedder(dict.fromkeys((STADIUM, GROUND, "Arena 14", "Arena 15", *MANY), ARENA))


@pytest.fixture
async def people(database: str, embedder: UnlikeEmbedder) -> AsyncIterator[NamedPeople]:
    async with named_people(database, embedder=embedder) as harness:
        yield harness


async def visit(people: NamedPeople, place: str, scope: Scope = ALICE) -> Commit:
    return await people.say(f"I saw {place}", (place, "place"), scope=scope, speaker=None, subject="the user")


def registered(commit: Commit) -> UUID:
    """The first place that a turn brings."""
    return next(
        event.entity_id
        for event in commit.entity_events
        if isinstance(event, EntityRegistered) and event.type == "place"
    )


async def twins(people: NamedPeople, name: str) -> list[str]:
    """The names of the possible twins of an entity."""
    query = """SELECT other.name FROM entities AS one JOIN current_entity_twins USING (entity_id)
        JOIN entities AS other ON other.entity_id = twin_id WHERE one.name = %s ORDER BY other.name"""
    return [twin for (twin,) in await people.rows(query, name)]


async def near_to(people: NamedPeople, place: str = GROUND, scope: Scope = ALICE) -> Sequence[UUID]:
    """What a new name is a possible twin of."""
    commit = await visit(people, place, scope)
    events = [event for event in commit.entity_events if isinstance(event, EntityRegistered) and event.type == "place"]
    return events[0].possible_twins


async def test_a_thing_in_other_words_is_a_possible_twin_and_explained(people: NamedPeople, database: str) -> None:
    await visit(people, ARENA)
    told = await visit(people, f"the {STADIUM}")
    assert await twins(people, f"the {STADIUM}") == [ARENA]
    async with AsyncMemoryClient(postgres=database) as memory:
        assert told.events[0].new_fact is not None
        explained = await memory.explain(told.events[0].new_fact.fact_id, user_id="alice")
    assert (
        f'its object is the {STADIUM}: "the {STADIUM}" was not known before; compared by meaning, it may be {ARENA}'
        in explained.words
    )


async def test_a_rebuild_gives_equal_vectors(people: NamedPeople, database: str) -> None:
    await visit(people, ARENA)
    await visit(people, STADIUM)
    await visit(people, STADIUM, BEN)
    report = await rebuild(database, TableLogSource(people.pipeline.pool))
    assert report.equal
    assert {table.table: table.rebuilt_rows for table in report.tables}["name_vectors"] == 3
    assert len(await near_to(people)) == 2


async def test_another_scope_s_names_are_never_seen(people: NamedPeople) -> None:
    await visit(people, ARENA, BEN)
    await visit(people, ARENA, Scope(user_id="alice", run_id="r1"))
    await visit(people, ARENA, Scope(tenant="other", user_id="alice"))
    assert await near_to(people) == ()
    assert len(await near_to(people, STADIUM)) == 1
    assert len(await near_to(people, STADIUM, BEN)) == 1


async def test_an_undone_name_is_near_nothing_until_it_is_told_again(people: NamedPeople) -> None:
    undo = await people.undo(await visit(people, ARENA))
    assert await near_to(people, STADIUM) == ()
    await people.undo(undo)
    assert len(await near_to(people)) == 2


async def test_what_a_deletion_hides_is_near_nothing(people: NamedPeople) -> None:
    (event,) = (await visit(people, ARENA)).events
    assert event.new_fact is not None
    await people.order(Delete(fact_ids=(event.new_fact.fact_id,)))
    assert await near_to(people) == ()


async def test_what_is_forgotten_is_near_nothing(people: NamedPeople) -> None:
    await people.order(ForgetEntity(entity_id=registered(await visit(people, ARENA))))
    assert await near_to(people) == ()


async def test_the_name_of_a_merged_one_is_near_for_the_other(people: NamedPeople) -> None:
    arena, hall = registered(await visit(people, ARENA)), registered(await visit(people, "Main Hall"))
    merge = await people.order(MergeEntities(entity_ids=(arena,), into=hall))
    assert await near_to(people, STADIUM) == (hall,)
    await people.undo(merge)
    assert arena in await near_to(people)


async def test_a_name_that_a_split_moves_is_no_longer_near_for_the_old_one(people: NamedPeople) -> None:
    arena = registered(await visit(people, ARENA))
    await people.order(RenameEntity(entity_id=arena, name="Old Hall"))
    facts = await people.say(f"I like {ARENA}", (ARENA, "place"), subject="the user")
    assert facts.events[0].new_fact is not None
    split = SplitEntity(entity_id=arena, name=ARENA, names=(ARENA,), fact_ids=(facts.events[0].new_fact.fact_id,))
    done = await people.order(split)
    assert done.outcome == "done", done.detail
    assert arena not in await near_to(people)


async def test_names_of_other_numbers_and_types_are_left_out(people: NamedPeople) -> None:
    await visit(people, "Arena 14")
    assert await near_to(people, "Arena 15") == ()
    await people.say(f"I watched {ARENA}", (ARENA, "product"))
    assert await near_to(people, STADIUM) == ()


async def test_of_many_near_names_a_few_are_possible_twins(people: NamedPeople) -> None:
    for name in MANY:
        await visit(people, name)
    assert len(await near_to(people)) == MAX_NEAR


async def test_vectors_of_another_model_or_length_are_not_compared(people: NamedPeople) -> None:
    await visit(people, ARENA)
    await people.rows("UPDATE name_vectors SET model = 'other' RETURNING model")
    assert await near_to(people) == ()
    await people.rows("UPDATE name_vectors SET embedding = '[1,0]' RETURNING model")
    assert await near_to(people, STADIUM) == ()


async def test_a_hostile_turn_embeds_a_bounded_number_of_names(people: NamedPeople, embedder: UnlikeEmbedder) -> None:
    names = [f"Place{chr(65 + number // 26)}{chr(97 + number % 26)}" for number in range(500)]
    facts = []
    for some in (names[start : start + 20] for start in range(0, len(names), 20)):
        entities = [{"name": name, "type": "place", "role": "object"} for name in some]
        facts.append(fact_json(f"I saw {', '.join(some)}", entities=entities))
    commit = await people.say_facts(". ".join(fact["text"] for fact in facts), facts)
    assert commit.outcome == "facts"
    assert [text for text in embedder.texts if text.startswith("Place")] == names[:20]
    assert await people.rows("SELECT count(*) FROM name_vectors") == [(20,)]


async def test_with_the_threshold_0_names_are_neither_embedded_nor_compared(
    database: str, embedder: UnlikeEmbedder
) -> None:
    async with named_people(database, embedder=embedder, name_twin_threshold=0) as people:
        await visit(people, ARENA)
        assert await near_to(people) == ()
        assert ARENA not in embedder.texts
        assert await people.rows("SELECT FROM name_vectors") == []


async def test_a_name_that_is_known_is_not_compared_with_others(people: NamedPeople, embedder: UnlikeEmbedder) -> None:
    await visit(people, ARENA)
    await visit(people, STADIUM)
    (vector,) = (await embedder.embed([STADIUM])).vectors
    asked = [NameQuery(key=name_key(STADIUM), type="place", vector=vector)]
    entities = EntityStore(people.pipeline.pool)
    assert await entities.known_entities(ALICE, heads=(), keys=(), meant=asked, near_from=0.8) == []
    await people.rows("UPDATE entity_aliases SET is_current = false WHERE alias = %s RETURNING alias", STADIUM)
    (near,) = await entities.known_entities(ALICE, heads=(), keys=(), meant=asked, near_from=0.8)
    assert (near.name, near.near) == (ARENA, (name_key(STADIUM),))
