"""A recorded run, played back without a server, gives the same figures."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from mnemolog.streams.settings import StreamsSettings
from tests.quality.case_runner import run_cases
from tests.quality.cases import Case, load
from tests.quality.model_sources import chosen_models
from tests.quality.recorded_replies import ReplyNotRecordedError, write_models
from tests.quality.scores import CaseResult, Score, score
from tests.support.harnesses.in_process_pipeline import in_process_pipeline
from tests.support.servers.openai_server import OpenAiServer

CASES = [case for case in load("dev") if case.family == "move" and case.language == "en"]


async def observed(
    settings: StreamsSettings, cases: Sequence[Case], *, record: Path | None = None, replay: Path | None = None
) -> list[CaseResult]:
    async with in_process_pipeline(settings, *chosen_models(settings, record=record, replay=replay)) as running:
        return await run_cases(running, cases, at_once=4)


def scores(cases: Sequence[Case], seen: Sequence[CaseResult]) -> list[Score]:
    return [score(case, one) for case, one in zip(cases, seen, strict=True)]


def with_server(database: str, server: OpenAiServer) -> StreamsSettings:
    return StreamsSettings(
        provider="openai",
        postgres=database,
        base_url=server.base_url,
        api_key=SecretStr("none"),
        embedding_model="hashed",
        known_timeout=0.001,  # as on a busy machine; without effect, or the replay could ask for other replies
    )


@pytest.mark.postgres
async def test_a_replay_gives_the_same_figures_without_a_server(
    database: str, second_database: str, tmp_path: Path
) -> None:
    with OpenAiServer() as server:
        settings = with_server(database, server)
        live = await observed(settings, CASES, record=tmp_path)
        asked = server.requests["chat"]
    assert asked >= 2 * len(CASES)
    notes = [
        note
        for one in live
        for commit in (*one.known, one.turn)
        for step in commit.provenance.steps
        for note in step.notes
    ]
    assert not [note for note in notes if "without known facts" in note]
    again = await observed(settings.model_copy(update={"postgres": second_database}), CASES, replay=tmp_path)
    assert scores(CASES, again) == scores(CASES, live)
    assert [one.cost.llm_calls for one in again] == [one.cost.llm_calls for one in live]
    assert [one.cost.output_tokens for one in again] == [one.cost.output_tokens for one in live]
    tokens, as_live = (sum(one.cost.input_tokens for one in seen) for seen in (again, live))
    assert tokens == pytest.approx(as_live, rel=0.01)  # embedding calls are shared out to their texts


@pytest.mark.postgres
async def test_what_is_not_on_the_tape_is_told(database: str, tmp_path: Path) -> None:
    write_models(tmp_path, "some-model", "some-embedder")
    settings = StreamsSettings(provider="openai", postgres=database)
    with pytest.raises(ExceptionGroup) as caught:
        await observed(settings, CASES[:1], replay=tmp_path)
    assert caught.group_contains(ReplyNotRecordedError, match="record it anew")


def test_a_tape_of_other_models_is_not_mixed_up(tmp_path: Path) -> None:
    write_models(tmp_path, "some-model", "some-embedder")
    with pytest.raises(ReplyNotRecordedError, match="name another folder"):
        write_models(tmp_path, "another-model", "some-embedder")
