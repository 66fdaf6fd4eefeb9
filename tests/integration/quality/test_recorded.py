"""Recorded dialogues and recorded replies of models, through the pipeline."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from mnemolog.streams.settings import StreamsSettings
from tests.quality.cases import Case, load
from tests.quality.model_sources import ReplyNotRecordedError, chosen_models, write_models
from tests.quality.recorded.runs import run_dialogues
from tests.quality.recorded.speaker_check import SpeakerFigures, check_speakers
from tests.quality.runs import pipeline_over, run_all
from tests.quality.scores import CaseResult, run_case, score
from tests.recall.dialogues import Dialogues, RecordedTurn, load_dialogues
from tests.support.harnesses.in_process_pipeline import in_process_pipeline
from tests.support.locomo import locomo_folder
from tests.support.servers.openai_server import OpenAiServer

SAID = (("Ana", "I moved to Bern with my husband Karl."), ("Tom", "I adopted a dog."), ("Ana", "I sold my car."))
TURNS = [
    RecordedTurn(
        conversation="talk",
        session=1,
        turn_id=f"t{place}",
        speaker=speaker,
        text=text,
        occurred_at=datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=place),
        image=None,
    )
    for place, (speaker, text) in enumerate(SAID)
]
# Faults in the tables, by what is wrong with them.
FAULTS = {
    "about nobody": "DELETE FROM fact_entities WHERE fact_id = (SELECT fact_id FROM facts WHERE text LIKE '%car%')",
    "not said": "UPDATE facts SET excerpt = 'I sold my boat.' WHERE text LIKE '%car%'",
    "about the other": """
        UPDATE fact_entities SET entity_id = (SELECT entity_id FROM entities WHERE name = 'Tom')
        WHERE role = 'subject' AND fact_id = (SELECT fact_id FROM facts WHERE text LIKE '%car%')
    """,
    "tie to the other": """
        UPDATE entity_aliases SET key = 'husband of ' || (SELECT entity_id FROM entities WHERE name = 'Tom')
        WHERE kind = 'tie'
    """,
}
CASES = [case for case in load("dev") if case.family == "move" and case.language == "en"]


@pytest.mark.postgres
async def test_a_fact_is_about_who_said_it_and_each_fault_is_found(database: str) -> None:
    """The check resolves no names itself. Each fault is put into the tables alone."""
    found: dict[str, SpeakerFigures] = {}
    async with pipeline_over(database) as running:
        await run_dialogues(running, Dialogues(TURNS, [], []), annotated=False, turns=None)
        for name, fault in ({"none": "SELECT 1"} | FAULTS).items():
            async with running.pool.connection() as connection, connection.transaction(force_rollback=True):
                assert (await connection.execute(fault.encode())).rowcount == 1
                found[name] = await check_speakers(connection, "talk", TURNS, {})
    assert found["none"].of_speaker == found["none"].facts >= len(SAID)
    assert found["none"].speakers == 2
    car, husband = ["t2: Ana: I sold my car."], ["Ana's husband Karl"]
    assert {name: (one.wrong, one.wrong_ties) for name, one in found.items()} == {
        "none": ([], []),
        "about nobody": (car, []),
        "not said": (car, []),
        "about the other": (car, []),
        "tie to the other": ([], husband),
    }


@pytest.mark.postgres
@pytest.mark.dialogues
async def test_no_fact_of_the_recorded_dialogues_is_about_the_wrong_speaker(database: str) -> None:
    """Their beginnings; `make dialogues` takes all of them."""
    async with pipeline_over(database) as running:
        found = await run_dialogues(running, load_dialogues(locomo_folder()), annotated=False, turns=20)
    assert [told for one in found for told in (*one.speakers.wrong, *one.speakers.wrong_ties)] == []
    assert [one.speakers.speakers for one in found] == [2] * 5


async def observed(
    settings: StreamsSettings, cases: Sequence[Case], *, record: Path | None = None, replay: Path | None = None
) -> list[CaseResult]:
    async with in_process_pipeline(settings, *chosen_models(settings, record=record, replay=replay)) as running:
        return await run_all(running, cases, run_case)


@pytest.mark.postgres
async def test_a_replay_gives_the_same_figures_without_a_server(
    database: str, second_database: str, tmp_path: Path
) -> None:
    with OpenAiServer() as server:
        settings = StreamsSettings(
            provider="openai",
            postgres=database,
            base_url=server.base_url,
            api_key=SecretStr("none"),
            embedding_model="hashed",
            known_timeout=0.001,  # as on a busy machine; without effect, or the replay could ask for other replies
        )
        live = await observed(settings, CASES, record=tmp_path)
        asked = server.requests["chat"]
    assert asked >= 2 * len(CASES)
    commits = [commit for one in live for commit in (*one.known, one.turn)]
    notes = [note for commit in commits for step in commit.provenance.steps for note in step.notes]
    assert not [note for note in notes if "without known facts" in note]
    again = await observed(settings.model_copy(update={"postgres": second_database}), CASES, replay=tmp_path)
    scores, as_live = ([score(case, one) for case, one in zip(CASES, seen, strict=True)] for seen in (again, live))
    assert scores == as_live
    for name in ("llm_calls", "output_tokens"):
        assert [getattr(one.cost, name) for one in again] == [getattr(one.cost, name) for one in live]
    tokens, live_tokens = (sum(one.cost.input_tokens for one in seen) for seen in (again, live))
    assert tokens == pytest.approx(live_tokens, rel=0.01)  # embedding calls are shared out to their texts


@pytest.mark.postgres
async def test_a_reply_that_is_not_on_the_tape_ends_the_run(database: str, tmp_path: Path) -> None:
    write_models(tmp_path, "some-model", "some-embedder")
    settings = StreamsSettings(provider="openai", postgres=database)
    with pytest.raises(ExceptionGroup) as caught:
        await observed(settings, CASES[:1], replay=tmp_path)
    assert caught.group_contains(ReplyNotRecordedError, match="record it anew")


def test_a_tape_of_other_models_is_not_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(ReplyNotRecordedError, match="is no tape"):
        chosen_models(StreamsSettings(), replay=tmp_path)
    write_models(tmp_path, "some-model", "some-embedder")
    with pytest.raises(ReplyNotRecordedError, match="name another folder"):
        write_models(tmp_path, "another-model", "some-embedder")
