"""Recorded dialogues through the pipeline, and whose replies a recording has."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import ReplyNotRecordedError, chosen_models, write_models
from tests.quality.recorded.runs import run_dialogues
from tests.quality.recorded.speaker_check import SpeakerFigures, check_speakers
from tests.quality.runs import pipeline_over
from tests.recall.dialogues import Dialogues, RecordedTurn, load_dialogues
from tests.support.locomo import locomo_folder

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


def test_a_tape_of_other_models_is_not_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(ReplyNotRecordedError, match="is no tape"):
        chosen_models(StreamsSettings(), replay=tmp_path)
    write_models(tmp_path, "some-model", "some-embedder")
    with pytest.raises(ReplyNotRecordedError, match="name another folder"):
        write_models(tmp_path, "another-model", "some-embedder")
