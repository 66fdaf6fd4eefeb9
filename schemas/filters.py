"""Filters: conditions on facts, joined with AND, OR and NOT."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Annotated, Final, Generic, Literal, Self, TypeVar
from uuid import UUID

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    model_validator,
)

from mnemolog.schemas.base import Identifier, Record, Text, Timestamp
from mnemolog.schemas.errors import InvalidArgumentError, describe_faults
from mnemolog.schemas.facts import FactStatus

MAX_FILTER_DEPTH: Final = 8
MAX_FILTER_CONDITIONS: Final = 200
MAX_FILTER_VALUES: Final = 1000
"""Of one `in` or `nin`."""
BRANCHES: Final = ("AND", "OR", "NOT")
_BEGINS_WITH_A_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_IS_A_DAY: Final = re.compile(r"\s*\d{4}-\d\d-\d\d\s*")

DayOfWeek = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
T = TypeVar("T")
Values = Annotated[tuple[T, ...], Field(max_length=MAX_FILTER_VALUES)]
JsonOrdered = StrictInt | StrictFloat | Text
JsonScalar = StrictBool | StrictInt | StrictFloat | Text


def _written_as_time(value: object) -> object:
    """A day begins at 00:00 UTC.

    Seconds since 1970 are refused: they are a number that somebody mistook for a time more often than a time.
    """
    if isinstance(value, str) and _IS_A_DAY.fullmatch(value):
        try:
            return datetime.combine(date.fromisoformat(value.strip()), time(), UTC)
        except ValueError as error:
            raise ValueError(f"is not a day of the calendar ({error})") from error
    if isinstance(value, datetime) or (isinstance(value, str) and _BEGINS_WITH_A_DAY.match(value)):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise ValueError("must be a time such as 2026-01-31T09:30:00+01:00, or a day such as 2026-01-31")


Time = Annotated[Timestamp, BeforeValidator(_written_as_time)]


class Equality(Record, Generic[T]):
    """Operators that every field has; all that are given have to hold. `exists` asks whether the field is set.

    Of a field that is not set only `ne`, `nin` and `exists: false` hold.
    """

    eq: T | None = None
    ne: T | None = None
    in_: Values[T] | None = Field(default=None, alias="in")
    nin: Values[T] | None = None
    exists: StrictBool | None = None

    @model_validator(mode="after")
    def _has_operators(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("has no operator: give a value, or for example {'eq': value}")
        if any(getattr(self, name) is None for name in self.model_fields_set):
            raise ValueError("compares with null: ask {'exists': false} for what is not set")
        return self


class Ordering(Equality[T], Generic[T]):
    """For what has an order: times and numbers."""

    gt: T | None = None
    gte: T | None = None
    lt: T | None = None
    lte: T | None = None


class Words(Equality[Text]):
    """For text: `contains` is a part of it, `icontains` is one whatever the case of its letters."""

    contains: Text | None = None
    icontains: Text | None = None


class Members(Equality[Text]):
    """For lists: `eq`, `in` and `contains` ask for a member."""

    contains: Text | None = None


class JsonValue(Equality[JsonScalar]):
    """For a value inside metadata: texts and numbers are ordered among their kind; a list contains its members."""

    gt: JsonOrdered | None = None
    gte: JsonOrdered | None = None
    lt: JsonOrdered | None = None
    lte: JsonOrdered | None = None
    contains: JsonScalar | None = None
    icontains: Text | None = None


def _as_operators(value: object) -> object:
    """A plain value means `eq`, `"*"` any value, null none."""
    match value:
        case Mapping():
            return value
        case None:
            return {"exists": False}
        case "*":
            return {"exists": True}
        case _:
            return {"eq": value}


_Short = BeforeValidator(_as_operators)
Whole = Annotated[Ordering[StrictInt] | None, _Short]
Id = Annotated[Equality[Identifier] | None, _Short]
TextField = Annotated[Words | None, _Short]
NumberField = Annotated[Ordering[StrictFloat] | None, _Short]
TimeField = Annotated[Ordering[Time] | None, _Short]


class StructuredAttributes(Record):
    """Conditions on the parts of the time at which a fact was stored, in UTC; weeks are those of ISO 8601."""

    year: Whole = None
    month: Whole = None
    day: Whole = None
    hour: Whole = None
    minute: Whole = None
    day_of_week: Annotated[Equality[DayOfWeek] | None, _Short] = None
    is_weekend: Annotated[Equality[StrictBool] | None, _Short] = None
    quarter: Whole = None
    week_of_year: Whole = None


class Filter(Record):
    """Conditions on facts: all have to hold, and of the parts of `OR` one. `NOT` holds where none of its parts does.

    `categories` are all that the fact is of, and one of them has to match; `entity` is its subject. Names inside
    `metadata` are paths: `address.city` is `city` of the object `address`.
    """

    AND: "_Parts | None" = None
    OR: "_Parts | None" = None
    NOT: "_Parts | None" = None
    id: Annotated[Equality[UUID] | None, _Short] = None
    user_id: Id = None
    agent_id: Id = None
    app_id: Id = None
    run_id: Id = None
    memory: TextField = None
    key: TextField = None
    value: TextField = None
    categories: Annotated[Members | None, _Short] = None
    state: Annotated[Equality[FactStatus] | None, _Short] = None
    importance: NumberField = None
    confidence: NumberField = None
    created_at: TimeField = None
    updated_at: TimeField = None
    event_time: TimeField = None
    valid_until: TimeField = None
    true_from: TimeField = None
    true_to: TimeField = None
    entity: TextField = None
    speaker: TextField = None
    source_id: TextField = None
    metadata: dict[Text, Annotated[JsonValue, _Short]] | None = None
    structured_attributes: StructuredAttributes | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        for name in self.model_fields_set:
            if getattr(self, name) is None:
                raise ValueError(f"{name} is null: leave it out")
        return self

    @property
    def asks_about_state(self) -> bool:
        """Whether a condition on `state` is in it somewhere."""
        parts = (*(self.AND or ()), *(self.OR or ()), *(self.NOT or ()))
        return self.state is not None or any(part.asks_about_state for part in parts)


_Parts = Annotated[
    tuple[Filter, ...],
    Field(min_length=1),
    BeforeValidator(lambda value: [value] if isinstance(value, Mapping) else value),
]
EVERYTHING: Final = Filter.model_construct()  # validated, it would build the largest schema of all at each import
"""A filter without conditions."""


def parse_filter(given: object) -> Filter:
    """Read a filter from what JSON gives. Raises `InvalidArgumentError` that names the place of each fault."""
    if isinstance(given, Filter):
        return given
    # Before anything else looks into it: a filter may come from whoever uses the application.
    level, depth, conditions = _parts(given), 0, 0
    while level:
        if depth > MAX_FILTER_DEPTH:
            raise InvalidArgumentError(f"the filter is nested deeper than {MAX_FILTER_DEPTH} levels of AND, OR and NOT")
        for part in level:  # each operator is a condition, and so is an empty part
            asked = [value for name, value in part.items() if name not in BRANCHES]
            inside = [one for value in asked for one in (value.values() if isinstance(value, Mapping) else [value])]
            conditions += sum(len(one) if isinstance(one, Mapping) else 1 for one in inside) if part else 1
        if conditions > MAX_FILTER_CONDITIONS:
            raise InvalidArgumentError(
                f"the filter has more than {MAX_FILTER_CONDITIONS} conditions: use `in` for many values"
            )
        level = [inner for part in level for name in BRANCHES for inner in _parts(part.get(name))]
        depth += 1
    try:
        return Filter.model_validate(given)
    except ValidationError as error:
        raise InvalidArgumentError(f"the filter is not valid: {describe_faults(error)}") from error


def written_filter(wanted: Filter) -> dict[str, object]:
    """The filter as JSON: what was given, each plain value with its operator."""
    return wanted.model_dump(mode="json", by_alias=True, exclude_unset=True)


GivenFilter = Annotated[Filter, BeforeValidator(parse_filter), PlainSerializer(written_filter)]
"""A filter inside a record, which is read as leniently, and bounded as strictly, as one in a call."""


def _parts(value: object) -> list[Mapping[str, object]]:
    found = value if isinstance(value, list | tuple) else [value]
    return [one for one in found if isinstance(one, Mapping)]
