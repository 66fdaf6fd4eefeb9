"""What a program can name, what help says of it, and what its import costs."""

import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any, assert_type, cast, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from pydantic import BaseModel

import mnemolog
import mnemolog.errors
import mnemolog.types
from mnemolog import AsyncMemoryClient, MemoryClient, MnemologError, Result, Settings
from mnemolog.client.administration import AdminMethods
from mnemolog.client.base import ClientOptions
from mnemolog.client.entities import EntityMethods
from mnemolog.types import Entity, PendingFact, PendingMerge, UnresolvedFact
from tests.support.imports import packages_loaded_by

BOTH = AsyncMemoryClient, MemoryClient
NAMESPACES = EntityMethods, AdminMethods


def public(owner: type) -> dict[str, Callable[..., Any]]:
    return {name: method for name, method in inspect.getmembers(owner, inspect.isroutine) if not name.startswith("_")}


def named_types(hint: Any, seen: set[type]) -> None:
    """Add our own classes in an annotation to `seen`, and those of their fields."""
    for part in get_args(hint):
        named_types(part, seen)
    kind = get_origin(hint) or hint
    if not inspect.isclass(kind) or not kind.__module__.startswith("mnemolog") or kind in seen:
        return
    seen.add(kind)
    if kind is not Settings and (is_dataclass(kind) or issubclass(kind, BaseModel) or is_typeddict(kind)):
        for field in get_type_hints(kind).values():
            named_types(field, seen)


def test_the_types_of_all_signatures_can_be_imported() -> None:
    seen: set[type] = set()
    for owner in (AsyncMemoryClient, *NAMESPACES):
        for method in public(owner).values():
            function: Any = inspect.unwrap(method)
            for hint in get_type_hints(function, vars(mnemolog.types) | function.__globals__).values():
                named_types(hint, seen)
    named_types(ClientOptions, seen)
    assert {one.__name__ for one in seen} - set(mnemolog.__all__) - set(vars(mnemolog.types)) == set()


def test_few_names_stand_at_the_top_and_each_is_what_it_says() -> None:
    assert len(mnemolog.__all__) <= 25
    assert len(public(AsyncMemoryClient)) <= 30
    assert mnemolog.__version__ == version("mnemolog")
    for name in mnemolog.__all__[:-1]:
        assert getattr(mnemolog, name).__name__ == name
    assert set(mnemolog.__all__) <= set(dir(mnemolog))
    with pytest.raises(AttributeError, match=r"'Nonsense': mnemolog\.types and mnemolog\.errors have more"):
        mnemolog.Nonsense  # noqa: B018 - it is what raises


def test_no_name_is_exported_twice() -> None:
    errors = {name for name in mnemolog.__all__ if name.endswith("Error")}
    assert errors <= set(mnemolog.errors.__all__)
    assert set(vars(mnemolog.types)) & {*mnemolog.__all__, *mnemolog.errors.__all__} == set()


def test_all_errors_have_one_base() -> None:
    for name in mnemolog.errors.__all__:
        error = getattr(mnemolog.errors, name)
        assert issubclass(error, MnemologError), name
        assert error.__doc__, name


def test_the_import_loads_no_driver() -> None:
    assert packages_loaded_by("mnemolog", "aiokafka", "psycopg", "pydantic", "structlog") == []


def test_the_client_loads_nothing_of_the_worker() -> None:
    worker = [f"mnemolog.streams.{name}" for name in ("entities", "llm", "offline", "resolution", "runtime", "stages")]
    worker += ["mnemolog.projections.stores", "mnemolog.schemas.stored", "mnemolog.streams.text"]
    worker += [f"mnemolog.schemas.{name}" for name in ("commit", "envelopes", "events", "entity_events")]
    worker += [
        f"mnemolog.projections.queries.{name}" for name in ("audit", "diff", "explain", "pending", "write_result")
    ]
    others = "mnemolog.cli", "mnemolog.embedded", "mnemolog.testing", "mnemolog.streams.kafka.sender"
    libraries = "structlog", "rapidfuzz", "faust", "openai", "onnxruntime", "numpy", "dateparser", "prometheus_client"
    assert packages_loaded_by("mnemolog.client.sync_client", *worker, *others, *libraries) == []


def test_the_import_builds_no_model() -> None:
    """Pydantic builds one when it is first used: the largest take as long as a driver."""
    code = """
from pydantic import BaseModel
import mnemolog.client.sync_client
kinds = [BaseModel]
for kind in kinds:
    kinds += kind.__subclasses__()
print(*(kind.__name__ for kind in kinds if kind.__module__.startswith("mnemolog") and kind.__pydantic_complete__))
"""
    built = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(built) <= {"Equality", "Ordering"}  # of any type, which need no schema


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    assert {*public(AsyncMemoryClient)} == {*public(MemoryClient)}
    for owner in (*BOTH, *NAMESPACES):
        for name, method in public(owner).items():
            assert inspect.getdoc(method), f"{owner.__name__}.{name}"
            assert "args" not in (parameters := inspect.signature(method).parameters)
            assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values()) or name == "scope", name
    for name, method in public(AsyncMemoryClient).items():
        assert inspect.signature(method) == inspect.signature(public(MemoryClient)[name]), name


def test_no_method_calls_a_public_one() -> None:
    """In the blocking client it would wait for itself."""
    for owner in (AsyncMemoryClient, *NAMESPACES):
        called = {name for one in owner.__mro__[:-1] for name in re.findall(r"self\.(\w+)\(", inspect.getsource(one))}
        assert called & {*public(owner)} <= {"close"}, owner.__name__


def test_help_shows_every_argument() -> None:
    shown = pydoc.render_doc(MemoryClient.add) + pydoc.render_doc(MemoryClient.search)
    for word in ("wait", "Publish one turn", "Result", "user_id", "occurred_at", "limit", "threshold"):
        assert word in shown, word
    assert pydoc.plain(pydoc.render_doc(MemoryClient)).count("search(self, query: str") == 1


@pytest.mark.parametrize("kind", [PendingFact, PendingMerge, UnresolvedFact])
def test_help_says_what_each_field_of_what_waits_is(kind: type) -> None:
    ids = {"tenant", "user_id", "agent_id", "app_id", "run_id", "fact"}
    names = {one.name for one in fields(cast("Any", kind))} - ids
    assert {name for name in names if f"`{name}`" not in (inspect.getdoc(kind) or "")} == set()


def test_types_follow_from_the_client() -> None:
    """The type checker is the test: a blocking method returns what the other one returns when it is awaited."""

    async def awaited(client: AsyncMemoryClient) -> None:
        assert_type(await client.wait("t1"), Result)
        assert_type(await client.entities.list(), list[Entity])

    def blocked(client: MemoryClient) -> None:
        assert_type(client.wait("t1"), Result)
        assert_type(client.entities.list(), list[Entity])
        assert_type(client.admin.export("facts.jsonl"), int)

    assert {awaited.__name__, blocked.__name__} == {"awaited", "blocked"}  # neither is called
