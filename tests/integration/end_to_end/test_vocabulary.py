"""Every event, and every word that others have for it, from a turn or a command to the rows that are written of it."""

import asyncio
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

import pytest
import pytest_asyncio

from mnemolog.projections import vocabulary
from mnemolog.projections.log_source import LogSource, TableLog
from mnemolog.projections.rebuild import rebuild
from mnemolog.projections.vocabulary import VOCABULARY, WORDS, Entry
from mnemolog.schemas.events import EVENTS
from mnemolog.streams.log_source import KafkaLog
from tests.changes import MEANING, Change
from tests.scenes import settlements, statements
from tests.scenes.stage import SCENES, Scene
from tests.world import World

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
in_the_world = pytest.mark.asyncio(loop_scope="package")

PLAYED = (statements, settlements)
VOCABULARIES = [field.name for field in fields(Entry) if field.name not in ("event", "word", "effect")]
Played = dict[str, Change | BaseException]


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def played(world: World) -> Played:
    """All scenes at once, each about somebody else."""
    plays = (scene.play(world.person(f"ann{number}")) for number, scene in enumerate(SCENES))
    ends = await asyncio.gather(*plays, return_exceptions=True)
    return {scene.name: end for scene, end in zip(SCENES, ends, strict=True)}


def words(entries: Iterable[Any]) -> set[tuple[str, str, str]]:
    """What the table says: (event, vocabulary, word)."""
    return {(entry.event, name, word) for entry in entries for name in VOCABULARIES for word in getattr(entry, name)}


def test_every_event_and_every_word_of_the_table_is_played() -> None:
    shown = {(scene.event, name, word) for scene in SCENES for name, word in scene.words.items()}
    assert shown == words(VOCABULARY)
    names = {event.model_fields["event"].default for event in EVENTS}
    assert names == {entry.event for entry in VOCABULARY} == {scene.event for scene in SCENES}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_word_of_others_is_in_the_table_and_has_a_meaning(name: str) -> None:
    theirs = set(get_args(getattr(vocabulary, name.capitalize())))
    assert theirs == {word for _, of, word in words(VOCABULARY) if of == name} == set(MEANING[name])


@in_the_world
@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
async def test_the_tables_show_the_effect(scene: Scene, played: Played) -> None:
    change = played[scene.name]
    if isinstance(change, BaseException):
        raise change
    assert change.events == [scene.event]
    assert [memory.event for memory in change.result.memories] == [WORDS[scene.event]]
    assert change.result.success
    for name, word in scene.words.items():
        assert [other for other, holds in MEANING[name].items() if holds(change)] == [word], name


@in_the_world
async def test_a_rebuild_gives_equal_tables_and_asks_no_model(world: World, played: Played) -> None:
    assert played
    asked = dict(world.server.requests)
    kafka_log = KafkaLog(world.settings.kafka or "", prefix=world.settings.topic_prefix)
    sources: list[LogSource] = [kafka_log, TableLog(world.pool)]
    for source in sources:
        report = await rebuild(world.settings.postgres or "", source)
        assert report.equal, report
        assert report.records == len(await world.rows("SELECT 1 FROM commits"))
    await kafka_log.close()
    assert dict(world.server.requests) == asked
