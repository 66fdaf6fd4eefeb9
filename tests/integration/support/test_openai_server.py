"""The test server itself: what it says is valid, and it can be run and told to fail from outside."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import replace
from urllib.request import Request, urlopen

import pytest

from mnemolog.streams.llm.call_retry import RetrySettings
from mnemolog.streams.llm.conflict_list import number_conflicts
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.grounding.extract_reply import parse_extraction
from mnemolog.streams.llm.openai_client import Endpoint
from mnemolog.streams.llm.openai_models import OpenAiChatModel
from mnemolog.streams.llm.resolve_prompt import parse_resolution, resolution_prompt
from tests.support.builders.prompts import MONDAY, extraction, fact, known_fact, turn, user
from tests.support.locomo import locomo_folder
from tests.support.polling import eventually
from tests.support.servers.canned_replies import LocomoReplies
from tests.support.servers.failures import Failure, Failures
from tests.support.servers.openai_server import OpenAiServer


def chat_with(base_url: str) -> OpenAiChatModel:
    return OpenAiChatModel(
        Endpoint(base_url=base_url, api_key="k", retry=RetrySettings(initial_delay=0.005)), "test-model"
    )


@pytest.mark.dialogues
async def test_recorded_facts_come_back_at_the_turn_they_come_from() -> None:
    replies = LocomoReplies(locomo_folder() / "observations.jsonl")
    said = "I went to a LGBTQ support group yesterday and it was so powerful."
    subject = extraction(user(said, "Caroline"), turn_id="conv-26:D1:3", speaker="Caroline")
    with OpenAiServer(replies) as server:
        chat = chat_with(server.base_url)
        reply = await chat.complete(extraction_prompt(subject))
        await chat.close()
    parsed = parse_extraction(reply.text, subject)
    assert parsed.complaints == ()
    assert parsed.value is not None
    assert [fact.subject for fact in parsed.value] == ["Caroline"] * replies.fact_count("conv-26:D1:3")
    assert turn(user(said)).turn_id not in replies.turns


async def test_the_server_s_resolutions_are_valid() -> None:
    dog = known_fact(2, "Bob has a dog.")
    subject = number_conflicts(
        [
            (fact("Alice lives in Munich now."), (known_fact(1, "Alice lives in Berlin."), dog)),
            (fact("Bob has a dog."), (dog,)),
            (fact("Carol sings."), (dog,)),
        ],
        said_at=MONDAY,
    )
    with OpenAiServer() as server:
        chat = chat_with(server.base_url)
        reply = await chat.complete(resolution_prompt(subject))
        await chat.close()
    verdicts = parse_resolution(reply.text, subject).value
    assert verdicts is not None
    assert [verdict.verdict for verdict in verdicts] == ["REPLACE", "KEEP", "ADD"]


async def test_the_server_runs_as_a_process_and_is_told_to_fail() -> None:
    command = [sys.executable, "-m", "tests.support.servers.openai_server", "--latency", "0.01"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        base_url = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        admin = base_url.removesuffix("/v1") + "/admin"
        failure = json.dumps({"mode": "status", "status": 503, "times": 2}).encode()
        await asyncio.to_thread(urlopen, Request(f"{admin}/failures", failure), timeout=5)  # noqa: S310 -- loopback
        chat = chat_with(base_url)
        assert "Berlin" in (await chat.complete(extraction_prompt(extraction(user("I live in Berlin."))))).text
        await chat.close()
        with urlopen(f"{admin}/counts", timeout=5) as reply:  # noqa: ASYNC210, S310 -- loopback, at once
            assert json.load(reply) == {"chat": 3}
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) in {0, -signal.SIGTERM}


def test_a_share_of_the_calls_fails() -> None:
    failures = Failures()
    failures.add(Failure(mode="cut", times=None, share=0.3))
    assert 250 < sum(failures.next_for("chat", b"") is not None for _ in range(1000)) < 350


async def test_a_reply_that_trickles_takes_longer_than_any_call_may_until_it_is_cleared() -> None:
    with OpenAiServer() as server:
        server.fail(mode="trickle", times=None)
        chat = chat_with(server.base_url)
        prompt = replace(extraction_prompt(extraction(user("I live in Berlin."))), timeout=0.5)
        waiting = asyncio.create_task(chat.complete(prompt))
        await eventually(lambda: server.requests["chat"] > 1, timeout=20)
        server.failures.clear()
        assert "Berlin" in (await asyncio.wait_for(waiting, 20)).text
        await chat.close()
