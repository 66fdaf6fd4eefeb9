"""LangChain agents that remember: `create_agent(model, middleware=[MnemologMiddleware(memory)])`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from mnemolog.client.inputs import ScopeArgs
from mnemolog.client.sync_client import MemoryClient


class Recalled(TypedDict):
    """What is in the prompts of a run: `text`, and what of it is no evidence where the answer repeats it."""

    text: str
    recalled: list[str]


class MemoryState(AgentState[Any]):
    """The state of an agent, with what was recalled for this run."""

    mnemolog: NotRequired[Annotated[Recalled, PrivateStateAttr]]  # type: ignore[valid-type] # LangChain has the types


class MnemologMiddleware(AgentMiddleware[MemoryState, Any]):
    """Puts what is known into the system message of each model call, and publishes the turn when the agent has ended.

    `memory` is bound to a user, or `whose` says by a run's runtime whose memory it is:
    `whose=lambda runtime: {"user_id": runtime.context.user_id}`. Published are the user's last messages and the texts
    that the assistant answered. `budget_tokens` is the most that the memory takes. Raises as `context` and `add` do.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: MemoryClient,
        *,
        whose: Callable[[Runtime[Any]], ScopeArgs] | None = None,
        budget_tokens: int = 800,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._whose = whose or (lambda _: {})
        self._budget_tokens = budget_tokens

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        asked = [one.text for one in _last_turn(state["messages"]) if isinstance(one, HumanMessage)]
        question = "\n".join(asked).strip() or None
        known = self._memory.context(question, budget_tokens=self._budget_tokens, **self._whose(runtime))
        return {"mnemolog": Recalled(text=known.text, recalled=[*known.recalled])}

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(_with_memory(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(_with_memory(request))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:
        said = [
            {"role": "user" if isinstance(one, HumanMessage) else "assistant", "content": one.text}
            for one in _last_turn(state["messages"])
            if isinstance(one, HumanMessage | AIMessage) and one.text.strip()
        ]
        recalled = state.get("mnemolog", {}).get("recalled", [])
        if any(one["role"] == "user" for one in said):
            self._memory.add(said, recalled=recalled, **self._whose(runtime))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> None:
        await asyncio.to_thread(self.after_agent, state, runtime)


def _with_memory(request: ModelRequest[Any]) -> ModelRequest[Any]:
    known = request.state.get("mnemolog", {}).get("text", "")
    if not known:
        return request
    told = request.system_message.text if request.system_message else ""
    return request.override(system_message=SystemMessage(f"{told}\n\n{known}".strip()))


def _last_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages from the user's last ones on."""
    start = len(messages)
    while start and not isinstance(messages[start - 1], HumanMessage):
        start -= 1
    while start and isinstance(messages[start - 1], HumanMessage):
        start -= 1
    return messages[start:]
