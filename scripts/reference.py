"""The reference pages that `make generate` writes: Python from docstrings, HTTP from OpenAPI, SQL from its comments."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
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
from scripts.pages import item, page, paragraph

_SQL: Final = Path(__file__).parent.parent / "projections" / "sql"
_MODULE: Final = re.compile(r"\b(?:mnemolog|collections|datetime|typing|uuid|os|pathlib)(?:\.[a-z_]\w*)*\.(?=[A-Z])")
_COMMENT: Final = re.compile(r"^COMMENT ON (VIEW|FUNCTION) memory\.(\w+) IS\s((?:\s*'(?:[^']|'')*')+);", re.MULTILINE)
_COLUMN: Final = re.compile(r"^ +\((NULL|'\w+'), '(\w+)', '((?:[^']|'')*)'\)", re.MULTILINE)
_METHODS: Final[Mapping[str, str]] = {
    inspect.getdoc(one) or "": name
    for owner in (mnemolog.MemoryClient, EntityMethods)
    for name, one in inspect.getmembers(owner, inspect.isroutine)
    if not name.startswith("_")
}
"""Methods of the client by their docstrings, which bodies of commands have too."""
_INTERNAL: Final = re.compile(r"^The rows of the view|: the other functions call it")
_MESSAGE: Final = "Message | Mapping[str, Any] | MessageModel"
_SHOWN: Final = "Hit | Fact | ContextFact | UUID | str"
_UNIONS: Final[Mapping[str, str]] = {
    f"str | {_MESSAGE} | Iterable[{_MESSAGE}]": "Messages",
    f"SearchResult | Context | Iterable[{_SHOWN}] | {_SHOWN}": "Shown",
    "Entity | UUID | str | Iterable[Entity | UUID | str]": "Entities",
    "Entity | UUID | str": "EntityId",
    "UUID | str | Iterable[UUID | str]": "Ids",
    "UUID | str": "Id",
    "Union[str, PathLike[str], IO[bytes]]": "File",
    "datetime.datetime | datetime.date | str": "When",
    "ellipsis | None = Ellipsis": "None = ...",
}
_BUNDLE: Final = re.compile(r"\*\*\w+: \*<class '(.*)'>$")
_SIGNATURE: Final = 100
_IN_SIGNATURES: Final = """\
In signatures `**ScopeArgs` and other [bundles](#arguments) stand for the keyword arguments that they list. A method
with `**CommandArgs` also takes `wait: bool | float = False`, as `add` does: it returns when the broker has the command,
or when the command has ended.

* `Id` is a `UUID` or its text, `Ids` one or an iterable of them; `EntityId` and `Entities` may be `Entity` objects too.
* `Messages` is a text, a message (`Message`, a mapping or `MessageModel`), or an iterable of messages.
* `Shown` is a `SearchResult`, a `Context`, or one or more of `Hit`, `Fact`, `ContextFact` and ids.
* `File` is a path or an open binary file, `When` a `datetime`, a `date` or a [text](client.md#times).

Below the name of a type are its fields. In them "ids" are `tenant`, `user_id`, `agent_id`, `app_id` and `run_id`.
"""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "SearchArgs": "[Search](search.md#options) explains each.",
    "Settings": "[Settings](settings.md) lists all.",
    "TurnArgs": "[Records](records.md#a-turn) explains each; [times](client.md#times) may be texts.",
    "Turn": "[Records](records.md#a-turn) explains each.",
    "Policy": "[Policies](policy.md) explains them.",
    "Weights": "How much each signal counts, 0 to 1: 0 switches it off. [Search](search.md#options) has the defaults.",
}
"""Where a type is described in place of its docstring."""


def python_page() -> str:
    """Methods, arguments and answers of the client with their docstrings."""
    whole = {name: getattr(mnemolog, name) for name in mnemolog.__all__ if not name.startswith("__")}
    answers = {name: kind for name, kind in (whole | vars(mnemolog.types)).items() if _has_fields(kind)}
    arguments = {name: kind for name, kind in vars(mnemolog.types).items() if is_typeddict(kind)}
    sections = {
        "MemoryClient": _methods(mnemolog.MemoryClient),
        "memory.entities": _methods(EntityMethods, without="scope"),
        "memory.admin": _methods(AdminMethods, without="scope"),
        "All servers in process, or none": [
            _entry("start", mnemolog.start),
            _entry("InMemoryClient", InMemoryClient),
            _entry("script", InMemoryClient.script),
        ],
        "Arguments": [_type(name, kind) for name, kind in sorted(arguments.items())],
        "Records and answers": [_type(name, kind) for name, kind in sorted(answers.items())],
    }
    purpose = "Each method of the client with its arguments, and each type, with their docstrings."
    texts = (f"## {title}\n\n{''.join(each)}".rstrip() + "\n" for title, each in sections.items())
    return page("Python", purpose, "\n".join((_IN_SIGNATURES, *texts)))


def _has_fields(kind: Any) -> bool:
    return inspect.isclass(kind) and (is_dataclass(kind) or issubclass(kind, BaseModel)) and not is_typeddict(kind)


def _methods(owner: type, without: str = "") -> list[str]:
    found = inspect.getmembers(owner, inspect.isroutine)
    entries = (_entry(name, one) for name, one in found if not name.startswith("_") and name != without)
    return [prose(inspect.getdoc(owner) or ""), *entries]


def _entry(name: str, described: Any) -> str:
    return f"### {name}\n\n{_signature(name, described)}{prose(inspect.getdoc(described) or '')}"


def _type(name: str, kind: Any) -> str:
    """What a type is, and its fields; only those beyond its base where that is on the page too."""
    described = _ELSEWHERE.get(name) or prose(inspect.cleandoc(kind.__doc__ or "")).strip()
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else list(kind.__annotations__)
    base = kind.__mro__[1]
    known = getattr(base, "__dataclass_fields__", {})
    inherited = f"All of `{base.__name__}`, " if known else ""
    listed = _listed(one for one in names if not one.startswith("_") and one not in known)
    return f"### {name}\n\n{paragraph(f'{inherited}{listed}')}\n{described}\n\n"


def _listed(names: Iterable[str]) -> str:
    """Names of fields or arguments, a question mark behind the code; the ids of a scope in one word."""
    given = list(names)
    own = [f"`{one.rstrip('?')}`{one[len(one.rstrip('?')) :]}" for one in given if one.rstrip("?") not in SCOPE_FIELDS]
    return ", ".join(own if len(own) == len(given) else ["ids", *own])


def _signature(name: str, described: Any) -> str:
    signature = inspect.signature(inspect.unwrap(described))
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "positional")]
    if "CommandArgs" in str(parameters):
        parameters = [one for one in parameters if one.name != "wait"]
    given = [_plain(str(one)) for one in parameters]
    bundles = sum(one.kind is one.VAR_KEYWORD for one in parameters)
    if keywords := sum(one.kind is one.KEYWORD_ONLY for one in parameters):
        given.insert(len(given) - keywords - bundles, "*")
    returned = signature.return_annotation
    arrow = "" if returned in (signature.empty, None) else f" -> {_plain(inspect.formatannotation(returned))}"
    line = f"{name}({', '.join(given)}){arrow}"
    spread = "".join(f"    {one},\n" for one in given)
    return f"`{line}`\n\n" if len(line) <= _SIGNATURE else f"```text\n{name}(\n{spread}){arrow}\n```\n\n"


def _plain(annotated: str) -> str:
    """An annotation in the words of the page: without modules, with the name of a bundle or a union."""
    plain = _MODULE.sub("", _BUNDLE.sub(r"**\1", annotated)).strip("'")
    for union, word in _UNIONS.items():
        plain = plain.replace(union, word)
    return plain


def prose(docstring: str) -> str:
    """A docstring as Markdown: what is no code has no sign of its own."""
    parts = docstring.split("`")
    parts[::2] = [re.sub(r"(?<!\n)\*|\*(?! )|<", lambda sign: f"\\{sign[0]}", part) for part in parts[::2]]
    return "`".join(parts) + "\n\n"


def routes_page(document: Mapping[str, Any]) -> str:
    """The routes of an OpenAPI document by tag, each with what it takes."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            asked = _listed(given["name"] for given in one.get("parameters", ()) if given["in"] == "query")
            taken = f" Query: {asked}." if asked else ""
            body = _body(one, document["components"]["schemas"])
            by_tag.setdefault(one["tags"][0], []).append(
                item(f"`{method.upper()} {path}`: {_cell(one.get('description', ''))}{taken}{body}")
            )
    content = "\n".join(f"## {tag}\n\n{''.join(routes)}" for tag, routes in by_tag.items())
    return page(
        "Routes",
        "Every route of `mnemolog serve`, from its [OpenAPI document](openapi.json), which has the answers too; "
        "[HTTP](http.md) explains them. Ids are `user_id`, `agent_id`, `app_id` and `run_id`, none of which has to be "
        "given. What has a question mark may be left out.",
        content,
    )


def _body(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """The fields of the body of a request, and what is to be known of them."""
    if not (found := re.search(r'schemas/(\w+)"', json.dumps(operation.get("requestBody")))):
        return ""
    schema = schemas[found[1]]
    needed = schema.get("required", ())
    named = _listed(one if one in needed else f"{one}?" for one in schema["properties"])
    described = schema.get("description", "")
    method = _METHODS.get(described)
    more = f"[More](python.md#{method})." if method else _cell(described)
    return f" Body: {named}. {more if chr(10) in described or not method else ''}"


def views_page() -> str:
    """The views and functions of the schema `memory`, with their comments."""
    text = "".join((_SQL / name).read_text(encoding="utf-8") for name in ("memory_views.sql", "memory.sql"))
    sections: dict[str, list[str]] = {"Views": [], "Functions": [], "Columns": []}
    for kind, name, quoted in _COMMENT.findall(text):
        comment = _unquoted("".join(re.findall(r"'((?:[^']|'')*)'(?!')", quoted)))
        if not _INTERNAL.search(comment):
            sections[f"{kind.title()}s"].append(item(f"`memory.{name}`: {_cell(comment)}"))
    for view, name, comment in _COLUMN.findall(text):
        of = "" if view == "NULL" else f" of `{view[1:-1]}`"
        sections["Columns"].append(item(f"`{name}`{of}: {_cell(_unquoted(comment))}"))
    purpose = (
        "The comments of the schema `memory`, as `\\d+` of psql shows them; [SQL](sql.md) has examples. A column whose "
        "view is not named is the same in every view that has it."
    )
    return page("Views", purpose, "\n".join(f"## {title}\n\n{''.join(items)}" for title, items in sections.items()))


def _unquoted(text: str) -> str:
    return text.replace("''", "'")


def _cell(text: str) -> str:
    """One paragraph, with links to the pages that it names."""
    return re.sub(r"`docs/(\w+)\.md`", r"[\1](\1.md)", prose(" ".join(text.split())).strip())
