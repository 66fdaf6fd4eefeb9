"""A search brings facts through the entities that its question names: by names, and by what they are to somebody."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.projections.search.options import Fusion
from mnemolog.schemas.command import Delete
from mnemolog.schemas.entities.commands import ForgetEntity, MergeEntities
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
RUN: Final = Scope(user_id="alice", run_id="r1")
BEN: Final = Scope(user_id="ben")
COUNTED: Final[dict[str, Any]] = {"weights": {"entities": 0.2}}


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as people:
        yield people


@pytest.fixture
async def memory(database: str) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


async def fill(people: NamedPeople) -> None:
    await people.say("My wife Ana Keller paints", ("my wife Ana Keller", "person"))
    await people.say("She plays chess", subject="Ana Keller", speaker="Alice")
    await people.say("Rex bites", ("my dog Rex", "animal"), subject="my dog Rex")
    await people.say("He snores", subject="Rex")
    await people.say("Hates rain", ("Ana Keller's dog Bello", "animal"), subject="Ana Keller's dog Bello")
    await people.say("Barks", subject="Bello")
    await people.say("Sings at night", ("Tom from work", "person"), subject="Tom from work")
    await people.say("I like tea")


async def brought(memory: AsyncMemoryClient, question: str, **asked: Any) -> set[str]:
    """What the entities of the question bring."""
    found = await memory.search(question, **{"user_id": "alice", **COUNTED, **asked})
    return {hit.fact.text for hit in found if hit.score.entities_part > 0}


WIFE: Final = {"My wife Ana Keller paints", "She plays chess", "Hates rain"}
BELLO: Final = {"Hates rain", "Barks"}


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What is the hobby of Ana Keller?", WIFE),
        ("what is ana keller's hobby", WIFE),
        ("What does my wife do?", WIFE),
        ("Was macht meine Frau?", WIFE),
        ("Was macht meine Frau Sonntags?", WIFE),
        ("Is our dog loud?", {"Rex bites", "He snores"}),
        ("Is Rex\u2019s sleep good?", {"Rex bites", "He snores"}),
        ("Does my wife's dog go out?", BELLO),
        ("Does Ana Keller's dog go out?", BELLO | WIFE),
        ("What does Tom do?", {"Sings at night"}),
        ("What does Alice like?", set()),
        ("What do I like?", set()),
        ("my husband's cat, the cat of Bo and my wife's cat", set()),
        ("%s {0} \\ ' \"", set()),
    ],
)
async def test_what_a_question_names_brings_its_facts(
    people: NamedPeople, memory: AsyncMemoryClient, question: str, texts: set[str]
) -> None:
    await fill(people)
    assert await brought(memory, question) == texts


async def test_nothing_is_brought_at_weight_0(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await fill(people)
    assert await brought(memory, "What does my wife do?", weights={"entities": 0.0}) == set()


async def test_an_explained_search_says_whom_the_question_means(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await fill(people)
    found = await memory.search("Does Rex obey my wife?", user_id="alice", explain=True, **COUNTED)
    assert sorted(one.name for one in found.meant) == ["Ana Keller", "Rex"]
    assert [hit.score.entities_part for hit in found] == [pytest.approx(0.2 / 1.5 / 2)] * 5


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
async def test_the_facts_of_all_who_are_named_come_first(
    people: NamedPeople, memory: AsyncMemoryClient, fusion: Fusion
) -> None:
    await people.say("Walks with my wife Ana", ("my wife Ana", "person"), subject="my dog Rex")
    await people.say("Snores", subject="Rex")
    found = await memory.search(
        "Is Rex with Ana?", user_id="alice", fusion=fusion, weights={"entities": 0.2, "names": 0.0}
    )
    assert [hit.fact.text for hit in found] == ["Walks with my wife Ana", "Snores"]
    first, second = (hit.score.entities_part for hit in found)
    assert first == pytest.approx(2 * second)


async def test_only_the_scopes_that_are_asked_bring_facts(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await people.say("Paints", subject="my wife Ana")
    await people.say("Sings", subject="my wife Eva", scope=RUN)
    await people.say("Dances", subject="my wife Ana", scope=BEN, speaker="Ben")
    assert await brought(memory, "my wife") == {"Paints"}
    assert await brought(memory, "my wife", run_id="r1") == {"Sings"}
    assert await brought(memory, "my wife", any=[{}, {"run_id": "r1"}]) == {"Paints", "Sings"}
    assert await brought(memory, "my wife", user_id="*") == {"Paints", "Dances"}
    assert await brought(memory, "Ana", any=[{}, {"run_id": "r1"}]) == {"Paints"}


async def test_what_is_deleted_merged_or_forgotten_is_so_for_a_search(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await fill(people)
    bert = await people.say("Plays drums", subject="Bert")
    (rex, bello) = [(await memory.entity(name, user_id="alice")).entity for name in ("Rex", "Bello")]
    (bert_entity,) = await memory.who("Bert", user_id="alice")
    merge = await people.order(MergeEntities(entity_ids=(bello.entity_id,), into=rex.entity_id))
    assert await brought(memory, "Bello") == {"Rex bites", "He snores"} | BELLO
    await people.undo(merge)
    assert await brought(memory, "Bello") == BELLO
    forget = await people.order(ForgetEntity(entity_id=bert_entity.entity_id))
    assert await brought(memory, "Bert") == set()
    await people.undo(forget)
    assert await brought(memory, "Bert") == {"Plays drums"}
    assert bert.events[0].new_fact is not None
    await people.order(Delete(fact_ids=(bert.events[0].new_fact.fact_id,)))
    assert await brought(memory, "Bert") == set()


async def test_facts_of_another_time_are_brought_as_they_were(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    first = await people.say("Paints", subject="my wife Ana")
    later = await people.say("Sings", subject="Ana")
    at = later.decided_at.isoformat()
    assert await brought(memory, "my wife", believed_at=first.decided_at.isoformat()) == {"Paints"}
    assert await brought(memory, "my wife", believed_at=at) == {"Paints", "Sings"}
    assert first.events[0].new_fact is not None
    await people.order(Delete(fact_ids=(first.events[0].new_fact.fact_id,)))
    assert await brought(memory, "Ana", believed_at=at) == {"Paints", "Sings"}
    assert await brought(memory, "Ana") == {"Sings"}
