"""The base of all records: frozen, strict about unknown fields, versioned where they travel."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from mnemolog.schemas.errors import InvalidRecordError, UnsupportedVersionError, describe_faults, true_faults

MAX_TEXT = 1_000_000
MAX_IDENTIFIER_BYTES = 256
MAX_MODEL_NAME = 200  # characters; a model's name is a part of keys, for which Postgres has 2 704 bytes
MAX_DEPTH = 64  # of lists and objects inside metadata
_INT64_END = 2**63
_YEARS = range(2, 9999)  # a year's margin, so that every zone can show the time
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IDENTIFIER_PATTERN = r"^(?!\*{1,2}$)[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"


def _storable(text: str) -> str:
    """Postgres text cannot hold U+0000, and an unpaired surrogate is invalid UTF-8, so no record may have them."""
    if "\x00" in text:
        raise ValueError("text holds the character U+0000, which cannot be stored; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("text holds an unpaired surrogate (invalid UTF-8): remove it") from error
    return text


def _identifier(text: str) -> str:
    if _CONTROL.search(text) or text != text.strip():
        raise ValueError("an id has no control characters and no white space at its ends")
    if text in ("*", "**"):
        raise ValueError(f"{text!r} stands for 'any' in queries and cannot be an id")
    if len(text.encode()) > MAX_IDENTIFIER_BYTES:
        raise ValueError(f"an id has at most {MAX_IDENTIFIER_BYTES} bytes in UTF-8: five of them fit into an index")
    return text


def _storable_json(value: Any, depth: int = 0) -> Any:
    """Refuse what JSON readers disagree about, or Postgres cannot hold; it would fail far from its source."""
    if depth > MAX_DEPTH:
        raise ValueError(f"metadata is nested deeper than {MAX_DEPTH} levels; flatten it")
    match value:
        case dict() if not all(isinstance(key, str) for key in value):
            raise ValueError("metadata holds a name that is not text")
        case dict():
            for key, item in value.items():
                _storable(key)
                _storable_json(item, depth + 1)
        case list():
            for item in value:
                _storable_json(item, depth + 1)
        case str():
            _storable(value)
        case int() | float() if not -_INT64_END <= value < _INT64_END:  # Postgres gives 1e300 back as a whole number
            raise ValueError("metadata holds a number that is not finite, or beyond 64 bits; send it as a string")
        case None | bool() | int() | float():
            pass
        case _:
            raise ValueError(f"metadata holds a {type(value).__name__}, which is not a JSON value")
    return value


def _check_year(moment: datetime) -> datetime:
    if moment.year not in _YEARS:
        raise ValueError(f"a time lies in the years {_YEARS.start} to {_YEARS.stop - 1}")
    return moment


T = TypeVar("T")
IfSet = Annotated[T | None, Field(exclude_if=lambda given: given is None)]
"""A field that is written only where it is set."""
IfAny = Annotated[T, Field(exclude_if=lambda given: not given)]
"""A field that is written only where it is not empty."""
SourceKind = Literal["turn", "command"]
"""The two kinds of records of `conversation_turns`."""
Outcome = Literal["stored", "nothing_stored", "rejected", "failed", "done"]
"""How a source ended; `done` is the end of a command that was carried out."""
FieldPath = tuple[int | str, ...]
"""Where in a record a fault is: names of fields and places in lists."""
Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_storable)]
Identifier = Annotated[
    str,
    Field(min_length=1, max_length=MAX_IDENTIFIER_BYTES, json_schema_extra={"pattern": _IDENTIFIER_PATTERN}),
    AfterValidator(_identifier),
]
Metadata = Annotated[dict[str, Any], AfterValidator(_storable_json)]
Json = Annotated[Any, AfterValidator(_storable_json)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
Timestamp = Annotated[AwareDatetime, AfterValidator(_check_year)]


class Record(BaseModel):
    """A frozen value. Unknown fields are refused: a new field is a new `schema_version`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


PART_OF_ANSWERS = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
"""For parts of records that answers hold too: they are dataclasses, which are written as JSON as they are."""


class Versioned(Record):
    """A record that travels on a topic and says which version of its schema it follows; left out, that is `VERSION`.

    On the wire types are exact, as the JSON Schema says: "yes" is not a boolean and a number is not a time.
    """

    VERSION: ClassVar[int] = 1
    schema_version: Literal[1] = 1

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, data: bytes | None) -> Self:
        """Read one record.

        Raises `UnsupportedVersionError` for a version this program does not know,
        `InvalidRecordError` for every other fault.
        """
        return cls.from_json(data or b"")

    @classmethod
    def from_json(cls, data: bytes, context: object = None) -> Self:
        """Read one record; `context` is what the validators of its fields get. Raises as `from_bytes` does."""
        try:
            return cls.model_validate_json(data, strict=True, context=context)
        except ValidationError as error:
            raise validation_error(cls, error) from error

    @classmethod
    def error_advice(cls, paths: Iterable[FieldPath]) -> str:  # noqa: ARG003 - for records that know more
        """What else helps where there are faults at `paths`, as the end of a sentence; empty where nothing does."""
        return ""


def validation_error(model: type[Versioned], error: ValidationError) -> InvalidRecordError | UnsupportedVersionError:
    """Convert Pydantic's report into this package's errors, first fault first."""
    kind = model.__name__
    faults = true_faults(error)
    for fault in faults:
        version = fault["input"]
        if fault["loc"] == ("schema_version",) and isinstance(version, int) and version > model.VERSION:
            return UnsupportedVersionError(kind, version, model.VERSION)
    advice = model.error_advice(fault["loc"] for fault in faults)
    return InvalidRecordError(kind, describe_faults(error) + advice)


def normalise(text: str) -> str:
    """Compatibility form, case folded, white space collapsed: for comparing texts, never for storing them."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def known_sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of the numbers that are known; None where none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
