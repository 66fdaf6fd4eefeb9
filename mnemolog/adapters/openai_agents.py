"""A session of the OpenAI Agents SDK that remembers: `Runner.run(agent, text, session=MnemologSession(...))`."""

from collections.abc import Sequence
from typing import Any, Final

from agents import Agent, RunContextWrapper, TResponseInputItem
from agents.memory import Session, SessionSettings

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import ScopeArgs

LOOKED_BACK: Final = 8
"""Items before the user's message among which the answer is that it may reply to."""


class MnemologSession:
    """Keeps the items in `session`, and publishes what the user says, behind the answer that it may reply to.

    `memory` is bound to a user, or `whose` names one. `instructions` may be those of an agent: it adds what is known.
    `clear_session` and `pop_item` forget the conversation, not what was learned of it. Raises as `add` and `context`.
    """

    def __init__(self, session: Session, memory: AsyncMemoryClient, **whose: Any) -> None:
        self._session = session
        self._memory = memory
        self._whose: ScopeArgs = whose  # type: ignore[assignment] # checked by each call
        self._recalled: Sequence[str] = ()

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def session_settings(self) -> SessionSettings | None:
        return self._session.session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        said = _messages(items)
        told = _messages(await self._session.get_items(LOOKED_BACK))[-1:] if _is_by_user(said) else []
        await self._session.add_items(items)
        if _is_by_user(said):
            answer = [one for one in told if one["role"] == "assistant"]
            await self._memory.add([*answer, *said], recalled=self._recalled, **self._whose)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        await self._session.clear_session()

    async def instructions(self, run: RunContextWrapper[Any], agent: Agent[Any]) -> str:  # noqa: ARG002 - the SDK gives it
        """What is known and matters to what the user says in this run; `Agent(instructions=session.instructions)`."""
        asked = "\n".join(one["content"] for one in _messages(run.turn_input) if one["role"] == "user")
        known = await self._memory.context(asked or None, **self._whose)
        self._recalled = known.recalled
        return known.text


def _messages(items: Sequence[Any]) -> list[dict[str, str]]:
    """The texts of user and assistant; what tools say is left out."""
    found = []
    for item in items:
        role, content = item.get("role"), item.get("content")
        parts = [content] if isinstance(content, str) else [part.get("text") for part in content or ()]
        text = "\n".join(filter(None, parts))
        if role in ("user", "assistant") and text.strip():
            found.append({"role": role, "content": text})
    return found


def _is_by_user(messages: Sequence[dict[str, str]]) -> bool:
    return any(one["role"] == "user" for one in messages)
