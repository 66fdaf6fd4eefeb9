from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from mnemolog.adapters.langchain import MnemologMiddleware
from mnemolog.testing import InMemoryClient


class Model(GenericFakeChatModel):
    """Answers in order, and keeps what it was asked."""

    asked: list[list[BaseMessage]] = []  # noqa: RUF012 - a field of a Pydantic model

    def bind_tools(self, *_: Any, **__: Any) -> "Model":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *args, **kwargs)


def answering(*answers: str | AIMessage) -> Model:
    return Model(messages=iter([AIMessage(one) if isinstance(one, str) else one for one in answers]))


@tool
def weather(place: str) -> str:
    """Say how the weather is."""
    return f"I live in {place}, where it rains."


@dataclass
class User:
    user_id: str


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_agent_is_told_what_is_known_and_what_is_said_is_published(
    memory: InMemoryClient, is_async: bool
) -> None:
    ann = memory.scope(user_id="ann")
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {"place": "Rome"}, "id": "1"}])
    model = answering("Good.", call, "It rains in Bern.", "Bye.")
    agent = create_agent(
        model,
        [weather],
        system_prompt="Be brief.",
        middleware=[MnemologMiddleware(ann)],
        checkpointer=InMemorySaver(),
    )

    async def say(text: str, thread: str) -> dict[str, Any]:
        given, config = {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}
        return await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)

    await say("I live in Bern.", "1")
    assert [fact.value for fact in ann.facts()] == ["Bern"]
    state = await say("How is the weather where I live?", "2")
    assert "mnemolog" not in state
    assert await say("Thank you.", "2")
    first, *later = [(one[0].text, len(one)) for one in model.asked]
    assert first == ("Be brief.", 2)
    assert all(told.startswith("Be brief.") for told, _ in later)
    assert ["lives in Bern" in told for told, _ in later] == [True, True, False]
    assert [fact.value for fact in ann.facts()] == ["Bern"]  # neither the tool nor the answer is evidence
    tables = memory._connections.tables  # type: ignore[attr-defined] # of the client without servers
    turns = [[(one.role, one.content) for one in turn.messages] for turn in tables.received.values()]
    assert turns == [
        [("user", "I live in Bern."), ("assistant", "Good.")],
        [("user", "How is the weather where I live?"), ("assistant", "It rains in Bern.")],
        [("user", "Thank you."), ("assistant", "Bye.")],
    ]
    assert [bool(turn.recalled) for turn in tables.received.values()] == [False, True, False]


def test_a_run_says_whose_memory_it_is(memory: InMemoryClient) -> None:
    middleware = MnemologMiddleware(memory, whose=lambda runtime: {"user_id": runtime.context.user_id})
    model = answering("Good.", "Good.", "I see.")
    agent = create_agent(model, middleware=[middleware], context_schema=User)
    agent.invoke({"messages": [HumanMessage("I live in Bern.")]}, context=User("ann"))
    agent.invoke({"messages": [HumanMessage("I live in Rome.")]}, context=User("bob"))
    agent.invoke({"messages": [HumanMessage("Where do I live?")]}, context=User("bob"))
    assert isinstance(told := model.asked[-1][0], SystemMessage)
    assert "Rome" in told.text
    assert "Bern" not in told.text
