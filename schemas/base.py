"""The common ground of all records: frozen, strict about unknown fields, versioned where they travel."""

import re
import unicodedata
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import InvalidRecordError, UnsupportedVersionError

MAX_TEXT = 1_000_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _storable(text: str) -> str:
    """Postgres text cannot hold U+0000, so no record may carry it."""
    if "\x00" in text:
        raise ValueError("text holds the character U+0000, which cannot be stored; remove it")
    return text


def _identifier(text: str) -> str:
    if _CONTROL.search(text) or text != text.strip():
        raise ValueError("an id has no control characters and no white space at its ends")
    if text == "*":
        raise ValueError("'*' stands for 'any' in queries and cannot be an id")
    return text


def _storable_json(value: dict[str, Any]) -> dict[str, Any]:
    _walk(value)
    return value


def _walk(value: object) -> None:
    match value:
        case str():
            _storable(value)
        case dict():
            for key, item in value.items():
                _walk(key)
                _walk(item)
        case list():
            for item in value:
                _walk(item)
        case _:
            pass


Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_storable)]
Identifier = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_identifier)]
Metadata = Annotated[dict[str, Any], AfterValidator(_storable_json)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
Timestamp = AwareDatetime


class Record(BaseModel):
    """A frozen value. Unknown fields are refused: a new field is a new `schema_version`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Versioned(Record):
    """A record that travels on a topic and says which version of its schema it follows."""

    VERSION: ClassVar[int] = 1
    schema_version: Literal[1] = 1

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, data: bytes | None) -> Self:
        """Read one record.

        Raises `UnsupportedVersionError` for a version this program does not know,
        `InvalidRecordError` for everything else that is not such a record.
        """
        try:
            return cls.model_validate_json(data or b"")
        except ValidationError as error:
            raise explain(cls, error) from error


def explain(model: type[Versioned], error: ValidationError) -> InvalidRecordError | UnsupportedVersionError:
    """Turn Pydantic's report into this package's errors, first fault first."""
    kind = model.__name__
    for fault in error.errors(include_url=False):
        if fault["loc"] == ("schema_version",) and fault["type"] == "literal_error":
            return UnsupportedVersionError(kind, fault["input"], model.VERSION)
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'record'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    ]
    return InvalidRecordError(kind, "; ".join(faults[:5]))


def normalise(text: str) -> str:
    """Compatibility form, case folded, white space collapsed: for comparing texts, never for storing them."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
