"""What every chat model promises, on each one there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiChatModel
from mnemolog.streams.llm.ports import ChatModel
from mnemolog.streams.llm.resolve_prompt import parse_resolution, question_prompt
from mnemolog.streams.offline.model import RuleModel
from tests.support.builders.prompts import MONDAY, extraction, fact, known_fact, user
from tests.support.builders.questions import number_conflicts
from tests.support.servers.openai_server import OpenAiServer

SAID = "I live in Berlin. I have a dog called Rex."


@pytest_asyncio.fixture(params=["openai", "rules"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ChatModel]:
    if request.param == "rules":
        rules = RuleModel()
        yield rules
        await rules.close()
        return
    with OpenAiServer() as server:
        chat = OpenAiChatModel(Endpoint(base_url=server.base_url, api_key="k"), "test-model")
        yield chat
        await chat.close()


async def test_facts_pass_the_parser_and_the_reply_names_its_model_and_tokens(model: ChatModel) -> None:
    subject = extraction(user(SAID, "Alice"), speaker="Alice")
    prompt = extraction_prompt(subject)
    reply, again = await asyncio.gather(model.complete(prompt), model.complete(prompt))
    parsed = parse_extraction(reply.text, subject)
    assert parsed.complaints == ()
    assert any("Berlin" in found.text for found in parsed.value or ())
    assert (reply.text, reply.model) == (again.text, model.model)
    assert reply.usage.input_tokens >= 0 <= reply.usage.output_tokens


async def test_every_conflict_is_decided_on_its_own_candidates(model: ChatModel) -> None:
    city = {"key": "home_city"}
    berlin, dog = known_fact(1, "Alice lives in Berlin.", value="Berlin", **city), known_fact(2, "Alice has a dog.")
    munich = fact("Alice lives in Munich.", value="Munich", **city)
    subject = number_conflicts([(munich, (berlin, dog)), (fact("Alice has a cat."), (dog,))], said_at=MONDAY)
    reply = await model.complete(question_prompt(subject))
    verdicts = parse_resolution(reply.text, subject).value
    assert verdicts is not None
    assert [verdict.number for verdict in verdicts] == [1, 2]


async def test_many_questions_at_once_are_each_answered_and_one_without_facts_by_none(model: ChatModel) -> None:
    subjects = [extraction(user(f"I live in Berlin since {year}.")) for year in range(1950, 1980)]
    replies = await asyncio.gather(*(model.complete(extraction_prompt(subject)) for subject in subjects))
    for subject, reply in zip(subjects, replies, strict=True):
        parsed = parse_extraction(reply.text, subject)
        assert parsed.value
        assert parsed.complaints == ()
    nothing = extraction(user(""))
    assert parse_extraction((await model.complete(extraction_prompt(nothing))).text, nothing).value == ()
