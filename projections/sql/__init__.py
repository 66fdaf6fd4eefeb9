"""Every query lives in a `.sql` file of this folder and is found by file and name."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from psycopg.sql import SQL

_HEAD: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries(file: str) -> Mapping[str, SQL]:
    """The queries of `<file>.sql` by name; each starts with `-- name: x` and a line that says what it is for."""
    text = files(__name__).joinpath(f"{file}.sql").read_text(encoding="utf-8")
    _, *parts = _HEAD.split(text)
    return MappingProxyType({name: SQL(body) for name, body in zip(parts[::2], parts[1::2], strict=True)})
