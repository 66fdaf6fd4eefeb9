"""How short ids of facts and events can be written without standing for another one."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.sql import queries

SHORT_ID_CHARACTERS: Final = 8
"""The fewest characters of a short id."""


async def short_ids(conn: AsyncConnection[TupleRow], ids: Collection[UUID]) -> dict[UUID, str]:
    """The shortest beginning of each id, of eight characters or more, that no other fact or event of any tenant has.

    All of them get the same length. They are unique now: a later fact may begin as one of
    them does, and then the longer id has to be given.
    """
    if not ids:
        return {}
    found = await (await conn.execute(queries("short_ids")["neighbours"], {"ids": list(ids)})).fetchall()
    lengths = (_shared(str(one), str(other)) + 1 for one, others in found for other in others if other is not None)
    length = max(lengths, default=0)
    return {one: str(one)[: max(length, SHORT_ID_CHARACTERS)] for one in ids}


def _shared(one: str, other: str) -> int:
    """How many characters two ids begin with in common."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))
