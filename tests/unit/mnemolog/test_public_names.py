"""Everything that a public method takes, gives or raises can be imported from `mnemolog`, and nothing loads early."""

import ast
import dataclasses
import inspect
import pydoc
import typing
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel

import mnemolog
import mnemolog.errors
from mnemolog import AsyncMemoryClient, MemoryClient, MnemologError
from mnemolog.client.base import ClientOptions
from mnemolog.settings import Settings
from tests.support.imports import packages_loaded_by
from tests.support.paths import ROOT

VARIABLE = {"positional", "arguments", "scope", "scope_args", "turn", "ids"}
"""The names of the bundles of keywords."""
INNER = {
    "ClientBase", "ResultMixin", "SearchMixin", "FactQueryMixin", "DecisionQueryMixin", "EntityQueryMixin",
    "CommandBase", "FactCommandMixin", "EntityCommandMixin", "ScopeCommandMixin", "ImportMixin",
}  # fmt: skip


def methods(owner: type) -> Iterator[Callable[..., Any]]:
    for name, method in inspect.getmembers(owner, callable):
        if not name.startswith("_"):
            yield method
            yield from typing.get_overloads(inspect.unwrap(method))


def named_types(hint: Any, seen: set[type]) -> None:
    """Add our own classes in an annotation to `seen`, and those of their fields."""
    for part in get_args(hint):
        named_types(part, seen)
    kind = get_origin(hint) or hint
    if not inspect.isclass(kind) or not kind.__module__.startswith("mnemolog") or kind in seen:
        return
    seen.add(kind)
    if kind is Settings:
        return
    if dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel) or typing.is_typeddict(kind):
        for field in get_type_hints(kind).values():
            named_types(field, seen)


def public_types() -> set[str]:
    seen: set[type] = set()
    for owner in (AsyncMemoryClient, MemoryClient):
        for method in methods(owner):
            for hint in get_type_hints(inspect.unwrap(method)).values():
                named_types(hint, seen)
    named_types(ClientOptions, seen)
    return {one.__name__ for one in seen} - INNER


def test_the_types_of_all_signatures_are_exported() -> None:
    assert public_types() - set(mnemolog.__all__) == set()


def test_all_errors_are_exported_and_have_one_base() -> None:
    assert set(mnemolog.errors.__all__) - set(mnemolog.__all__) == set()
    for name in mnemolog.errors.__all__:
        error = getattr(mnemolog, name)
        assert issubclass(error, MnemologError), name
        assert error.__doc__, name


def test_every_public_name_can_be_imported_and_is_what_it_says() -> None:
    for name in mnemolog.__all__:
        assert getattr(mnemolog, name).__name__ == name
    assert sorted(mnemolog.__all__) == mnemolog.__all__
    assert set(mnemolog.__all__) <= set(dir(mnemolog))


def test_the_import_loads_no_driver() -> None:
    assert packages_loaded_by("mnemolog", "aiokafka", "psycopg", "pydantic", "structlog") == []


def test_the_client_loads_nothing_of_the_worker() -> None:
    worker = [f"mnemolog.streams.{name}" for name in ("entities", "llm", "offline", "resolution", "runtime", "stages")]
    others = "mnemolog.cli", "mnemolog.embedded", "mnemolog.streams.text", "mnemolog.streams.kafka.sender"
    libraries = "structlog", "rapidfuzz", "faust", "openai", "onnxruntime", "numpy", "dateparser"
    assert packages_loaded_by("mnemolog.client.sync_client", *worker, *others, *libraries) == []


def test_help_shows_arguments_and_meaning_of_every_method() -> None:
    for owner in (AsyncMemoryClient, MemoryClient):
        for name, method in inspect.getmembers(owner, inspect.isroutine):
            if not name.startswith("_") and name != "from_settings":
                assert inspect.getdoc(method), f"{owner.__name__}.{name}"
    shown = pydoc.render_doc(MemoryClient.add)
    assert all(words in shown for words in ("wait", "Publish one turn", "TurnReceipt"))


def test_the_stub_of_the_blocking_client_has_its_methods_and_their_arguments() -> None:
    stub = ast.parse((ROOT / "mnemolog/client/sync_client.pyi").read_text(encoding="utf-8"))
    (client,) = (one for one in stub.body if isinstance(one, ast.ClassDef))
    written: dict[str, set[str]] = {}
    for one in client.body:
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            names = [argument.arg for argument in (*one.args.args, *one.args.kwonlyargs)]
            written.setdefault(one.name, set()).update(names)
    real = {
        name: set(inspect.signature(method).parameters) - VARIABLE
        for name, method in inspect.getmembers(MemoryClient, inspect.isfunction)
        if not name.startswith("_")
    }
    assert {name: arguments for name, arguments in written.items() if name != "from_settings"} == real
