"""A filter as the condition of a SQL statement, with all its values as parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg.sql import SQL, Composable, Identifier, Placeholder
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from mnemolog.schemas.filters import BRANCHES, Filter
from mnemolog.schemas.scope import SCOPE_FIELDS

_COLUMNS: Final[Mapping[str, str]] = {
    "id": "fact_id",
    "memory": "text",
    "created_at": "recorded_at",
    "updated_at": "state_since",
    "entity": "subject",
}
"""The column of a field, where it has another name."""
_NEGATIONS: Final[Mapping[str, str]] = {"ne": "eq", "nin": "in_"}
_OPERATORS: Final[Mapping[str, SQL]] = {
    "eq": SQL("{field} = {value}"),
    "in_": SQL("{field} = ANY({value})"),
    "gt": SQL("{field} > {value}"),
    "gte": SQL("{field} >= {value}"),
    "lt": SQL("{field} < {value}"),
    "lte": SQL("{field} <= {value}"),
    "contains": SQL("strpos({field}, {value}) > 0"),
    "icontains": SQL("strpos(lower({field}), lower({value})) > 0"),
}
_PARTS_OF_TIME: Final[Mapping[str, SQL]] = {
    **{
        part: SQL(f"extract({unit} FROM f.recorded_at AT TIME ZONE 'UTC')")
        for part, unit in (
            *((unit.lower(), unit) for unit in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "QUARTER")),
            ("week_of_year", "WEEK"),
        )
    },
    "day_of_week": SQL(
        "(ARRAY['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'])"
        " [extract(ISODOW FROM f.recorded_at AT TIME ZONE 'UTC')::integer]"
    ),
    "is_weekend": SQL("(extract(ISODOW FROM f.recorded_at AT TIME ZONE 'UTC') > 5)"),
}
_INSIDE_METADATA: Final[Mapping[str, SQL]] = {
    "value": SQL("nullif(f.metadata #> {path}::text[], 'null')"),
    "number": SQL(
        "CASE WHEN jsonb_typeof(f.metadata #> {path}::text[]) = 'number' "
        "THEN (f.metadata #> {path}::text[])::numeric END"
    ),
    "text": SQL(
        "CASE WHEN jsonb_typeof(f.metadata #> {path}::text[]) = 'string' THEN f.metadata #>> {path}::text[] END"
    ),
    "has_member": SQL(
        "jsonb_typeof(f.metadata #> {path}::text[]) = 'array' "
        "AND f.metadata #> {path}::text[] @> jsonb_build_array({value})"
    ),
}
"""What stands at a path of the metadata; NULL where nothing does, or a value of another kind."""
_NO_PART: Final = SQL("({conditions}) IS NOT TRUE")
"""A condition about a field that is not set does not hold, so that its negation does."""
_ORDERINGS: Final = frozenset({"gt", "gte", "lt", "lte"})
_JSON_EQUALITIES: Final = frozenset({"eq", "in_"})


def filter_condition(wanted: Filter, *, as_active: bool = False) -> tuple[Composable, dict[str, Any]]:
    """A condition on the rows of `facts AS f`, and its parameters, whose names begin with `filter_`.

    It is true, or not: a part of it may be unknown. The state is that of the query's parameter `at`, a time; with
    `as_active` every fact is taken to be active.
    """
    conditions = _Conditions(as_active)
    return conditions.of_filter(wanted), conditions.parameters


def status_at(at: Composable, *, state: str = "f") -> Composable:
    """The status of a row of `facts AS f` at an instant, as filters see it and readers show it.

    A fact whose end has passed counts as expired, as it will be.
    """
    return SQL(
        "CASE WHEN {state}.status IN ('active', 'pending_confirmation') "
        "AND least(f.valid_until, {state}.true_to) <= {at} THEN 'expired' ELSE {state}.status END"
    ).format(at=at, state=Identifier(state))


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Makes the conditions of one statement, and numbers their parameters."""

    as_active: bool
    parameters: dict[str, Any] = field(default_factory=dict)

    def of_filter(self, wanted: Filter) -> Composable:
        return _joined(" AND ", [one for name in _given(wanted) for one in self._of_field(name, getattr(wanted, name))])

    def _of_field(self, name: str, asked: Any) -> Iterator[Composable]:
        if name in BRANCHES:
            parts = [self.of_filter(part) for part in asked]
            joined = _joined(" AND " if name == "AND" else " OR ", parts)
            yield _NO_PART.format(conditions=joined) if name == "NOT" else joined
        elif name == "structured_attributes":
            for part in _given(asked):
                for operator in _given(getattr(asked, part)):
                    value = getattr(getattr(asked, part), operator)
                    yield self._compared(_PARTS_OF_TIME[part], operator, value)
        elif name == "metadata":
            for path, operators in asked.items():
                for operator in _given(operators):
                    yield self._of_metadata(path.split("."), operator, getattr(operators, operator))
        else:
            for operator in _given(asked):
                if name == "categories":
                    yield self._of_categories(operator, getattr(asked, operator))
                    continue
                column = self._field(name, is_compared=operator != "exists")
                yield self._compared(column, operator, getattr(asked, operator))

    def _of_categories(self, operator: str, value: Any) -> Composable:
        """Whether one of them is what is asked for: a list contains what its member equals."""
        if operator in _NEGATIONS:
            return _NO_PART.format(conditions=self._of_categories(_NEGATIONS[operator], value))
        one = self._compared(Identifier("given", "category"), "eq" if operator == "contains" else operator, value)
        given = SQL("unnest(f.category || f.more_categories) AS given (category)")
        return SQL("EXISTS (SELECT FROM {given} WHERE {one})").format(given=given, one=one)

    def _of_metadata(self, path: list[str], operator: str, value: Any) -> Composable:
        place = self._parameter(path)
        if operator in _NEGATIONS:
            return _NO_PART.format(conditions=self._of_metadata(path, _NEGATIONS[operator], value))
        whole = _INSIDE_METADATA["value"].format(path=place)
        if operator == "exists":
            return self._compared(whole, operator, value)
        if operator in _JSON_EQUALITIES:
            return self._compared(whole, operator, Jsonb(value) if operator == "eq" else [Jsonb(one) for one in value])
        of_kind = _INSIDE_METADATA["text" if isinstance(value, str) else "number"].format(path=place)
        if operator != "contains":
            is_by_code_point = isinstance(value, str) and operator in _ORDERINGS
            compared = SQL('({field}) COLLATE "C"').format(field=of_kind) if is_by_code_point else of_kind
            return self._compared(compared, operator, value)
        member = _INSIDE_METADATA["has_member"].format(path=place, value=self._parameter(Jsonb(value)))
        part = [self._compared(of_kind, "contains", value)] if isinstance(value, str) else []
        return _joined(" OR ", [member, *part])

    def _compared(self, field: Composable, operator: str, value: Any) -> Composable:
        if operator == "exists":
            is_set = SQL("{field} IS NOT NULL").format(field=field)
            return is_set if value else _NO_PART.format(conditions=is_set)
        if operator in _NEGATIONS:
            return _NO_PART.format(conditions=self._compared(field, _NEGATIONS[operator], value))
        given = [*value] if isinstance(value, tuple) else value
        return _OPERATORS[operator].format(field=field, value=self._parameter(given))

    def _field(self, name: str, *, is_compared: bool) -> Composable:
        """The column of a field. An id that is not set is the empty string there, which equals no id: indexes serve."""
        if name == "state":
            return SQL("'active'") if self.as_active else status_at(Placeholder("at"))
        column = Identifier("f", _COLUMNS.get(name, name))
        return SQL("nullif({column}, '')").format(column=column) if name in SCOPE_FIELDS and not is_compared else column

    def _parameter(self, value: Any) -> Composable:
        name = f"filter_{len(self.parameters) + 1}"
        self.parameters[name] = value
        return Placeholder(name)


def _given(model: BaseModel) -> list[str]:
    """The fields that a caller named, in the order of the model."""
    return [name for name in type(model).model_fields if name in model.model_fields_set]


def _joined(word: str, conditions: list[Composable]) -> Composable:
    if not conditions:
        return SQL("true")
    return SQL(word).join([SQL("({})").format(one) for one in conditions])
