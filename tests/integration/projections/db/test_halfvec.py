"""Vectors on their way into Postgres."""

import psycopg
import pytest

from mnemolog.projections.database import register_halfvec
from mnemolog.schemas.vector import Vector

pytestmark = pytest.mark.postgres


async def test_every_half_arrives_as_it_is(database: str) -> None:
    values = [0.0, -0.0, 1.0, -2.0, 0.333251953125, 65504.0, -5.960464477539063e-08]
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await register_halfvec(connection)
        cursor = await connection.execute(
            "SELECT %b::halfvec::float4[]", [Vector.from_values("m", values)], binary=True
        )
        assert await cursor.fetchone() == (pytest.approx(values),)
