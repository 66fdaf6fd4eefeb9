"""Every query lives in a `.sql` file of this folder and is found by file and name.

What many of them repeat is written as `{{name row}}` there, and put in when a file is read: see `_INCLUDES`. Places
in single braces are for values of the caller, by `SQL.format`.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from psycopg.sql import SQL

from mnemolog.schemas.facts import PROFILE_SECTION_OF, ExtractedFact, FactState
from mnemolog.schemas.scope import SCOPE_FIELDS

_QUERY_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_INCLUDE: Final = re.compile(r"\{\{(\w+)((?: [^\s{}]+)*)\}\}")
_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN: Final = re.compile(r"^    ([a-z]\w*) (double precision|\w+)( \[\])?", re.MULTILINE)
_STORED_FACT: Final = (
    *("fact_id", *SCOPE_FIELDS, "speaker", "authority", "metadata"),
    *(name for name in ExtractedFact.model_fields if name not in ("entities", "relations", "unlinked")),
    *FactState.model_fields,
)
"""What a new version of a fact takes over, and the state of the fact."""


@cache
def queries(file: str) -> Mapping[str, SQL]:
    """The queries of `<file>.sql` by name; each starts with `-- name: x` and a line that says what it is for.

    They come without comments and indentation: Psycopg keeps the parameters' places of statements of 4096 characters
    at the most, and looks for them again and again in longer ones.
    """
    text = files(__name__).joinpath(f"{file}.sql").read_text(encoding="utf-8")
    _, *parts = _QUERY_NAME.split(text)
    found: dict[str, SQL] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = (line.strip() for line in body.splitlines())
        bare = "\n".join(line for line in lines if line and not line.startswith("--"))
        found[name] = SQL(filled(bare))
    return MappingProxyType(found)


def filled(text: str) -> str:
    """A text with what its `{{name row}}` stand for."""
    return _INCLUDE.sub(lambda place: _INCLUDES[place[1]](*place[2].split()), text)


@cache
def migration_text(file: str) -> str:
    """The SQL of one file of `projections/migrations`, named by its path there."""
    return filled(files("mnemolog.projections.migrations").joinpath(file).read_text(encoding="utf-8"))


@cache
def column_types(table: str) -> Mapping[str, str]:
    """The type of each column of a table of `projections/tables.sql`."""
    (columns,) = [
        columns for name, columns in _TABLE.findall(migration_text("projections/tables.sql")) if name == table
    ]
    return {name: f"{kind}[]" if is_array else kind for name, kind, is_array in _COLUMN.findall(columns)}


def _listed(form: str, names: tuple[str, ...] = SCOPE_FIELDS) -> str:
    return ", ".join(form.format(name=name) for name in names)


def _scope_ids(row: str = "") -> str:
    return _listed(f"{row}.{{name}}" if row else "{name}")


def _shown_scope(row: str) -> str:
    """The ids that a scope does not set, which tables have as empty texts, as NULL."""
    others = tuple(name for name in SCOPE_FIELDS if name != "tenant")
    return f"{row}.tenant, " + _listed(f"nullif({row}.{{name}}, '') AS {{name}}", others)


_INCLUDES: Final[Mapping[str, Callable[..., str]]] = {
    "scope_ids": _scope_ids,
    "scope_types": lambda: _listed("{name} text"),
    "scope_columns": lambda: ",\n    ".join(f"{name} text NOT NULL DEFAULT ''" for name in SCOPE_FIELDS),
    "scope_values": lambda: _listed("%({name})s"),
    "scope_arrays": lambda: _listed("%({name})s::text []"),
    "shown_scope": _shown_scope,
    "in_scope": lambda row="": f"({_scope_ids(row)}) = ({_listed('%({name})s')})",
    "same_scope": lambda row, other: f"({_scope_ids(row)}) = ({_scope_ids(other)})",
    "profile_sections": lambda: "\n    ".join(f"WHEN '{one}' THEN '{at}'" for one, at in PROFILE_SECTION_OF.items()),
    "stored_fact": lambda row: _listed(f"{row}.{{name}}", _STORED_FACT),
    "state_of": lambda row: _listed(f"{row}.{{name}}", tuple(FactState.model_fields)),
    "holds": lambda row, at: (
        f"({row}.valid_until IS NULL OR {row}.valid_until > {at}) AND ({row}.true_to IS NULL OR {row}.true_to > {at})"
    ),
    "known_as_true": lambda row, state, at: (
        f"{row}.recorded_at <= %(believed_at)s AND ({row}.valid_until IS NULL OR {row}.valid_until > {at})"
        f" AND {state}.believed_from <= %(believed_at)s"
        f" AND ({state}.believed_to IS NULL OR {state}.believed_to > %(believed_at)s)"
        f" AND {state}.true_from <= {at} AND ({state}.true_to IS NULL OR {state}.true_to > {at})"
    ),
    "unmended": lambda row: (
        f"{row}.source_kind = 'turn' AND {row}.outcome IN ('failed', 'rejected')"  # noqa: S608 -- a row of a file here
        f" AND NOT EXISTS (SELECT FROM commits AS later WHERE later.owner = {row}.owner"
        f" AND later.source_id = {row}.source_id AND later.attempt > {row}.attempt)"
        f" AND NOT EXISTS (SELECT FROM dropped_turns AS d WHERE d.owner = {row}.owner"
        f" AND d.source_id = {row}.source_id AND d.attempt = {row}.attempt)"
    ),
}
"""The ids of a scope, of a row, of a table or as parameters, and conditions on them; the columns of a fact that events
can change; that a fact has not ended at a time; that a state was known at one time to be true at another; and that a
turn failed or was rejected, and neither a later attempt nor an operator has done anything about it."""
