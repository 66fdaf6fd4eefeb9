"""Agents of Pydantic AI that remember: `Agent(model, capabilities=[MnemologCapability(memory)])`."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.run import AgentRunResult

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import ScopeArgs
from mnemolog.projections.context import Context


@dataclass
class MnemologCapability(AbstractCapability[Any]):
    """Adds what is known to the instructions of a run, and publishes its prompt and answer when it has ended.

    `memory` is bound to a user, or `whose` says by a run's context whose memory it is:
    `whose=lambda run: {"user_id": run.deps.user_id}`. `budget_tokens` is the most that the memory takes. A run without
    a prompt of text publishes nothing. Raises as `context` and `add` do.
    """

    memory: AsyncMemoryClient
    whose: Callable[[RunContext[Any]], ScopeArgs] = field(default=lambda _: ScopeArgs())
    budget_tokens: int = 800
    _known: Context | None = field(default=None, init=False, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> "MnemologCapability":  # noqa: ARG002 - the framework gives it
        return replace(self)  # without `_known`

    def get_instructions(self) -> Any:
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str:
        if self._known is None:
            asked = _prompt(ctx) or None
            self._known = await self.memory.context(asked, budget_tokens=self.budget_tokens, **self.whose(ctx))
        return self._known.text

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        if asked := _prompt(ctx):
            answers = [
                {"role": "assistant", "content": part.content}
                for message in result.new_messages()
                if isinstance(message, ModelResponse)
                for part in message.parts
                if isinstance(part, TextPart) and part.content.strip()
            ]
            recalled = self._known.recalled if self._known else ()
            said = [{"role": "user", "content": asked}, *answers]
            await self.memory.add(said, recalled=recalled, **self.whose(ctx))
        return result


def _prompt(ctx: RunContext[Any]) -> str:
    """The texts of what the user said; images and files are left out."""
    parts = [ctx.prompt] if isinstance(ctx.prompt, str) else ctx.prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str)).strip()
