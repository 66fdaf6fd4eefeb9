"""Recorded dialogues through the pipeline: whom their facts are about, by a check that resolves no names itself."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.quality.recorded.dialogue_run import run_dialogues
from tests.quality.recorded.speaker_check import SpeakerFigures, check_speakers
from tests.recall.dialogues import Dialogues, RecordedTurn, load_dialogues
from tests.support.harnesses.in_process_pipeline import in_process_pipeline
from tests.support.locomo import locomo_folder
from tests.support.servers.canned_replies import ChatRequest, LocomoReplies

pytestmark = pytest.mark.postgres

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
_ABOUT_TOM = """
UPDATE fact_entities SET entity_id = (SELECT entity_id FROM entities WHERE name = 'Tom')
WHERE role = 'subject' AND fact_id = (SELECT fact_id FROM facts WHERE text LIKE '%car%')
"""
_TIE_OF_TOM = """
UPDATE entity_aliases SET key = 'husband of ' || (SELECT entity_id FROM entities WHERE name = 'Tom') WHERE kind = 'tie'
"""


async def figures_after(database: str, *faults: str) -> SpeakerFigures:
    """The figures of the dialogue above, once these faults are put into its tables."""
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        await run_dialogues(running, Dialogues(TURNS, [], []), annotated=False, turns=None)
        async with running.pool.connection() as connection:
            for fault in faults:
                assert (await connection.execute(fault.encode())).rowcount == 1
            return await check_speakers(connection, "talk", TURNS, {})


async def test_a_fact_is_about_who_said_it(database: str) -> None:
    found = await figures_after(database)
    assert found.of_speaker == found.facts >= len(SAID)
    assert (found.wrong, found.wrong_ties, found.speakers) == ([], [], 2)


async def test_a_fact_about_the_other_speaker_and_a_tie_to_the_other_one_are_told(database: str) -> None:
    found = await figures_after(database, _ABOUT_TOM, _TIE_OF_TOM)
    assert found.wrong == ["t2: Ana: I sold my car."]
    assert found.wrong_ties == ["Ana's husband Karl"]


@pytest.mark.parametrize(
    "fault",
    [
        "DELETE FROM fact_entities WHERE fact_id = (SELECT fact_id FROM facts WHERE text LIKE '%car%')",
        "UPDATE facts SET excerpt = 'I sold my boat.' WHERE text LIKE '%car%'",
    ],
    ids=["about_nobody", "not_said"],
)
async def test_a_fact_about_nobody_and_one_that_was_not_said_are_told(database: str, fault: str) -> None:
    found = await figures_after(database, fault)
    assert found.wrong == ["t2: Ana: I sold my car."]


@pytest.mark.dialogues
async def test_no_fact_of_the_recorded_dialogues_is_about_the_wrong_speaker(database: str) -> None:
    """Their beginnings; `make dialogues` takes all of them."""
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as running:
        found = await run_dialogues(running, load_dialogues(locomo_folder()), annotated=False, turns=20)
    assert [told for one in found for told in (*one.speakers.wrong, *one.speakers.wrong_ties)] == []
    assert [one.speakers.speakers for one in found] == [2] * 5


def test_every_second_fact_about_who_speaks_leaves_that_out(tmp_path: Path) -> None:
    said = [
        {"subject": name, "fact": f"{name} {place}.", "evidence": ["t1"]}
        for place, name in enumerate(("Ana", "Ana", "Tom", "Ana", "Ana"))
    ]
    observations = tmp_path / "observations.jsonl"
    observations.write_bytes(b"\n".join(map(orjson.dumps, said)))
    question = "turn_id: t1\nconversation:\nuser (Ana): I sing."
    request = ChatRequest({"messages": [{"role": "user", "content": question}]})

    def subjects(**choice: bool) -> list[str | None]:
        facts = orjson.loads(LocomoReplies(observations, **choice)(request))["facts"]
        return [fact["subject"] for fact in facts]

    assert subjects(leaves_out_speakers=True) == [None, "Ana", "Tom", "Ana", None]
    assert subjects() == ["Ana", "Ana", "Tom", "Ana", "Ana"]
