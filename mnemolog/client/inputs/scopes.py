"""Whose facts a call is about."""

from collections.abc import Mapping
from typing import Any

from mnemolog.client.inputs.arguments import ScopeArgs, scope_ids
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters.model import EVERYTHING, Filter, parse_filter


def scope_filter(scope: ScopeArgs) -> ScopeFilter:
    return ScopeFilter(**scope_ids(scope))


def scope_and_filter(scope: ScopeArgs, filters: Mapping[str, Any] | None) -> tuple[ScopeFilter, Filter]:
    """Whose facts and which: a filter narrows the scope that is named. Without one it says itself whose they are."""
    wanted = parse_filter({} if filters is None else filters)
    return scope_of(scope, wanted), wanted


def scope_of(scope: ScopeArgs, wanted: Filter) -> ScopeFilter:
    """Whose facts: of the ids that are named, or where none is, of the filter."""
    ids = scope_ids(scope)
    tenant = ids.pop("tenant")
    if wanted != EVERYTHING and all(value is None for value in ids.values()):
        return ScopeFilter.of_filter(tenant, wanted)
    return scope_filter(scope)
