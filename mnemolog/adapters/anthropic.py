"""The memory tool of Claude over a memory: `tool_runner(..., tools=[MnemologMemoryTool(memory)])`."""

import asyncio
import posixpath
from typing import Any, Final

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from mnemolog.adapters import check_done
from mnemolog.client.inputs import ScopeArgs
from mnemolog.client.sync_client import MemoryClient
from mnemolog.errors import MnemologError
from mnemolog.projections.queries.results import Fact

ROOT: Final = "/memories"
KNOWN: Final = f"{ROOT}/known.md"
"""A file that is always there: a line for each fact that the memory has learned of conversations."""
RUN_ID: Final = "memory-tool"
"""The `run_id` of the files; the path of a file is its `app_id`, of up to 256 bytes."""
_LEVELS: Final = 2


class MnemologMemoryTool(BetaAbstractMemoryTool):
    """Files that Claude writes, each a fact that is stored as it is, and each edit of one a command with its history.

    `memory` is bound to a user. `/memories/known.md` shows what is known of the user, and cannot be written: that is
    learned of what the user says, as `add` publishes it.
    """

    def __init__(self, memory: MemoryClient, **options: Any) -> None:
        super().__init__(**options)
        self._memory = memory

    def execute(self, command: Any) -> Any:
        try:
            return super().execute(command)
        except MnemologError as error:
            raise ToolError(str(error)) from error
        except (AttributeError, TypeError, ValueError) as error:  # Claude's arguments are not checked by the SDK
            raise ToolError(f"The arguments of {command.command} are not as the tool has them: {error}") from error

    def view(self, command: Any) -> str:
        path = _path(command.path)
        files = {KNOWN: self._known()} | {one: fact.metadata["content"] for one, fact in self._files().items()}
        if path in files:
            first, last = command.view_range or (1, -1)
            lines = files[path].split("\n")
            shown = lines[max(first, 1) - 1 : None if last == -1 else last]
            numbered = (f"{number:6}\t{line}" for number, line in enumerate(shown, start=max(first, 1)))
            return f"Here's the content of {command.path} with line numbers:\n" + "\n".join(numbered)
        under = {one: len(content) for one, content in files.items() if one.startswith(f"{path}/")}
        if not under:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        sizes = {path: sum(under.values())}
        for one, size in sorted(under.items()):
            parts = one[len(path) + 1 :].split("/")
            for depth in range(1, min(len(parts), _LEVELS) + 1):
                name = f"{path}/{'/'.join(parts[:depth])}" + ("/" if depth < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + size
        listed = "\n".join(f"{size}B\t{name}" for name, size in sizes.items())
        return (
            f"Here're the files and directories up to {_LEVELS} levels deep in {command.path}, excluding hidden items:"
            f"\n{listed}"
        )

    def create(self, command: Any) -> str:
        if _path(command.path) in self._files():
            raise ToolError(f"File {command.path} already exists")
        self._write(_path(command.path), command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        content = self._content(command.path)
        found = content.count(command.old_str)
        if found != 1:
            raise ToolError(f"No replacement was performed: old_str occurs {found} times in {command.path}")
        self._write(_path(command.path), content.replace(command.old_str, command.new_str))
        return f"The memory file {command.path} has been edited."

    def insert(self, command: Any) -> str:
        lines = self._content(command.path).removesuffix("\n").split("\n")
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"Invalid `insert_line` parameter: it should be within the range [0, {len(lines)}].")
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._write(_path(command.path), "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        for fact in self._under(command.path).values():
            self._remove(fact)
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        old, new, files = _path(command.old_path), _path(command.new_path), self._files()
        if any(one == new or one.startswith(f"{new}/") for one in (*files, KNOWN)):
            raise ToolError(f"The destination {command.new_path} already exists")
        for path, fact in self._under(command.old_path).items():
            self._write(new + path[len(old) :], fact.metadata["content"])
            self._remove(fact)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def _known(self) -> str:
        return "\n".join(f"- {fact.text}" for fact in self._memory.facts())

    def _files(self) -> dict[str, Fact]:
        facts = self._memory.facts(run_id=RUN_ID, app_id="*")
        return {fact.metadata["path"]: fact for fact in facts if "path" in fact.metadata}

    def _under(self, given: str) -> dict[str, Fact]:
        """The file of this path, or those in the folder."""
        path = _path(given)
        if path in (ROOT, KNOWN):
            raise ToolError(f"{path} can be neither deleted nor renamed")
        found = {one: fact for one, fact in self._files().items() if one == path or one.startswith(f"{path}/")}
        if not found:
            raise ToolError(f"The path {given} does not exist")
        return found

    def _content(self, given: str) -> str:
        fact = self._files().get(_path(given))
        if fact is None:
            raise ToolError(f"The path {given} is no file that you have written.")
        return str(fact.metadata["content"])

    def _write(self, path: str, content: str) -> None:
        if path in (ROOT, KNOWN):
            raise ToolError(f"{path} cannot be written: {KNOWN} is learned of what the user says")
        scope: ScopeArgs = {"run_id": RUN_ID, "app_id": path}
        metadata, text = {"path": path, "content": content}, content.strip() or path
        if known := self._files().get(path):
            done = self._memory.update(known.fact_id, text, metadata=metadata, wait=True, **scope)
        else:
            done = self._memory.add(text, infer=False, metadata=metadata, wait=True, **scope)
        check_done(done)

    def _remove(self, fact: Fact) -> None:
        check_done(self._memory.delete(fact.fact_id, wait=True, run_id=RUN_ID, app_id=fact.app_id))


class AsyncMnemologMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`; the blocking `memory` is asked in a thread."""

    def __init__(self, memory: MemoryClient, **options: Any) -> None:
        super().__init__(**options)
        self._tool = MnemologMemoryTool(memory)

    async def execute(self, command: Any) -> Any:
        return await asyncio.to_thread(self._tool.execute, command)

    view = create = str_replace = insert = delete = rename = execute


def _path(given: str) -> str:
    path = posixpath.normpath(given)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {given}")
    return path
