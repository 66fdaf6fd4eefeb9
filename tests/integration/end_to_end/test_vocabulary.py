"""Every event, and every word that others have for it, from a turn or a command to the rows that are written of it."""

import asyncio
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

import pytest
import pytest_asyncio

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import LogSource, TableLogSource
from mnemolog.schemas.events import EVENT_CLASSES
from mnemolog.streams.kafka.readers import KafkaLogReader
from scripts import vocabulary
from scripts.vocabulary import VOCABULARY, VocabularyEntry
from tests.support.cases.event_cases import EVENT_CASES, WORD_CHECKS, Change, EventCase
from tests.support.harnesses.pipeline_harness import PipelineHarness

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
in_package_loop = pytest.mark.asyncio(loop_scope="package")

VOCABULARIES = [field.name for field in fields(VocabularyEntry) if field.name not in ("event", "effect")]
CaseResults = dict[str, Change | BaseException]


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def case_results(harness: PipelineHarness) -> CaseResults:
    """All cases at once, each about a person of its own."""
    runs = (case.run(harness.person(f"ann{number}")) for number, case in enumerate(EVENT_CASES))
    ends = await asyncio.gather(*runs, return_exceptions=True)
    return {case.name: end for case, end in zip(EVENT_CASES, ends, strict=True)}


def vocabulary_words(entries: Iterable[Any]) -> set[tuple[str, str, str]]:
    """What the table says: (event, vocabulary, word)."""
    return {(entry.event, name, word) for entry in entries for name in VOCABULARIES for word in getattr(entry, name)}


def test_every_event_and_every_word_of_the_table_has_a_case() -> None:
    shown = {(case.event, name, word) for case in EVENT_CASES for name, word in case.vocabulary.items()}
    assert shown == vocabulary_words(VOCABULARY)
    names = set(EVENT_CLASSES)
    assert names == {entry.event for entry in VOCABULARY} == {case.event for case in EVENT_CASES}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_word_of_others_is_in_the_table_and_has_a_meaning(name: str) -> None:
    theirs = set(get_args(getattr(vocabulary, name.capitalize())))
    assert theirs == {word for _, of, word in vocabulary_words(VOCABULARY) if of == name} == set(WORD_CHECKS[name])


@in_package_loop
@pytest.mark.parametrize("case", EVENT_CASES, ids=[case.name for case in EVENT_CASES])
async def test_the_tables_show_the_effect(case: EventCase, case_results: CaseResults) -> None:
    change = case_results[case.name]
    if isinstance(change, BaseException):
        raise change
    assert change.events == [case.event]
    assert [memory.event for memory in change.result.changes] == [case.event]
    assert change.result.success
    for name, word in case.vocabulary.items():
        assert [other for other, holds in WORD_CHECKS[name].items() if holds(change)] == [word], name


@in_package_loop
async def test_a_rebuild_gives_equal_tables_and_asks_no_model(
    harness: PipelineHarness, case_results: CaseResults
) -> None:
    assert case_results
    asked = dict(harness.server.requests)
    kafka_log = KafkaLogReader(harness.settings.kafka or "", prefix=harness.settings.topic_prefix)
    sources: list[LogSource] = [kafka_log, TableLogSource(harness.pool)]
    for source in sources:
        report = await rebuild(harness.settings.postgres or "", source)
        assert report.equal, report
        assert report.records == len(await harness.rows("SELECT 1 FROM commits"))
    await kafka_log.close()
    assert dict(harness.server.requests) == asked
