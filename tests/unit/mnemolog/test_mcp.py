"""The tools as a model is shown them, and what it is told where a call goes wrong; the SDK's client asks, in memory."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, get_args

import jsonschema
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, Tool

from mnemolog import AsyncMemoryClient
from mnemolog.errors import (
    AmbiguousIdError,
    LimitExceededError,
    MnemologError,
    ServerUnavailableError,
    UnknownFactError,
    UnknownTurnError,
)
from mnemolog.mcp import Right, announced_tools, build_server
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.scope import Scope
from mnemolog.settings import McpTools
from tests.support.harnesses.offline_client import OfflineClient

CORE = {
    *("add_memory", "search_memories", "get_memories", "update_memory", "delete_memory", "get_context"),
    *("explain_memory", "confirm_pending", "memories_at", "get_event_status"),
}
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "add_memory": {"text": "I live in Bern."},
    "save_memory": {"content": "I live in Bern."},
    "search_memories": {"query": "home"},
    "search_memory": {"query": "home"},
    "update_memory": {"memory_id": "3f2a1b4c", "text": "I live in Bonn."},
    "delete_memory": {"memory_id": "3f2a1b4c"},
    "explain_memory": {"memory_id": "3f2a1b4c"},
    "confirm_pending": {"memory_id": "3f2a1b4c"},
    "memories_at": {"true_at": "2026-01-31"},
    "get_event_status": {"event_id": "e1"},
}


@asynccontextmanager
async def connected(memory: AsyncMemoryClient | MnemologError, tools: McpTools = "core") -> AsyncIterator[Client]:
    """A client of a server whose requests are about this memory, or are refused by this error."""

    async def client_for(_: Mapping[str, Any], __: Right) -> AsyncMemoryClient:
        if isinstance(memory, MnemologError):
            raise memory
        return memory

    async with Client(build_server(client_for, tools=tools)) as client:
        yield client


async def listed(tools: McpTools = "core") -> Mapping[str, Tool]:
    async with connected(OfflineClient(), tools) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


def words(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_a_setting_says_whether_the_seed_s_names_stand_in_place_of_ours_or_beside_them() -> None:
    names = {chosen: set(await listed(chosen)) for chosen in get_args(McpTools)}
    assert names["core"] == CORE
    assert names["seed"] == CORE - {"add_memory", "search_memories"} | {"save_memory", "search_memory"}
    assert names["both"] == CORE | {"save_memory", "search_memory"}


async def test_what_a_model_reads_is_short_and_asks_for_nobody_s_id() -> None:
    tools = await listed("both")
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert not {"user_id", "agent_id", "tenant", "ctx"} & tool.input_schema["properties"].keys()
        assert len(tool.input_schema.get("required", [])) <= 2
        assert 60 < len(tool.description or "") < 600
        assert len(json.dumps(tool.output_schema)) < 2500
    # What each conversation pays for before a word is said: characters, of which a token has three to four.
    shown = [(one.name, one.description, one.input_schema) for one in tools.values() if one.name in CORE]
    assert len(json.dumps(shown)) < 9000


async def test_hints_say_what_a_host_may_run_without_asking() -> None:
    hints = {name: tool.annotations for name, tool in (await listed("both")).items()}
    reads = {name for name, one in hints.items() if one and one.read_only_hint}
    destroys = {name for name, one in hints.items() if one and one.destructive_hint}
    assert hints.keys() - reads == {"add_memory", "save_memory", "update_memory", "delete_memory", "confirm_pending"}
    assert destroys == {"update_memory", "delete_memory", "confirm_pending"}
    assert {name for name, one in hints.items() if one and not one.idempotent_hint} == {"add_memory", "save_memory"}
    assert all(one and one.title and one.open_world_hint is False for one in hints.values())


SCOPE = Scope(user_id="bob")
ERRORS: Mapping[str, tuple[MnemologError, str]] = {
    "of another user": (
        UnknownFactError("default", "3f2a", within="user_id 'alice'", scope=SCOPE),
        "no memory of this user has this id",
    ),
    "unknown event": (UnknownTurnError("default", "e1"), "no change of this user has this event_id"),
    "ambiguous": (AmbiguousIdError("fact", "3f2a", [("3f2a1", "A."), ("3f2a2", "B.")]), "give more characters"),
    "away": (ServerUnavailableError("Kafka cannot be reached: start it"), "start it"),
    "limit": (
        LimitExceededError("t1", LimitHit(name="active_facts", level="scope", limit=5, count=5)),
        "because a limit is reached: active facts of the scope: 5 of 5",
    ),
    "own words": (MnemologError("fact_id is 'x': give all of turn_id"), "memory_id is 'x': give all of event_id"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_is_an_answer_that_says_what_to_do(name: str) -> None:
    error, said = ERRORS[name]
    async with connected(error, "both") as client:
        for tool in announced_tools("both"):
            result = await client.call_tool(tool.name, dict(ARGUMENTS.get(tool.name, {})))
            assert result.is_error
            assert said in words(result)
            assert "bob" not in words(result)
            assert "Error executing" not in words(result)


WRONG: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "nothing": ("add_memory", {}, "add_memory was not called: text is missing"),
    "empty": ("search_memories", {"query": ""}, "query must have at least 1 character"),
    "too many": ("get_memories", {"limit": 1000}, "limit must be at most 100, not 1000"),
    "no number": ("get_context", {"budget_tokens": "many"}, "budget_tokens must be a whole number"),
    "no time": ("memories_at", {"true_at": "last year"}, "is not a time ('last year'): write 2026-01-31"),
    "no moment": ("memories_at", {}, "give true_at, known_at or both"),
    "empty moments": ("memories_at", {"true_at": "", "known_at": ""}, "give true_at, known_at or both"),
    "no id": ("delete_memory", {"memory_id": "the dog"}, "memory_id"),
    "no servers": ("add_memory", {"text": "I live in Bern."}, "`mnemolog up --data"),
    "no such tool": ("forget_everything", {}, "Unknown tool: forget_everything"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_call_is_named_in_the_words_of_the_tool(name: str) -> None:
    tool, arguments, said = WRONG[name]
    client = OfflineClient()
    async with connected(client.scope(user_id="alice")) as asking:
        result = await asking.call_tool(tool, dict(arguments))
    assert result.is_error
    assert said in words(result)
    assert client.producer.records == []
