"""Turns that name people, places and things, as people do; and a model server that says whom and what they name."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any, Final

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.offline.extract import read_turn
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.servers.canned_replies import ChatRequest, word_overlap_decisions
from tests.support.servers.openai_server import OpenAiServer

SAID: Final = (
    "My wife is called Ana Keller. I live in Bern.",
    "I work at Siemens.",
    "My brother Tom plays chess with our neighbour Ida.",
    "Ana started a course in Zurich yesterday.",
    "I had lunch with Tom from work, he is from Oslo.",
    "I love hiking in the Alps.",
    "We have a dog called Rex.",
    "Rex was at the vet with Ana this morning.",
    "My brother Tom moved to Hamburg with his friend Paul.",
    "I read for an hour every evening.",
    "I work at Bosch now.",
    "Tom from work told me that Siemens is closing the canteen.",
    "My sister Clara visits us in May.",
    "I moved from Bern to Basel.",
    "Clara and Ana painted the kitchen green.",
    "I no longer work at Bosch.",
)
"""What each user says, a turn each: four name nobody, and three end a relation."""
BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
RELATIONS_ASKED: Final = "\nrelations: "
"""What a prompt has that asks for relations."""


def named_turns(user: str) -> Iterator[Turn]:
    """The turns of a user, an hour apart."""
    for place, said in enumerate(SAID):
        yield Turn(
            turn_id=f"{user}-{place}",
            scope=Scope(user_id=user),
            messages=(Message(role="user", content=said),),
            occurred_at=BEGIN + timedelta(hours=place),
            speaker="Alice",
        )


class NamedReplies:
    """What the offline rules read, as a model would say it; entities and relations where the prompt asks for them."""

    def __call__(self, request: ChatRequest) -> str:
        if request.turn_id is None:
            return word_overlap_decisions(request.question)
        is_asked = RELATIONS_ASKED in request.body["messages"][0]["content"]
        messages = tuple(Message(role="user", content=line) for role, _, line in request.messages if role == "user")
        turn = Turn(turn_id="asked", scope=Scope(user_id="u"), messages=messages, occurred_at=BEGIN, speaker="Alice")
        return facts_reply(*(_reply(fact, names=is_asked) for fact in read_turn(turn)[0]))


def _reply(fact: ExtractedFact, *, names: bool) -> dict[str, Any]:
    said = fact_json(fact.text, fact.search_text, **fact.model_dump(include=_SAID_TOO))
    if names:
        return said | {name: [one.model_dump() for one in getattr(fact, name)] for name in _NAMED}
    return {field: value for field, value in said.items() if field not in _NAMED}


_SAID_TOO: Final = {"excerpt", "key", "value", "single_valued", "subject", "action_hint"}
_NAMED: Final = ("entities", "relations")


@asynccontextmanager
async def named_model_server() -> AsyncIterator[str]:
    """The base URL of a model server that replies so at once, in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,))
    process.start()
    try:
        yield await asyncio.to_thread(here.recv)
    finally:
        here.send("stop")
        await asyncio.to_thread(process.join)


def _serve(pipe: Connection) -> None:
    with OpenAiServer(NamedReplies()) as server:
        pipe.send(server.base_url)
        pipe.recv()
