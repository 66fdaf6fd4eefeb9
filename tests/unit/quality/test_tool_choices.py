"""The recorded choices of a real model among the tools are of these tools, and docs/mcp.md says how good they were."""

import json

from tests.quality.tool_choices import RECORDED, digest_of, function_tools, right, sentence
from tests.support.paths import ROOT


async def test_the_recorded_choices_are_of_the_tools_as_they_are_now() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert recorded["digest"] == digest_of(await function_tools()), "stale: run `make recordings ARGS=--tools`"


async def test_the_page_says_how_often_a_small_model_took_the_right_tool() -> None:
    tools = await function_tools()
    assert sentence(tools) in " ".join((ROOT / "docs" / "mcp.md").read_text().split())
    good, number = right("test", tools)
    assert good / number >= 0.75
