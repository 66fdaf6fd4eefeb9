import re
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from mnemolog.adapters.anthropic import AsyncMnemologMemoryTool, MnemologMemoryTool
from mnemolog.testing import InMemoryClient


def command(name: str, **arguments: Any) -> dict[str, Any]:
    return {"command": name, **arguments}


COMMANDS = [
    command("create", path="/memories/a.md", file_text="one\ntwo\none two\n"),
    command("create", path="/memories/a.md", file_text="again"),
    command("create", path="/memories/A.md", file_text="one\ntwo\none two\n"),
    command("create", path="/memories/folder/deep/er/b.md", file_text=""),
    command("create", path="/memories/folder/c.md", file_text="x" * 9000),
    command("create", path="/etc/passwd", file_text="x"),
    command("create", path="/memories/../passwd", file_text="x"),
    command("view", path="/memories"),
    command("view", path="/memories/folder"),
    command("view", path="/memories/a.md"),
    command("view", path="/memories/a.md", view_range=[2, 3]),
    command("view", path="/memories/a.md", view_range=[2, -1]),
    command("view", path="/memories/none.md"),
    command("str_replace", path="/memories/a.md", old_str="two\none", new_str="2\n1"),
    command("str_replace", path="/memories/a.md", old_str="o", new_str="0"),
    command("str_replace", path="/memories/a.md", old_str="never", new_str="0"),
    command("str_replace", path="/memories/none.md", old_str="o", new_str="0"),
    command("insert", path="/memories/a.md", insert_line=0, insert_text="zero\n"),
    command("insert", path="/memories/a.md", insert_line=99, insert_text="zero"),
    command("view", path="/memories/a.md"),
    command("rename", old_path="/memories/a.md", new_path="/memories/A.md"),
    command("rename", old_path="/memories/none.md", new_path="/memories/b.md"),
    command("rename", old_path="/memories/a.md", new_path="/memories/folder/a.md"),
    command("rename", old_path="/memories/folder", new_path="/memories/moved"),
    command("view", path="/memories/moved/a.md"),
    command("view", path="/memories/moved/deep/er/b.md"),
    command("view", path="/memories/folder/a.md"),
    command("delete", path="/memories/moved/c.md"),
    command("delete", path="/memories/moved"),
    command("delete", path="/memories/moved"),
    command("delete", path="/memories"),
    command("create", path="/memories/moved/c.md", file_text="new"),
    command("view", path="/memories/moved/c.md"),
]


def told(tool: Any, asked: dict[str, Any]) -> str:
    """What Claude reads; of a refusal and of an edit, that it is one."""
    try:
        answer = str(tool.call(asked))
    except ToolError:
        return "refused"
    if asked["command"] == "str_replace":
        return "edited"
    if "levels deep" not in answer:
        return answer
    without_sizes = (re.sub(r"^[\d.]+[BKM]?\t", "", line) for line in answer.splitlines())
    return "\n".join(sorted(line for line in without_sizes if "known.md" not in line))


def test_files_are_as_those_of_the_tool_over_a_folder(memory: InMemoryClient, tmp_path: Path) -> None:
    ours, theirs = MnemologMemoryTool(memory.scope(user_id="ann")), BetaLocalFilesystemMemoryTool(str(tmp_path))
    for asked in COMMANDS:
        assert told(ours, asked) == told(theirs, asked), asked


def test_what_is_known_is_a_file_that_cannot_be_written(memory: InMemoryClient) -> None:
    ann = memory.scope(user_id="ann")
    tool = MnemologMemoryTool(ann)
    ann.add("I live in Bern.")
    tool.call(command("create", path="/memories/plan.md", file_text="ask about Rome"))
    assert "known.md" in str(tool.call(command("view", path="/memories")))
    assert str(tool.call(command("view", path="/memories/known.md"))).endswith("\t- The user lives in Bern.")
    for wrong in (
        command("create", path="/memories/known.md", file_text="x"),
        command("delete", path="/memories/known.md"),
        command("rename", old_path="/memories/plan.md", new_path="/memories/known.md"),
        command("insert", path="/memories/known.md", insert_line=0, insert_text="x"),
        command("create", path="/memories/" + "x" * 300, file_text="longer than an id"),
        command("create", path="/memories/b.md"),
        command("view", path="/memories/plan.md", view_range=["a", 1]),
    ):
        with pytest.raises(ToolError):
            tool.call(wrong)


async def test_the_asynchronous_tool_does_the_same(memory: InMemoryClient) -> None:
    ann = memory.scope(user_id="ann")
    tool = AsyncMnemologMemoryTool(ann)
    assert tool.to_dict()["name"] == "memory"
    await tool.call(command("create", path="/memories/a.md", file_text="one"))
    assert "one" in str(MnemologMemoryTool(ann).call(command("view", path="/memories/a.md")))
    with pytest.raises(ToolError):
        await tool.call(command("create", path="/memories/a.md", file_text="one"))
