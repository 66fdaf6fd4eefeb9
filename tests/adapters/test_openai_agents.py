from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, ModelResponse, Runner, SQLiteSession, Usage
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from mnemolog.adapters.openai_agents import MnemologSession
from mnemolog.testing import AsyncInMemoryClient


class Answers(Model):
    """Answers in order, and keeps the instructions and the input that it was given."""

    def __init__(self, *answers: str) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[str | None, Any]] = []

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - the SDK's name
        self.asked.append((system_instructions, input))
        text = ResponseOutputText(annotations=[], text=next(self._answers), type="output_text")
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


async def test_what_passes_is_published_and_what_is_known_is_told(async_memory: AsyncInMemoryClient) -> None:
    ann = async_memory.scope(user_id="ann")
    first, second = (MnemologSession(SQLiteSession(name), ann) for name in ("first", "second"))
    assert isinstance(first, Session)
    model = Answers("Do you live in Bern?", "Good.", "In Bern.")
    agent: Agent[Any] = Agent("helper", model=model, instructions=first.instructions)
    await Runner.run(agent, "Hello.", session=first)
    await Runner.run(agent, "I live in Bern.", session=first)
    assert [fact.value for fact in await ann.facts()] == ["Bern"]
    agent.instructions = second.instructions
    result = await Runner.run(agent, [{"role": "user", "content": "Where do I live?"}], session=second)
    assert result.final_output == "In Bern."
    assert "Bern" not in str(model.asked[0])
    assert "lives in Bern" in str(model.asked[2][0])
    tables = async_memory._connections.tables  # type: ignore[attr-defined] # of the client without servers
    assert [[one.content for one in turn.messages] for turn in tables.received.values()] == [
        ["Hello."],
        ["Do you live in Bern?", "I live in Bern."],
        ["Where do I live?"],
    ]


async def test_it_is_the_session_that_it_wraps(async_memory: AsyncInMemoryClient) -> None:
    wrapped = SQLiteSession("one")
    session = MnemologSession(wrapped, async_memory, user_id="ann")
    await session.add_items([{"role": "user", "content": [{"type": "input_text", "text": "I live in Bern."}]}])
    await session.add_items([{"type": "function_call_output", "call_id": "1", "output": "I live in Rome."}])
    assert session.session_id == "one"
    assert await session.get_items() == await wrapped.get_items()
    assert len(await session.get_items(limit=1)) == 1
    popped = await session.pop_item()
    assert popped is not None
    await session.clear_session()
    assert await wrapped.get_items() == []
    assert [fact.value for fact in await async_memory.facts(user_id="ann")] == ["Bern"]
