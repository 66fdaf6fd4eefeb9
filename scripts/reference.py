"""The reference pages that `make generate` writes: Python from docstrings, HTTP from OpenAPI, SQL from its comments."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, is_typeddict

from pydantic import BaseModel

import mnemolog
import mnemolog.types
from mnemolog.client.administration import AdminMethods
from mnemolog.client.entities import EntityMethods
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.testing import InMemoryClient
from scripts.pages import WIDTH, page, paragraph, table

_SQL: Final = Path(__file__).parent.parent / "projections" / "sql"
_MODULE: Final = re.compile(r"\b(?:mnemolog|collections|datetime|typing|uuid|os|pathlib)(?:\.[a-z_]\w*)*\.(?=[A-Z])")
_COMMENT: Final = re.compile(r"^COMMENT ON (VIEW|FUNCTION) memory\.(\w+) IS\s((?:\s*'(?:[^']|'')*')+);", re.MULTILINE)
_COLUMN: Final = re.compile(r"^ +\((NULL|'\w+'), '(\w+)', '((?:[^']|'')*)'\)", re.MULTILINE)
_INTERNAL: Final = re.compile(r"^The rows of the view|: the other functions call it")


def python_page() -> str:
    """Methods, arguments and answers of the client with their docstrings."""
    whole = {name: getattr(mnemolog, name) for name in mnemolog.__all__ if not name.startswith("__")}
    answers = {name: kind for name, kind in (whole | vars(mnemolog.types)).items() if _has_fields(kind)}
    arguments = {name: kind for name, kind in vars(mnemolog.types).items() if is_typeddict(kind)}
    sections = {
        "MemoryClient": _methods(mnemolog.MemoryClient),
        "memory.entities": _methods(EntityMethods),
        "memory.admin": _methods(AdminMethods),
        "All servers in process, or none": [
            _entry("start", mnemolog.start),
            _entry("InMemoryClient", InMemoryClient),
            _entry("script", InMemoryClient.script),
        ],
        "Arguments": [_entry(name, kind) + _fields(kind) for name, kind in sorted(arguments.items())],
        "Records and answers": [_entry(name, kind) + _fields(kind) for name, kind in sorted(answers.items())],
    }
    purpose = "Each method of the client with all its arguments, and each type, with their docstrings."
    return page(
        "Python",
        purpose,
        "\n".join(f"## {title}\n\n{''.join(each)}".rstrip() + "\n" for title, each in sections.items()),
    )


def _has_fields(kind: Any) -> bool:
    return inspect.isclass(kind) and (is_dataclass(kind) or issubclass(kind, BaseModel)) and not is_typeddict(kind)


def _methods(owner: type) -> list[str]:
    found = inspect.getmembers(owner, inspect.isroutine)
    return [prose(inspect.getdoc(owner) or ""), *(_entry(name, one) for name, one in found if not name.startswith("_"))]


def _entry(name: str, described: Any) -> str:
    return f"### {name}\n\n{_signature(name, described)}{prose(inspect.getdoc(described) or '')}"


def _signature(name: str, described: Any) -> str:
    if inspect.isclass(described) and not issubclass(described, InMemoryClient):
        return ""
    signature = inspect.signature(inspect.unwrap(described))
    given = [_plain(str(one)) for one in signature.parameters.values() if one.name not in ("self", "positional")]
    keyword_only = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
    if keyword_only:
        bundles = [one for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD]
        given.insert(len(given) - len(keyword_only) - len(bundles), "*")
    returned = signature.return_annotation
    arrow = "" if returned in (signature.empty, None) else f" -> {_plain(inspect.formatannotation(returned))}"
    line = f"{name}({', '.join(given)}){arrow}"
    spread = "".join(f"    {one},\n" for one in given)
    return f"```text\n{line if len(line) <= WIDTH else f'{name}({chr(10)}{spread}){arrow}'}\n```\n\n"


def _plain(annotated: str) -> str:
    """An annotation without modules; a bundle of arguments by its name."""
    bundle = re.sub(r"\*<class '(.*)'>$", r"\1", annotated)
    return _MODULE.sub("", bundle).replace("datetime.datetime | datetime.date | str", "When").replace("Ellipsis", "...")


def _fields(kind: Any) -> str:
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else kind.__annotations__
    return paragraph(f"Fields: {', '.join(f'`{name}`' for name in names if not name.startswith('_'))}.") + "\n"


def prose(docstring: str) -> str:
    """A docstring as Markdown: what is no code has no sign of its own."""
    parts = docstring.split("`")
    parts[::2] = [re.sub(r"(?<!\n)\*|\*(?! )|<", lambda sign: f"\\{sign[0]}", part) for part in parts[::2]]
    return "`".join(parts) + "\n\n"


def routes_page(document: Mapping[str, Any]) -> str:
    """The routes of an OpenAPI document by tag, and the fields of their bodies."""
    by_tag: dict[str, list[tuple[str, ...]]] = {}
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            asked = [given["name"] for given in one.get("parameters", ()) if given["in"] == "query"]
            own = [f"`{name}`" for name in asked if name not in SCOPE_FIELDS]
            given = ", ".join([*own, "ids"] if len(own) < len(asked) else own)
            row = (f"`{method.upper()} {path}`", given, _cell(one.get("description", "")))
            by_tag.setdefault(one["tags"][0], []).append(row)
    head = ("request", "query", "what it does")
    content = "\n".join(f"## {tag}\n\n{table(head, rows)}" for tag, rows in by_tag.items())
    return page(
        "Routes",
        "Every route of `mnemolog serve`, from its [OpenAPI document](openapi.json), which has the answers too; "
        "[HTTP](http.md) explains them. Ids are `user_id`, `agent_id`, `app_id` and `run_id`.",
        f"{content}\n## Bodies\n\n{''.join(_bodies(document)).rstrip()}\n",
    )


def _bodies(document: Mapping[str, Any]) -> Iterator[str]:
    operations = [one for each in document["paths"].values() for one in each.values()]
    asked = json.dumps([one.get("requestBody") for one in operations])
    for name, schema in document["components"]["schemas"].items():
        if f'/{name}"' in asked:
            needed = schema.get("required", ())
            named = ", ".join(f"`{one}`" if one in needed else f"`{one}`?" for one in schema["properties"])
            yield f"### {name}\n\n{prose(schema.get('description', ''))}{paragraph(f'Fields: {named}.')}\n"


def views_page() -> str:
    """The views and functions of the schema `memory`, with their comments."""
    text = "".join((_SQL / name).read_text(encoding="utf-8") for name in ("memory_views.sql", "memory.sql"))
    rows: dict[str, list[tuple[str, ...]]] = {"VIEW": [], "FUNCTION": []}
    for kind, name, quoted in _COMMENT.findall(text):
        comment = _unquoted("".join(re.findall(r"'((?:[^']|'')*)'(?!')", quoted)))
        if not _INTERNAL.search(comment):
            rows[kind].append((f"`memory.{name}`", _cell(comment)))
    columns = [
        (f"`{name}`", "all" if view == "NULL" else f"`{view[1:-1]}`", _cell(_unquoted(comment)))
        for view, name, comment in _COLUMN.findall(text)
    ]
    sections = {
        "Views": table(("view", "what it has"), rows["VIEW"]),
        "Functions": table(("function", "what it returns"), rows["FUNCTION"]),
        "Columns": table(("column", "of which views", "meaning"), columns),
    }
    purpose = "The comments of the schema `memory`, as `\\d+` of psql shows them; [SQL](sql.md) has examples."
    return page("Views", purpose, "\n".join(f"## {title}\n\n{rows}" for title, rows in sections.items()))


def _unquoted(text: str) -> str:
    return text.replace("''", "'")


def _cell(text: str) -> str:
    return prose(" ".join(text.split())).strip()
