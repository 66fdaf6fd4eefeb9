"""Vectors to and from Postgres in its binary form, without any conversion of numbers."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from projections.errors import SchemaMissingError
from schemas.vector import Vector


async def register_halfvec(connection: AsyncConnection[Any]) -> None:
    """Teach a connection to send a `Vector` as a halfvec. Raises `SchemaMissingError` without pgvector."""
    info = await TypeInfo.fetch(connection, "public.halfvec")
    if info is None:
        raise SchemaMissingError("the database has no pgvector: run `mnemolog migrate` first")
    info.register(connection)
    dumper = type("HalfvecDumper", (_VectorDumper,), {"oid": info.oid})
    connection.adapters.register_dumper(Vector, dumper)


class _VectorDumper(Dumper):
    """Dimensions and an unused field as int16, then the halves; all big-endian (pgvector, halfvec_recv)."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> Buffer:
        little = obj.raw
        big = bytearray(len(little))
        big[::2], big[1::2] = little[1::2], little[::2]
        return obj.dimensions.to_bytes(2, "big") + b"\x00\x00" + bytes(big)
