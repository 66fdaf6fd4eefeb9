"""A filter as the condition of a SQL statement, with all its values as parameters."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from psycopg.sql import SQL, Composable, Identifier, Placeholder
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from mnemolog.projections.sql import queries
from mnemolog.schemas.filters import BRANCHES, Filter
from mnemolog.schemas.scope import SCOPE_FIELDS

_COLUMNS: Final[Mapping[str, str]] = {
    "id": "fact_id",
    "memory": "text",
    "categories": "category",
    "created_at": "recorded_at",
    "updated_at": "state_since",
    "entity": "subject",
}
"""The column of a field, where it has another name."""
_NEGATIONS: Final[Mapping[str, str]] = {"ne": "eq", "nin": "in_"}
_TEMPLATES: Final[Mapping[str, str]] = {"in_": "any_of"}
_ORDERINGS: Final = frozenset({"gt", "gte", "lt", "lte"})
_JSON_EQUALITIES: Final = frozenset({"eq", "in_"})


def filter_condition(wanted: Filter, *, as_active: bool = False) -> tuple[Composable, dict[str, Any]]:
    """A condition on the rows of `facts AS f`, and its parameters, whose names begin with `filter_`.

    It is true, or not: a part of it may be unknown. The state is that of the query's parameter `at`, a time; with
    `as_active` every fact is taken to be active.
    """
    conditions = _Conditions(as_active=as_active)
    return conditions.of_filter(wanted), conditions.parameters


def status_at(at: Composable, *, state: str = "f") -> Composable:
    """The status of a row of `facts AS f` at an instant, as filters see it and readers show it."""
    return _template("state", at=at, state=Identifier(state))


class _Conditions:
    """Makes the conditions of one statement, and numbers their parameters."""

    def __init__(self, *, as_active: bool) -> None:
        self._as_active = as_active
        self.parameters: dict[str, Any] = {}
        self._numbers = count(1)

    def of_filter(self, wanted: Filter) -> Composable:
        return _joined(" AND ", [one for name in _given(wanted) for one in self._of_field(name, getattr(wanted, name))])

    def _of_field(self, name: str, asked: Any) -> Iterator[Composable]:
        if name in BRANCHES:
            parts = [self.of_filter(part) for part in asked]
            joined = _joined(" AND " if name == "AND" else " OR ", parts)
            yield _template("no_part", conditions=joined) if name == "NOT" else joined
        elif name == "structured_attributes":
            for part in _given(asked):
                for operator in _given(getattr(asked, part)):
                    value = getattr(getattr(asked, part), operator)
                    yield self._compared(_template(part), operator, value)
        elif name == "metadata":
            for path, operators in asked.items():
                for operator in _given(operators):
                    yield self._of_metadata(path.split("."), operator, getattr(operators, operator))
        else:
            for operator in _given(asked):
                field = self._field(name, is_compared=operator != "exists")
                yield self._compared(field, _of_members(name, operator), getattr(asked, operator))

    def _of_metadata(self, path: list[str], operator: str, value: Any) -> Composable:
        place = self._parameter(path)
        whole = _template("json_value", path=place)
        if operator in _NEGATIONS:
            return _template("no_part", conditions=self._of_metadata(path, _NEGATIONS[operator], value))
        if operator == "exists":
            return self._compared(whole, operator, value)
        if operator in _JSON_EQUALITIES:
            return self._compared(whole, operator, Jsonb(value) if operator == "eq" else [Jsonb(one) for one in value])
        of_kind = _template("json_text" if isinstance(value, str) else "json_number", path=place)
        if operator != "contains":
            is_by_code_point = isinstance(value, str) and operator in _ORDERINGS
            field = _template("by_code_point", field=of_kind) if is_by_code_point else of_kind
            return self._compared(field, operator, value)
        member = _template("json_member", path=place, value=self._parameter(Jsonb(value)))
        part = [self._compared(of_kind, "contains", value)] if isinstance(value, str) else []
        return _joined(" OR ", [member, *part])

    def _compared(self, field: Composable, operator: str, value: Any) -> Composable:
        if operator == "exists":
            is_set = _template("exists", field=field)
            return is_set if value else _template("no_part", conditions=is_set)
        if operator in _NEGATIONS:
            return _template("no_part", conditions=self._compared(field, _NEGATIONS[operator], value))
        given = [*value] if isinstance(value, tuple) else value
        return _template(_TEMPLATES.get(operator, operator), field=field, value=self._parameter(given))

    def _field(self, name: str, *, is_compared: bool) -> Composable:
        """The column of a field. An id that is not set is the empty string there, which equals no id: indexes serve."""
        if name == "state":
            return _template("active") if self._as_active else status_at(Placeholder("at"))
        column = Identifier("f", _COLUMNS.get(name, name))
        return _template("scope_id", column=column) if name in SCOPE_FIELDS and not is_compared else column

    def _parameter(self, value: Any) -> Composable:
        name = f"filter_{next(self._numbers)}"
        self.parameters[name] = value
        return Placeholder(name)


def _given(model: BaseModel) -> list[str]:
    """The fields that a caller named, in the order of the model."""
    return [name for name in type(model).model_fields if name in model.model_fields_set]


def _of_members(name: str, operator: str) -> str:
    """A fact has one category: a list with it as its member contains what it equals."""
    return "eq" if name == "categories" and operator == "contains" else operator


def _template(name: str, **parts: Composable) -> Composable:
    return queries("filters")[name].format(**parts)


def _joined(word: str, conditions: list[Composable]) -> Composable:
    if not conditions:
        return SQL("true")
    return SQL(word).join([SQL("({})").format(one) for one in conditions])
