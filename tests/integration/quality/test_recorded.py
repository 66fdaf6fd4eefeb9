"""Recorded dialogues through the pipeline, and whose replies a recording has."""

from pathlib import Path

import pytest

from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import ReplyNotRecordedError, chosen_models, write_models
from tests.quality.recorded.runs import run_dialogues
from tests.quality.runs import pipeline_over
from tests.recall.dialogues import load_dialogues
from tests.support.locomo import locomo_folder


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
