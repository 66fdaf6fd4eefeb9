"""`mnemolog mcp` as an assistant starts it: with the SDK's client, and with JSON-RPC written here line by line."""

import json
import re
import subprocess
import tomllib
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.support.harnesses.command_line import EXECUTABLE, CommandLine
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


async def test_the_sdk_s_client_over_stdio_as_the_page_starts_it(shell: CommandLine) -> None:
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    in_json, in_toml = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("json", "toml"))
    assert in_json
    assert in_toml
    shown = json.loads(in_json[1])["mcpServers"]["memory"]
    assert tomllib.loads(in_toml[1])["mcp_servers"]["memory"] == shown
    environ = {**shell.environ, "MNEMOLOG_TENANT": "mcp-over-stdio", "MNEMOLOG_MCP_TOOLS": "seed"}
    server = StdioServerParameters(command=str(EXECUTABLE), args=shown["args"], env=environ, cwd=shell.folder)
    async with Client(server) as client:
        saved = await client.call_tool("save_memory", {"content": "I live in Lisbon."})
        assert saved.structured_content is not None
        assert saved.structured_content["status"] == "done"
        found = await client.call_tool("search_memory", {"query": "Lisbon"})
        assert found.structured_content is not None
        assert [one["id"] for one in found.structured_content["memories"]] == [
            one["id"] for one in saved.structured_content["added"]
        ]


class RawClient:
    """Speaks the handshake of 2025 on the pipes of a process; each line of its stdout has to be an answer."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._last = 0

    def send(self, method: str, **params: Any) -> None:
        assert self._process.stdin is not None
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            self._last += 1
            message["id"] = self._last
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        self.send(method, **params)
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._last)
        return answer.get("result", answer.get("error"))


def test_a_client_of_another_make_and_nothing_but_the_protocol_on_stdout(shell: CommandLine) -> None:
    with subprocess.Popen(
        [EXECUTABLE, "mcp", "--user", "vera"],
        cwd=shell.folder,
        env=shell.environ | {"MNEMOLOG_LOG_LEVEL": "debug"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        client = RawClient(process)
        info = {"name": "raw", "version": "1"}
        started = client.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        assert (started["serverInfo"]["name"], started["protocolVersion"]) == ("mnemolog", "2025-06-18")
        client.send("notifications/initialized")
        assert len(client.ask("tools/list")["tools"]) == 10
        added = client.ask("tools/call", name="add_memory", arguments={"text": "I live in Porto."})
        assert json.loads(added["content"][0]["text"]) == added["structuredContent"]
        assert "Porto" in added["structuredContent"]["added"][0]["memory"]
        wrong = client.ask("tools/call", name="search_memories", arguments={})
        assert (wrong["isError"], "query is missing" in wrong["content"][0]["text"]) == (True, True)
        rest, log = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, "")
    assert "Porto" not in log


def test_whose_memory_it_is_has_to_be_said(empty_shell: CommandLine) -> None:
    done = empty_shell.run("mcp")
    assert (done.code, done.stdout) == (2, "")
    assert "MNEMOLOG_MCP_USER" in done.stderr
