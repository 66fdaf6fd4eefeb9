"""`mnemolog mcp` as an assistant starts it, with the SDK's client; test_typescript.py has another one."""

import json
import re
import tomllib

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


def test_whose_memory_it_is_has_to_be_said(empty_shell: CommandLine) -> None:
    done = empty_shell.run("mcp")
    assert (done.code, done.stdout) == (2, "")
    assert "MNEMOLOG_MCP_USER" in done.stderr
