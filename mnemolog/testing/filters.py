"""What a filter says of a fact in memory."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from mnemolog.projections.queries.results import Fact
from mnemolog.schemas.filters import Filter

_NAMES: Final = {"state": "status", "entity": "subject"}
"""The name of a field in `Fact`, where it has another one there."""
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def lets_through(wanted: Filter, fact: Fact) -> bool:
    """Whether a fact, as it is shown at a time, passes a filter."""
    return all(_part(name, getattr(wanted, name), fact) for name in wanted.model_fields_set)


def _part(name: str, asked: Any, fact: Fact) -> bool:
    match name:
        case "AND":
            passes = all(lets_through(part, fact) for part in asked)
        case "OR":
            passes = any(lets_through(part, fact) for part in asked)
        case "NOT":
            passes = not any(lets_through(part, fact) for part in asked)
        case "metadata":
            passes = all(_holds(_inside(fact.metadata, path), one) for path, one in asked.items())
        case "structured_attributes":
            parts = fact.structured_attributes
            passes = all(_holds(parts[one], getattr(asked, one)) for one in asked.model_fields_set)
        case _:
            passes = _holds(getattr(fact, _NAMES.get(name, name)), asked, of_members=name == "categories")
    return passes


def _inside(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _holds(value: Any, asked: BaseModel, *, of_members: bool = False) -> bool:
    return all(_compares(value, name, getattr(asked, name), of_members) for name in asked.model_fields_set)


def _compares(value: Any, name: str, other: Any, of_members: bool) -> bool:
    match name:
        case "exists":
            return (value is not None) is bool(other)
        case "eq" | "in_" | "ne" | "nin":
            among = other if name in ("in_", "nin") else (other,)
            values = value if of_members else [value]
            return any(_same(one, two) for one in values for two in among) == (name in ("eq", "in_"))
        case "contains" if isinstance(value, list):
            return any(_same(one, other) for one in value)
        case "contains" | "icontains":
            if not (isinstance(value, str) and isinstance(other, str)):
                return False
            return other in value if name == "contains" else other.lower() in value.lower()
    return value is not None and _kind(value) is _kind(other) and bool(_ORDERS[name](value, other))


def _same(one: Any, two: Any) -> bool:
    return _kind(one) is _kind(two) and one == two


def _kind(value: Any) -> type:
    """Numbers are of one kind, and True is none of them."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
