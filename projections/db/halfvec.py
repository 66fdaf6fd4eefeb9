"""Sends vectors to Postgres as halfvecs, with pgvector's own package."""

import struct
import sys
from array import array
from typing import Any

from pgvector.psycopg.halfvec import HalfVectorBinaryDumper, register_halfvec_info
from psycopg import AsyncConnection
from psycopg.adapt import Buffer
from psycopg.types import TypeInfo

from mnemolog.projections.errors import SchemaMissingError
from mnemolog.schemas.vector import Vector


async def register_halfvec(connection: AsyncConnection[Any]) -> None:
    """Register halfvec on a connection, and send a `Vector` as one. Raises `SchemaMissingError` without pgvector."""
    info = await TypeInfo.fetch(connection, "public.halfvec")
    if info is None:
        raise SchemaMissingError("the database has no pgvector: run `mnemolog migrate` first")
    register_halfvec_info(connection, info)
    connection.adapters.register_dumper(Vector, type("VectorDumper", (_VectorDumper,), {"oid": info.oid}))


class _VectorDumper(HalfVectorBinaryDumper):
    """Writes float16 bytes in Postgres' byte order; converting them to numbers takes eight times as long."""

    def dump(self, obj: Any) -> Buffer | None:
        halves = array("H", obj.data)
        if sys.byteorder == "little":
            halves.byteswap()
        return struct.pack(">HH", len(halves), 0) + halves.tobytes()
