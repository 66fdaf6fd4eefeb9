import base64
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mnemolog.schemas.vector import MAX_DIMENSIONS, Vector

HALVES = st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1, max_size=64)


@given(HALVES)
def test_what_fits_float16_comes_back_unchanged(values: list[float]) -> None:
    vector = Vector.from_values("m", values)
    assert vector.values == tuple(values)
    assert Vector.model_validate_json(vector.model_dump_json()) == vector


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=64))
def test_parts_of_a_unit_vector_lose_less_than_a_thousandth(values: list[float]) -> None:
    assert Vector.from_values("m", values).values == pytest.approx(values, rel=1e-3, abs=1e-7)


def test_the_wire_form_is_base64_of_little_endian_float16() -> None:
    vector = Vector.from_values("m", [1.0, -2.0])
    assert base64.b64decode(vector.model_dump(mode="json")["data"]) == vector.data == b"\x00\x3c\x00\xc0"
    assert (vector.model, vector.dimensions) == ("m", 2)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        Vector.from_values("m", [0.5, value])
    data = base64.b64encode(struct.pack("<2e", 0.5, value)).decode()
    with pytest.raises(ValidationError, match="not finite"):
        Vector.model_validate({"model": "m", "dimensions": 2, "data": data})


def test_a_value_beyond_float16_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit float16"):
        Vector.from_values("m", [70_000.0])


@pytest.mark.parametrize("count", [0, MAX_DIMENSIONS + 1])
def test_a_number_of_dimensions_that_no_row_can_hold_is_refused(count: int) -> None:
    with pytest.raises(ValidationError, match="dimensions"):
        Vector.from_values("m", [0.1] * count)


def test_data_is_base64_in_one_alphabet_and_with_its_padding() -> None:
    raw = b"\xfb\x3b\xff\x3b"
    assert Vector.model_validate({"model": "m", "dimensions": 2, "data": "+zv/Ow=="}).data == raw


OTHER_BASE64 = ["-zv_Ow==", "+zv_Ow==", "+zv/Ow", "+zv/Ow=", "+zv/Ow===", "+zv/Ow==AA=="]


@pytest.mark.parametrize("data", ["ADw=", "", "ADwA\nwA==", "ADwA wAA\n", "not base64!", "ÄÖÜ=", *OTHER_BASE64])
def test_data_that_is_not_so_many_float16_is_refused(data: str) -> None:
    with pytest.raises(ValidationError):
        Vector.model_validate({"model": "m", "dimensions": 2, "data": data})


def test_every_half_is_refused_exactly_where_it_is_not_finite() -> None:
    for half in range(2**16):
        raw = half.to_bytes(2, "little")
        (value,) = struct.unpack("<e", raw)
        data = base64.b64encode(raw).decode()
        try:
            Vector.model_validate({"model": "m", "dimensions": 1, "data": data})
        except ValidationError:
            assert not math.isfinite(value)
        else:
            assert math.isfinite(value)


def test_a_vector_keeps_no_numbers_in_memory() -> None:
    vector = Vector.from_values("m", [0.25, 0.5])
    assert vector.values == (0.25, 0.5)
    assert vars(vector).keys() == {"model", "dimensions", "data"}
