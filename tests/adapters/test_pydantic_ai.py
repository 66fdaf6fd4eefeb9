from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ImageUrl
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from mnemolog.adapters.pydantic_ai import MnemologCapability
from mnemolog.testing import AsyncInMemoryClient


class Place(BaseModel):
    name: str


@dataclass
class User:
    user_id: str


class Answers:
    """Answers in order, and keeps the instructions that it was given."""

    def __init__(self, *answers: str | ToolCallPart) -> None:
        self._answers = iter(answers)
        self.told: list[str] = []

    def __call__(self, _: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.told.append(info.instructions or "")
        answer = next(self._answers)
        return ModelResponse(parts=[TextPart(answer) if isinstance(answer, str) else answer])


def answering(*answers: str | ToolCallPart) -> FunctionModel:
    return FunctionModel(Answers(*answers))


async def test_an_agent_is_told_what_is_known_and_what_is_said_is_published(async_memory: AsyncInMemoryClient) -> None:
    call = ToolCallPart("weather", {"place": "Rome"})
    answers = Answers("Good.", call, "It rains in Bern.", ToolCallPart("final_result", {"name": "Bern"}))
    capability = MnemologCapability(async_memory.scope(user_id="ann"))
    agent: Agent[Any, Any] = Agent(FunctionModel(answers), instructions="Be brief.", capabilities=[capability])

    @agent.tool_plain
    def weather(place: str) -> str:
        return f"I live in {place}, where it rains."

    assert (await agent.run("I live in Bern.")).output == "Good."
    await agent.run(["How is the weather where I live?", ImageUrl("http://127.0.0.1/image.png")])
    assert (await agent.run("In which place do I live?", output_type=Place)).output == Place(name="Bern")
    assert ["lives in Bern" in told for told in answers.told] == [False, True, True, True]
    assert all("Be brief." in told for told in answers.told)
    assert [fact.value for fact in await async_memory.facts(user_id="ann")] == ["Bern"]
    tables = async_memory._connections.tables  # type: ignore[attr-defined] # of the client without servers
    assert [([one.content for one in turn.messages], bool(turn.recalled)) for turn in tables.received.values()] == [
        (["I live in Bern.", "Good."], False),
        (["How is the weather where I live?", "It rains in Bern."], True),
        (["In which place do I live?"], True),
    ]


async def test_a_run_says_whose_memory_it_is(async_memory: AsyncInMemoryClient) -> None:
    answers = Answers("Good.", "Good.", "I see.")
    capability = MnemologCapability(async_memory, whose=lambda run: {"user_id": run.deps.user_id})
    agent: Agent[Any, Any] = Agent(FunctionModel(answers), deps_type=User, capabilities=[capability])
    await agent.run("I live in Bern.", deps=User("ann"))
    await agent.run("I live in Rome.", deps=User("bob"))
    await agent.run("Where do I live?", deps=User("bob"))
    assert "Rome" in answers.told[-1]
    assert "Bern" not in answers.told[-1]
