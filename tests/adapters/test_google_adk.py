from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import Agent
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory
from google.genai.types import Content, FunctionCall, Part

from mnemolog.adapters.google_adk import MnemologMemoryService
from mnemolog.errors import InvalidArgumentError, UnknownFactError
from mnemolog.testing import AsyncInMemoryClient


class Answers(BaseLlm):
    """Answers in order, and keeps what it was asked."""

    answers: list[Part]
    asked: list[str] = []  # noqa: RUF012 - a field of a Pydantic model

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002 - the port's
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(" ".join(one.model_dump_json() for one in llm_request.contents))
        yield LlmResponse(content=Content(role="model", parts=[self.answers.pop(0)]))


def answering(*answers: str | Part) -> Answers:
    return Answers(model="answers", answers=[Part(text=one) if isinstance(one, str) else one for one in answers])


def text(said: str) -> Content:
    return Content(role="user", parts=[Part(text=said)])


async def test_an_agent_remembers_what_another_session_said(async_memory: AsyncInMemoryClient) -> None:
    service, sessions = MnemologMemoryService(async_memory), InMemorySessionService()
    call = Part(function_call=FunctionCall(name="load_memory", args={"query": "Where do I live?"}))
    thought = Part(text="They live in Rome.", thought=True)
    model = answering("Good.", thought, call, "In Bern.")
    agent = Agent(name="helper", model=model, tools=[load_memory])
    runner = Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service)

    async def say(said: str, session_id: str) -> None:
        if await sessions.get_session(app_name="app", user_id="ann", session_id=session_id) is None:
            await sessions.create_session(app_name="app", user_id="ann", session_id=session_id)
        async for _ in runner.run_async(user_id="ann", session_id=session_id, new_message=text(said)):
            pass
        session = await sessions.get_session(app_name="app", user_id="ann", session_id=session_id)
        assert session is not None
        await service.add_session_to_memory(session)

    await say("I live in Bern.", "1")
    await say("Thank you.", "1")
    facts = await async_memory.facts(user_id="ann", app_id="app")
    assert [(fact.value, fact.mention_count) for fact in facts] == [("Bern", 1)]  # though it was added twice
    await say("Where do I live?", "2")
    assert "Bern" in model.asked[-1]
    tables = async_memory._connections.tables  # type: ignore[attr-defined] # of the client without servers
    assert [[one.content for one in turn.messages] for turn in tables.received.values()] == [
        ["I live in Bern.", "Good."],
        ["Thank you."],
        ["Where do I live?", "In Bern."],
    ]


async def test_memories_are_added_found_and_deleted(async_memory: AsyncInMemoryClient) -> None:
    service = MnemologMemoryService(async_memory, wait=True)
    whose: Any = {"app_name": "app", "user_id": "ann"}
    entry = MemoryEntry(content=text("The server is called Otto."), custom_metadata={"n": 1})
    await service.add_memory(**whose, memories=[entry], custom_metadata={"of": "test"})
    (found,) = (await service.search_memory(**whose, query="What is the server called?")).memories
    assert found.content.parts is not None
    assert found.content.parts[0].text == "The server is called Otto."
    assert found.custom_metadata == {"n": 1, "of": "test"}
    assert (await service.search_memory(app_name="other", user_id="ann", query="server")).memories == []
    for wildcard in ("*", "**"):
        with pytest.raises(InvalidArgumentError):
            await service.search_memory(app_name="app", user_id=wildcard, query="server")
    with pytest.raises(UnknownFactError):
        await service.delete_memory(app_name="app", user_id="bob", memory_id=found.id)
    await service.delete_memory(**whose, memory_id=found.id)
    assert (await service.search_memory(**whose, query="What is the server called?")).memories == []
