"""Replies that a model really gave, through parsers, checks and decisions."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from mnemolog.streams.settings import StreamsSettings
from tests.quality.cases import SPLITS
from tests.quality.model_sources import CHAT, ReplyLog
from tests.quality.recordings import FOLDER, Run, differences, read_outcomes, run_split, sample, split_cases
from tests.support.databases import fresh_database
from tests.support.servers.openai_server import OpenAiServer

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("split", SPLITS)
async def test_recorded_replies_come_to_what_they_came_to(database: str, split: str) -> None:
    """Where a better outcome is meant: `make recordings ARGS=--outcomes`, and look at the difference."""
    expected = read_outcomes(FOLDER / split)
    said = [*differences(expected, await run_split(database, FOLDER / split, split_cases(expected)))]
    assert not said, "\n".join(said)


async def test_a_replay_is_equal_and_a_missing_reply_is_named_and_asked_anew(
    postgres_admin_url: str, template_database: str, tmp_path: Path
) -> None:
    some = sample("dev", 1)[::8]

    async def run(live: StreamsSettings | None = None) -> Run:
        with fresh_database(postgres_admin_url, template=template_database) as database:
            return await run_split(database, tmp_path, some, live=live)

    with OpenAiServer() as server:
        live = StreamsSettings(
            provider="openai",
            embedding_provider="offline",
            base_url=server.base_url,
            api_key=SecretStr("none"),
            known_timeout=0.001,  # as on a busy machine; without effect, or the replay could ask for other replies
        )
        expected = {one.id: one for one in (await run(live)).outcomes}
        assert [*expected] == [case.id for case in some]
        assert [*differences(expected, await run())] == []
        tape, asked = ReplyLog(tmp_path / CHAT), server.requests["chat"]
        assert len(tape.keys) == asked

        tape.keep({*sorted(tape.keys)[1:]})
        tape.put("another question", prompt="extract-0", refused=None, text="", model="m", usage={})
        stale = await run()
        (said,) = (one for one in differences(expected, stale) if "make recordings" in one)
        assert stale.without
        assert all(case_id in said for case_id in stale.without)

        await run(live)
        assert server.requests["chat"] == asked + 1
        assert [*differences(expected, await run())] == []
