"""The stub of `MemoryClient`: the methods of `AsyncMemoryClient` without `async`, with their types and docstrings.

At run time they are made by a loop, which type checkers and editors cannot see.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = "async_client", "results", "search", "queries", "entities", "commands", "entity_commands", "files"
HEAD: Final = '''"""The blocking client, for programs without an event loop. This file is written by `make generate`."""
'''
OWN: Final = '''
def new_event_loop() -> AbstractEventLoop: ...

class MemoryClient:
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`; several threads may call it at once.
    """

    _client: AsyncMemoryClient
    def __init__(self, **options: Unpack[ClientOptions]) -> None: ...
    @classmethod
    def from_settings(cls, settings: Settings) -> Self: ...
    def scope(self, **ids: Unpack[BoundArgs]) -> Self:
        """The same client bound to a scope: its methods take these ids where a call does not give them."""
    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
'''
OWN_IMPORTS: Final = (
    "from asyncio import AbstractEventLoop",
    "from typing import Self",
    "from mnemolog.client.async_client import AsyncMemoryClient",
    "from mnemolog.client.base import ClientOptions",
    "from mnemolog.client.inputs import BoundArgs",
    "from mnemolog.settings import Settings",
)


def client_stub() -> str:
    trees = [ast.parse((ROOT / f"mnemolog/client/{name}.py").read_text(encoding="utf-8")) for name in SOURCES]
    loop, client = ast.parse(OWN).body
    assert isinstance(client, ast.ClassDef)  # noqa: S101 - it is written above
    for tree in trees:
        for source in tree.body:
            if isinstance(source, ast.ClassDef) and source.name.endswith(("Mixin", "AsyncMemoryClient")):
                client.body += _methods(source)
    used = {node.id for node in ast.walk(client) if isinstance(node, ast.Name)}
    imports = [*_imports(trees, used), *OWN_IMPORTS]
    return _formatted("\n".join((HEAD, *sorted(set(imports)), "", ast.unparse(loop), ast.unparse(client), "")))


def _methods(source: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """The public methods, of overloaded ones the overloads alone: the first of them has the docstring."""
    public = [one for one in source.body if isinstance(one, ast.AsyncFunctionDef) and not one.name.startswith("_")]
    docs = {one.name: one.body[0] for one in public if ast.get_docstring(one)}
    overloaded = {one.name for one in public if one.decorator_list}
    for one in public:
        if one.name in overloaded and not one.decorator_list:
            continue
        one.args.defaults = [ast.Constant(...) for _ in one.args.defaults]
        one.args.kw_defaults = [value and ast.Constant(...) for value in one.args.kw_defaults]
        doc = docs.pop(one.name, None)
        body: list[ast.stmt] = [doc] if doc else [ast.Expr(ast.Constant(...))]
        yield ast.FunctionDef(
            name=one.name,
            args=one.args,
            body=body,
            decorator_list=one.decorator_list,
            returns=one.returns,
            lineno=one.lineno,
        )


def _imports(trees: list[ast.Module], used: set[str]) -> Iterator[str]:
    for source, tree in zip(SOURCES, trees, strict=True):
        for statement in tree.body:
            match statement:
                case ast.ImportFrom(module=module, names=names):
                    yield from (f"from {module} import {name.name}" for name in names if name.name in used)
                case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)) if name in used:
                    yield f"from mnemolog.client.{source} import {name}"
                case ast.Assign(targets=[ast.Name(id=name)]) if name in used:
                    yield f"from mnemolog.client.{source} import {name}"


def _formatted(source: str) -> str:
    """As `make lint` wants it: imports sorted and merged, lines broken."""
    name = "mnemolog/client/sync_client.pyi"
    ruff = (sys.executable, "-m", "ruff")
    for step in ((*ruff, "check", "--select", "I", "--fix", "--quiet"), (*ruff, "format")):
        command = (*step, "--stdin-filename", name, "-")
        source = subprocess.run(  # noqa: S603 - the project's own linter
            command, input=source, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return source
