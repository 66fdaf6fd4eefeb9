"""A memory service of Google's Agent Development Kit: `Runner(..., memory_service=MnemologMemoryService(memory))`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from google.adk.events import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, Part

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.inputs import Wait
from mnemolog.errors import InvalidArgumentError
from mnemolog.projections.queries.scope_filter import WILDCARDS


class MnemologMemoryService(BaseMemoryService):
    """Publishes invocations as turns of the user and the application, and searches the facts that come of them.

    A session may be added again: events that were published before change nothing. What tools said and what the model
    only thought is left out. `wait` is how long to wait for the decision, as in `add`. Raises as the client does.
    """

    def __init__(self, memory: AsyncMemoryClient, *, wait: Wait = False) -> None:
        self._memory = memory
        self._wait = wait

    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        spoken = [one for one in events if not one.partial and _text(one.content).strip()]
        for _, group in groupby(spoken, key=lambda one: one.invocation_id):
            of_one = [*group]
            if all(one.author != "user" for one in of_one):
                continue
            roles = ("user" if one.author == "user" else "assistant" for one in of_one)
            await self._memory.add(
                [{"role": role, "content": _text(one.content)} for role, one in zip(roles, of_one, strict=True)],
                **_whose(app_name, user_id),
                turn_id=f"adk/{session_id or ''}/{of_one[-1].id}",
                occurred_at=datetime.fromtimestamp(of_one[0].timestamp, UTC),
                metadata=custom_metadata,
                wait=self._wait,
            )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store each memory as it is, without a model."""
        for one in memories:
            metadata = {**(custom_metadata or {}), **one.custom_metadata}
            whose = _whose(app_name, user_id)
            await self._memory.add(_text(one.content), infer=False, metadata=metadata, wait=self._wait, **whose)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        hits = await self._memory.search(query, state="active", **_whose(app_name, user_id))
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=str(hit.fact.fact_id),
                    content=Content(role="user", parts=[Part(text=hit.fact.text)]),
                    author="user",
                    timestamp=hit.fact.true_from.isoformat(),
                    custom_metadata=hit.fact.metadata,
                )
                for hit in hits
            ]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        if memory_id:
            await self._memory.delete(memory_id, wait=self._wait, **_whose(app_name, user_id))


def _whose(app_name: str, user_id: str) -> dict[str, Any]:
    """The scope of a user and an application: a user who is called "*" is not everybody."""
    if not WILDCARDS.isdisjoint((app_name, user_id)):
        raise InvalidArgumentError("app_name and user_id are ids, never '*' or '**'")
    return {"user_id": user_id, "app_id": app_name}


def _text(content: Content | None) -> str:
    parts = content.parts if content else None
    return "\n".join(part.text for part in parts or () if part.text and not part.thought)
