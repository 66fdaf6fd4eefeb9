"""The SQL files of this folder, and the columns of the tables that they make."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from mnemolog.projections.sql import filled

_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN: Final = re.compile(r"^    ([a-z]\w*) (double precision|\w+)( \[\])?", re.MULTILINE)


@cache
def migration_text(file: str) -> str:
    """The SQL of one file, named by its path in this folder."""
    return filled(files(__package__).joinpath(file).read_text(encoding="utf-8"))


@cache
def column_types(table: str) -> Mapping[str, str]:
    """The type of each column of a table of `projections/tables.sql`."""
    (columns,) = [
        columns for name, columns in _TABLE.findall(migration_text("projections/tables.sql")) if name == table
    ]
    return {name: f"{kind}[]" if is_array else kind for name, kind, is_array in _COLUMN.findall(columns)}
