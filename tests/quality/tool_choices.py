"""Which tool of `mnemolog mcp` a real model takes for what a user says: recorded once, and compared on every run.

Names and descriptions were improved by what the model did with the requests of `dev`; those of `test` measure it.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import jsonschema

from mnemolog.mcp import INSTRUCTIONS, build_server
from tests.support.harnesses.offline_client import OfflineClient

FOLDER: Final = Path(__file__).with_name("tools")
REQUESTS: Final[Mapping[str, Sequence[tuple[str, str]]]] = json.loads((FOLDER / "requests.json").read_text())
"""By split, the tool that is right, and what the user says."""
_WRITTEN: Final = re.compile(r"\{.*\}", re.DOTALL)
RECORDED: Final = FOLDER / "recorded.json"


class Choice(NamedTuple):
    """What the model called; no tool where it only talked."""

    tool: str | None
    arguments: Any


async def function_tools() -> list[dict[str, Any]]:
    """The tools as an API of chat completions takes them."""

    async def client_for(*_: object) -> OfflineClient:
        return OfflineClient()

    return [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": one.input_schema},
        }
        for one in await build_server(client_for).list_tools()
    ]


def digest_of(tools: Sequence[Mapping[str, Any]]) -> str:
    """Of all that the model was shown: a recording of anything else says nothing."""
    return hashlib.sha256(json.dumps([INSTRUCTIONS, tools, REQUESTS], sort_keys=True).encode()).hexdigest()


async def record(base_url: str, model: str) -> str:
    """Ask the model, write its choices, and say in a sentence how often it was right."""
    tools = await function_tools()
    choices: dict[str, list[Choice]] = {}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=600)) as session:
        for split, requests in REQUESTS.items():
            for wanted, said in requests:
                chosen = await _ask(session, base_url, model, tools, said)
                choices.setdefault(split, []).append(chosen)
                print(f"{split} {'ok ' if chosen.tool == wanted else 'BAD'} {said} -> {chosen}")  # noqa: T201 - a script's
    RECORDED.write_text(json.dumps({"model": model, "digest": digest_of(tools), "choices": choices}, indent=1) + "\n")
    return sentence(tools)


async def _ask(
    session: aiohttp.ClientSession, base_url: str, model: str, tools: Sequence[Mapping[str, Any]], said: str
) -> Choice:
    body = {
        "model": model,
        "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": said}],
        "tools": tools,
        "tool_choice": "required",
        "temperature": 0,
        "max_tokens": 200,
        "stop": ["\n\n"],
    }
    async with session.post(f"{base_url}/chat/completions", json=body) as reply:
        message = (await reply.json())["choices"][0]["message"]
    for call in message.get("tool_calls") or ():
        return Choice(call["function"]["name"], json.loads(call["function"]["arguments"]))
    # The server's template shows this model calls in double braces: where it writes them so, they are no call to it.
    written = _WRITTEN.search((message.get("content") or "").replace("{{", "{").replace("}}", "}"))
    try:
        called = json.loads(written[0]) if written else {}
    except ValueError:
        called = {}
    return Choice(called.get("name"), called.get("arguments", message.get("content")))


def right(split: str, tools: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many choices of a split are the right tool with arguments that it takes, and of how many."""
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in tools}
    recorded = [Choice(*one) for one in json.loads(RECORDED.read_text())["choices"][split]]
    checked = [
        chosen.tool == wanted and jsonschema.Draft202012Validator(schemas[wanted]).is_valid(chosen.arguments)
        for (wanted, _), chosen in zip(REQUESTS[split], recorded, strict=True)
    ]
    return sum(checked), len(checked)


def sentence(tools: Sequence[Mapping[str, Any]]) -> str:
    """As docs/mcp.md says it."""
    model = json.loads(RECORDED.read_text())["model"]
    dev, test = ("{} of {}".format(*right(split, tools)) for split in ("dev", "test"))
    return (
        f"A small real model ({model}) called the right tool with valid arguments for {test} requests that nothing was "
        f"tuned on, and for {dev} by which names and descriptions were improved."
    )
