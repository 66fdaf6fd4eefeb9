"""Vectors: float16 in memory, base64 of them in JSON, or bytes behind the JSON of a record between stages."""

import base64
import math
import struct
from collections.abc import Sequence
from contextlib import suppress
from operator import mul
from typing import Annotated, Self

from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from mnemolog.schemas.base import Identifier, Record

MAX_DIMENSIONS = 4000  # what one halfvec row of pgvector can hold of an indexable vector
_BYTES_PER_VALUE = 2
# The upper byte of a float16: sign, five bits of exponent, two of mantissa. All exponent bits set is inf or nan.
_EXPONENT = 0b0_11111_00
_FINITE = bytes(upper for upper in range(256) if upper & _EXPONENT != _EXPONENT)

# A fifth of the time of the standard library's, but it takes base64 for URLs and without padding too.
_BASE64 = TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64"))


class VectorBytes:
    """The bytes of a record's vectors, one behind the other, that its JSON names by where they begin.

    It is the context in which the record is written as JSON, and read.
    """

    def __init__(self, content: bytes = b"") -> None:
        self._parts = [content]
        self._size = len(content)

    def append(self, raw: bytes) -> int:
        start = self._size
        self._parts.append(raw)
        self._size += len(raw)
        return start

    def part(self, start: int, size: int) -> bytes:
        return self._parts[0][start : start + size] if start >= 0 else b""

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)


def _read_data(data: object, info: ValidationInfo) -> bytes:
    size = info.data.get("dimensions", 0) * _BYTES_PER_VALUE
    match data:
        case bytes():
            raw = data
        case str():
            raw = decode_base64(data)
        case int() if isinstance(info.context, VectorBytes):
            raw = info.context.part(data, size)
        case _:
            raise ValueError("data is base64 of little-endian float16")
    if size and len(raw) != size:
        raise ValueError(f"data holds {len(raw)} bytes, {size // _BYTES_PER_VALUE} float16 need twice as many")
    if raw[1::_BYTES_PER_VALUE].translate(None, _FINITE):
        raise ValueError("data holds a value that is not finite, which Postgres cannot store")
    return raw


def decode_base64(text: str) -> bytes:
    """Raises ValueError for what is not base64 with its padding, in the alphabet of "+" and "/"."""
    if "-" not in text and "_" not in text and len(text) % 4 == 0:
        with suppress(ValidationError):
            return _BASE64.validate_python(text)
    return base64.b64decode(text, validate=True)  # which says what is wrong


def _write_data(raw: bytes, info: SerializationInfo) -> str | int:
    if isinstance(info.context, VectorBytes):
        return info.context.append(raw)
    return base64.b64encode(raw).decode()


class Vector(Record):
    """An embedding. Two vectors compare only where `model` and `dimensions` are equal.

    `data` is little-endian float16, two bytes a dimension; base64 of them in JSON.
    """

    model: Identifier
    dimensions: int = Field(ge=1, le=MAX_DIMENSIONS)
    data: Annotated[
        bytes,
        PlainValidator(_read_data),
        PlainSerializer(_write_data, when_used="json"),
        WithJsonSchema({"type": "string"}),
    ]

    @classmethod
    def from_values(cls, model: str, values: Sequence[float]) -> Self:
        """Round `values` to float16. Raises ValueError for a value that is not finite or beyond 65504."""
        try:
            raw = struct.pack(f"<{len(values)}e", *values)
        except (OverflowError, struct.error) as error:
            raise ValueError(f"a value of the embedding does not fit float16: {error}") from error
        return cls(model=model, dimensions=len(values), data=raw)

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers, made at each call: kept, they would take sixteen times the memory of `data`."""
        return struct.unpack(f"<{self.dimensions}e", self.data)


def cosine_similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The similarity of two vectors of any length; 0 where one is a zero vector."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
