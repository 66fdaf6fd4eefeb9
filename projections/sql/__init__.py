"""Every query lives in a `.sql` file of this folder and is found by file and name."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from psycopg.sql import SQL

_QUERY_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


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
        found[name] = SQL("\n".join(line for line in lines if line and not line.startswith("--")))
    return MappingProxyType(found)
