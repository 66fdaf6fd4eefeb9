"""Vectors on the wire: base64 of little-endian float16, with the model that made them."""

import base64
import math
import struct
from collections.abc import Sequence
from functools import cached_property
from operator import mul
from typing import Self

from pydantic import Field, model_validator

from mnemolog.schemas.base import Identifier, Record

MAX_DIMENSIONS = 4000  # what one halfvec row of pgvector can hold of an indexable vector
_BYTES_PER_VALUE = 2
# The upper byte of a float16: sign, five bits of exponent, two of mantissa. All exponent bits set is inf or nan.
_EXPONENT = 0b0_11111_00
_FINITE = bytes(upper for upper in range(256) if upper & _EXPONENT != _EXPONENT)


class Vector(Record):
    """An embedding. Two vectors compare only where `model` and `dimensions` are equal."""

    model: Identifier
    dimensions: int = Field(ge=1, le=MAX_DIMENSIONS)
    data: str

    @model_validator(mode="after")
    def _check_data(self) -> Self:
        raw = self.raw
        if len(raw) != self.dimensions * _BYTES_PER_VALUE:
            raise ValueError(f"data holds {len(raw)} bytes, {self.dimensions} float16 need twice as many")
        if raw[1::_BYTES_PER_VALUE].translate(None, _FINITE):
            raise ValueError("data holds a value that is not finite, which Postgres cannot store")
        return self

    @classmethod
    def from_values(cls, model: str, values: Sequence[float]) -> Self:
        """Round `values` to float16. Raises ValueError for a value that is not finite or beyond 65504."""
        try:
            raw = struct.pack(f"<{len(values)}e", *values)
        except (OverflowError, struct.error) as error:
            raise ValueError(f"a value of the embedding does not fit float16: {error}") from error
        return cls(model=model, dimensions=len(values), data=base64.b64encode(raw).decode())

    @cached_property
    def raw(self) -> bytes:
        """Little-endian float16, two bytes a dimension."""
        return base64.b64decode(self.data, validate=True)

    @property
    def values(self) -> tuple[float, ...]:
        return struct.unpack(f"<{self.dimensions}e", self.raw)


def cosine_similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The similarity of two vectors of any length; 0 where one is a zero vector."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
