"""The step `model` through the real stages and tables: asked in the call about conflicts, linked, undone, rebuilt."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.queries.explain import explain
from mnemolog.projections.queries.write_result import turn_status, write_result
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.entities import EntityStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.command import Delete, SplitEntity, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import EntityLink, KnownEntity
from mnemolog.schemas.entity_events import EntityAliasAdded, EntityRegistered, FactLinked
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities import questions as doubtful_names
from mnemolog.streams.llm.names_prompt import NAMES_PROMPT_VERSION
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json
from tests.support.builders.name_choices import choose_called
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: dict[str, Any] = {"key": "home_city", "single_valued": True, "category": "identity"}
HILL, STONE = "Tom Hill", "Tom Stone"
BEN = Scope(user_id="ben")
STRANGER = KnownEntity(entity_id=UUID(int=9), name="Zoe", type="person", aliases=())


def replace_all(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that takes every known fact for what has changed."""
    return decision_json(conflict.number, "REPLACE", *(label for label, _ in conflict.candidates))


def replace_those_of(subject: str) -> Any:
    """A reader that takes what is known of one person for what has changed."""

    def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
        labels = [label for label, known in conflict.candidates if known.subject == subject]
        return decision_json(conflict.number, "REPLACE" if labels else "ADD", *labels)

    return judge


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, provider="openai", known_facts=0, call_turns=1) as harness:
        yield harness


async def say_home(people: NamedPeople, who: str, city: str, **fields: Any) -> Commit:
    person = [{"name": who, "type": "person", "role": "subject"}]
    return await people.say(f"{who} lives in {city}", subject=who, value=city, entities=person, **HOME | fields)


async def homes(people: NamedPeople) -> list[str]:
    rows = await people.rows("SELECT text FROM facts WHERE status = 'active' ORDER BY recorded_at, ordinal")
    return [text for (text,) in rows]


def links_of(commit: Commit) -> list[EntityLink]:
    return [link for event in commit.entity_events if isinstance(event, FactLinked) for link in event.links]


def registered(commit: Commit) -> list[EntityRegistered]:
    """The entities that a turn brings, but for the user."""
    return [one for one in commit.entity_events if isinstance(one, EntityRegistered) and one.name != "Alice"]


async def two_toms(people: NamedPeople) -> None:
    for who, text in ((HILL, f"{HILL} plays chess"), (STONE, f"{STONE} sails")):
        await people.say(text, subject=who, entities=[{"name": who, "type": "person", "role": "subject"}])


async def test_one_call_about_the_name_alone_links_the_fact(people: NamedPeople) -> None:
    await two_toms(people)
    assert people.model.calls["resolve"] == 0
    people.model.choose = choose_called(HILL)
    commit = await people.say("Tom won the tournament", ("Tom", "person"))
    assert people.model.calls["resolve"] == 1
    assert people.model.asked == []
    link = links_of(commit)[-1]
    assert await people.named("Tom won the tournament") == {("Alice", "subject"), (HILL, "object")}
    assert (link.step, link.reason, len(link.compared)) == ("model", "she plays chess", 1)
    assert registered(commit) == []


async def test_the_newest_active_facts_of_each_are_shown_those_about_it_first(people: NamedPeople) -> None:
    await two_toms(people)
    await people.say("I met Tom Hill", (HILL, "person"))
    gone = await people.say("I lost Tom Hill", (HILL, "person"))
    await people.undo(gone)
    reader = EntityStore(people.pipeline.pool)
    ids = {name: entity_id for entity_id, name in await people.rows("SELECT entity_id, name FROM entities")}
    shown = await reader.shown([ids[HILL], ids[STONE]], most=3)
    assert {entity_id: one.facts for entity_id, one in shown.items()} == {
        ids[HILL]: (f"{HILL} plays chess", "I met Tom Hill"),
        ids[STONE]: (f"{STONE} sails",),
    }
    assert len((await reader.shown([ids["Alice"]], most=1))[ids["Alice"]].facts) == 1


async def test_the_step_counts_the_call_and_says_what_was_asked(people: NamedPeople) -> None:
    await two_toms(people)
    commit = await people.say("Tom won", ("Tom", "person"))
    (step,) = (step for step in commit.provenance.steps if step.stage == "resolve")
    assert (step.llm_calls, step.input_tokens, step.output_tokens) == (1, 10, 5)
    assert step.prompt_version == NAMES_PROMPT_VERSION
    (asked,) = step.answered_names
    assert (asked.name, len(asked.twins), asked.entity_id, asked.reason) == ("Tom", 2, None, "she plays chess")
    (tom,) = registered(commit)
    assert set(tom.possible_twins) == set(asked.twins)
    (note,) = write_result(commit).notes
    assert note == (
        '"Tom" may mean one of 2 known entities; the model was asked, and it is another one, or nobody can tell: '
        "she plays chess"
    )


async def test_conflicts_and_names_are_one_call(people: NamedPeople) -> None:
    await say_home(people, HILL, "Rome")
    await say_home(people, STONE, "Oslo")
    people.model.choose, people.model.judge = choose_called(STONE), replace_those_of(STONE)
    commit = await say_home(people, "Tom", "Bern")
    assert people.model.calls["resolve"] == 1
    assert len(people.model.asked) == 1
    assert await homes(people) == [f"{HILL} lives in Rome", "Tom lives in Bern"]
    assert links_of(commit)[-1].step == "model"
    assert await people.named("Tom lives in Bern") == {(STONE, "subject")}


@pytest.mark.parametrize("meant", [HILL, None])
async def test_nothing_of_another_one_is_ended_whatever_the_model_says(people: NamedPeople, meant: str | None) -> None:
    await say_home(people, HILL, "Rome")
    await say_home(people, STONE, "Oslo")
    people.model.judge = replace_those_of(STONE)
    if meant:
        people.model.choose = choose_called(meant)
    commit = await say_home(people, "Tom", "Bern")
    assert people.model.calls["resolve"] == 2  # it is told of the contradiction, and says it again
    (complaint,) = (text for step in commit.provenance.steps for text in step.complaints)
    assert "concerns a fact about E2, and M1 is said not to be E2" in complaint
    assert f"{STONE} lives in Oslo" in await homes(people)
    assert "Tom lives in Bern" in await homes(people)


async def test_nothing_is_ended_of_one_who_was_not_asked_about_either(
    people: NamedPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubtful_names, "MAX_TWINS", 1)
    await say_home(people, HILL, "Rome")
    await say_home(people, STONE, "Oslo")
    people.model.choose, people.model.judge = choose_called(HILL), replace_those_of(STONE)
    await say_home(people, "Tom", "Bern")
    assert people.model.calls["resolve"] == 1
    assert f"{STONE} lives in Oslo" in await homes(people)


async def test_two_values_of_one_key_that_were_not_asked_about_stand_side_by_side(people: NamedPeople) -> None:
    """By their names the two are not one, so without the answer there is no question about their homes."""
    await say_home(people, "Carl", "Rome")
    people.model.choose = choose_called("Carl")
    commit = await say_home(people, "Carla", "Bern")
    assert (people.model.asked, links_of(commit)[-1].step) == ([], "model")
    rows = await people.rows("SELECT text, unresolved FROM facts WHERE status = 'active' ORDER BY recorded_at")
    assert [tuple(row) for row in rows] == [("Carl lives in Rome", False), ("Carla lives in Bern", True)]


async def test_a_faulty_answer_is_asked_for_again_and_finds_nobody_in_the_end(people: NamedPeople) -> None:
    await two_toms(people)
    people.model.choose = lambda _: STRANGER
    commit = await people.say("Tom won", ("Tom", "person"))
    assert people.model.calls["resolve"] == 3
    assert links_of(commit)[-1].step == "new"
    (step,) = (step for step in commit.provenance.steps if step.stage == "resolve")
    assert [asked.entity_id for asked in step.answered_names] == [None]
    assert len(step.complaints) == 2


async def test_a_redelivered_turn_asks_nobody_again(people: NamedPeople, monkeypatch: pytest.MonkeyPatch) -> None:
    await two_toms(people)
    people.model.choose = choose_called(HILL)
    with monkeypatch.context() as patch:
        patch.setattr(Projector, "apply", _crash)
        with pytest.raises(ConnectionError):
            await people.say("Tom won", ("Tom", "person"))
    asked = people.model.calls["resolve"]
    people.offsets[ALICE.owner] -= 1
    commit = await people.say("Tom won", ("Tom", "person"))
    assert people.model.calls["resolve"] == asked == 1
    assert links_of(commit)[-1].step == "model"


async def _crash(*_: object) -> None:
    raise ConnectionError


@pytest.mark.parametrize("settings_of", [{"ask_about_names": False}, {"provider": "offline"}, {"add_only": True}])
async def test_who_does_not_ask_has_possible_twins(database: str, settings_of: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"provider": "openai", "known_facts": 0, "call_turns": 1} | settings_of
    async with named_people(database, **settings) as people:
        await two_toms(people)
        people.model.choose = choose_called(HILL)
        commit = await people.say("Tom won", ("Tom", "person"))
        assert people.model.calls["resolve"] == 0
        assert [len(tom.possible_twins) for tom in registered(commit)] == [2]


async def test_two_whom_a_person_has_split_are_not_asked_about(people: NamedPeople) -> None:
    await two_toms(people)
    await people.say("Tom Hill paints", (HILL, "person"))
    ((entity_id,),) = await people.rows("SELECT entity_id FROM entities WHERE name = %s", HILL)
    ((fact_id,),) = await people.rows("SELECT fact_id FROM facts WHERE text = 'Tom Hill paints'")
    await people.order(SplitEntity(entity_id=entity_id, name="Tom Hill junior", fact_ids=(fact_id,)))
    await people.say("Tom won", ("Tom", "person"))
    (name,) = people.model.asked_names
    assert [twin.name for twin in name.twins] == [STONE]


async def test_a_fact_that_is_known_already_asks_nobody(people: NamedPeople) -> None:
    await two_toms(people)
    people.model.choose = choose_called(HILL)
    await people.say("Tom won", ("Tom", "person"))
    await people.say("Tom won", ("Tom", "person"))
    assert people.model.calls["resolve"] == 1
    await people.say("Tom lost", ("Tom", "person"))
    assert people.model.calls["resolve"] == 2


async def test_another_scope_is_neither_asked_about_nor_shown(people: NamedPeople) -> None:
    await two_toms(people)
    await people.say("Tom won", ("Tom", "person"), scope=BEN, speaker="Ben")
    assert people.model.calls["resolve"] == 0


async def test_explain_tells_what_the_model_said(people: NamedPeople) -> None:
    await two_toms(people)
    people.model.choose = choose_called(STONE)
    commit = await people.say("Tom won", ("Tom", "person"))
    (fact_id,) = (event.new_fact.fact_id for event in commit.events if event.new_fact)
    async with people.pipeline.pool.connection() as connection:
        explanation, _ = await explain(connection, "default", fact_id)
    (tom,) = (one for one in explanation.entities if one.step == "model")
    assert (tom.name, tom.compared, tom.reason) == (STONE, [HILL], "she plays chess")


async def test_what_the_model_said_is_not_shown_once_a_name_of_them_is_hidden(people: NamedPeople) -> None:
    await two_toms(people)
    people.model.choose = choose_called(STONE)
    commit = await people.say("Tom won", ("Tom", "person"))
    (fact_id,) = (event.new_fact.fact_id for event in commit.events if event.new_fact)
    ((sails,),) = await people.rows("SELECT fact_id FROM facts WHERE text = %s", f"{STONE} sails")
    deleted = await people.order(Delete(fact_ids=(sails,)))
    for reason in ("(hidden)", "she plays chess"):
        async with people.pipeline.pool.connection() as connection:
            explanation, _ = await explain(connection, "default", fact_id)
            result = await turn_status(connection, "default", commit.source_id, verbose=True)
        assert result.trace is not None
        shown = [one.reason for one in explanation.entities if one.step == "model"]
        assert [*shown, *(one.reason for one in result.trace.answers)] == [reason] * 2
        assert [note.rpartition(": ")[2] for note in result.notes] == [reason]
        await people.undo(deleted)


async def test_an_undo_of_the_turn_takes_link_and_alias_back_and_a_rebuild_agrees(
    people: NamedPeople, database: str
) -> None:
    await people.say("Carl sings", ("Carl", "person"))
    people.model.choose = choose_called("Carl")
    commit = await people.say("Carla sings too", ("Carla", "person"))
    assert [event.step for event in commit.entity_events if isinstance(event, EntityAliasAdded)] == ["model"]
    current = "SELECT alias FROM current_entity_names WHERE kind = 'name' ORDER BY alias"
    assert await people.rows(current) == [("Alice",), ("Carl",), ("Carla",)]
    assert (await rebuild(database, TableLogSource(people.pipeline.pool))).equal
    undone = await people.undo(commit)
    assert await people.rows(current) == [("Alice",), ("Carl",)]
    await people.undo(undone)
    assert await people.rows(current) == [("Alice",), ("Carl",), ("Carla",)]
    assert (await rebuild(database, TableLogSource(people.pipeline.pool))).equal


async def test_an_undo_by_prompt_version_takes_back_what_was_linked_by_the_model(people: NamedPeople) -> None:
    await two_toms(people)
    await people.say("Tom lost", ("Tom H", "person"))
    people.model.choose = choose_called(STONE)
    await people.say("Tom won", ("Tom", "person"))
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    await people.order(Undo(prompt_version=NAMES_PROMPT_VERSION, since=since, until=until))
    assert "Tom won" not in await homes(people)
    assert {"Tom lost", f"{HILL} plays chess", f"{STONE} sails"} <= set(await homes(people))
