"""LangGraph's long-term store in a memory: `graph.compile(store=MnemologStore(memory))`."""

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from mnemolog.adapters import check_done
from mnemolog.client.sync_client import MemoryClient
from mnemolog.errors import InvalidArgumentError
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import WILDCARDS

MOST_HITS: Final = 100
"""Hits that have a score; what else a search lets through follows without one."""
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class MnemologStore(BaseStore):
    """Items of graphs, each a fact that is stored as it is, without a model, and readable once `put` returns.

    `memory` is bound to whose items they are, or `user_at` is the place of the user's id in a namespace: 1 for
    `("notes", "alice")`. The labels of a namespace, joined by dots, are the `run_id` of an item, and its key is the
    `app_id`: ids of up to 256 bytes, never "*" or "**". `index` of a put names fields of its value whose texts are
    searched, all unless given. Raises `MnemologError` where a put or a deletion does not succeed.
    """

    def __init__(self, memory: MemoryClient, *, user_at: int | None = None) -> None:
        self._memory = memory
        self._user_at = user_at

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._run(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, ops)

    def _run(self, op: Op) -> Result:
        validate_op_namespace(op)
        match op:
            case GetOp(namespace, key):
                return next(iter(self._items(namespace, key).values()), None)
            case PutOp():
                return self._put(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp(conditions, depth, limit, offset):
                known = {item.namespace for item in self._items(()).values()}
                fitting = {one[:depth] for one in known if all(_is_under(one, path) for path in conditions or ())}
                return sorted(fitting)[offset : offset + limit]

    def _scope(self, namespace: tuple[str, ...]) -> dict[str, Any]:
        """The user of the namespace; any user where it is a beginning that does not name one."""
        if self._user_at is None:
            return {}
        return {"user_id": namespace[self._user_at] if self._user_at < len(namespace) else "*"}

    def _items(self, beginning: tuple[str, ...], key: str | None = None) -> dict[Any, Item]:
        """The items under a namespace, or the one in it that has the key, by the ids of their facts, oldest first.

        Of two that were put under one key at once it is the later one.
        """
        run_id, app_id = ("*", "*") if key is None else (".".join(beginning), key)
        facts = self._memory.facts(**self._scope(beginning), run_id=run_id, app_id=app_id)
        found: dict[tuple[tuple[str, ...], str], tuple[Any, Item]] = {}
        for fact in facts:
            if "namespace" in fact.metadata:
                item = _item(fact)
                if item.namespace[: len(beginning)] == beginning and key in (None, item.key):
                    found[item.namespace, item.key] = fact.fact_id, item
        return dict(found.values())

    def _put(self, op: PutOp) -> None:
        scope = {**self._scope(op.namespace), "run_id": ".".join(op.namespace), "app_id": op.key}
        if not WILDCARDS.isdisjoint(scope.values()):  # a deletion would be one of all of them
            raise InvalidArgumentError(f"{op.namespace}, {op.key!r}: a user and a key are named, never '*' or '**'")
        if op.value is None:
            check_done(self._memory.delete_all(wait=True, **scope))
            return
        known = self._items(op.namespace, op.key)
        fact_id, item = next(iter(known.items()), (None, None))
        created_at = item.created_at if item else datetime.now(UTC)
        metadata = {"namespace": [*op.namespace], "key": op.key, "value": {**op.value}, "created_at": f"{created_at}"}
        text = _text(op)
        if fact_id is None:
            check_done(self._memory.add(text, infer=False, metadata=metadata, wait=True, **scope))
        else:
            check_done(self._memory.update(fact_id, text, metadata=metadata, wait=True, **scope))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = {
            fact_id: item
            for fact_id, item in reversed(self._items(op.namespace_prefix).items())
            if all(_fits(item.value.get(name), wanted) for name, wanted in (op.filter or {}).items())
        }
        scores: dict[Any, float] = {}
        if op.query:
            within = self._scope(op.namespace_prefix)
            hits = self._memory.search(op.query, limit=MOST_HITS, threshold=0.0, run_id="*", app_id="*", **within)
            scores = {hit.fact.fact_id: hit.score.total for hit in hits}
        best = sorted(found, key=lambda fact_id: -scores.get(fact_id, 0.0))[op.offset : op.offset + op.limit]
        return [SearchItem(**found[fact_id].dict(), score=scores.get(fact_id)) for fact_id in best]


def _item(fact: Fact) -> Item:
    held = fact.metadata
    return Item(
        value=held["value"],
        key=held["key"],
        namespace=tuple(held["namespace"]),
        created_at=datetime.fromisoformat(held["created_at"]),
        updated_at=fact.recorded_at,
    )


def _text(op: PutOp) -> str:
    """What is searched of an item: its texts, or where it has none the value as it is written."""
    value = op.value or {}
    fields = op.index or value
    texts = [str(value[name]) for name in fields if isinstance(value.get(name), str | int | float)]
    return "\n".join(texts) if "".join(texts).strip() else str(value)


def _is_under(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(labels) == len(path) and all(wanted in ("*", one) for one, wanted in zip(labels, path, strict=True))


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is the one that is wanted, or meets each condition such as `{"$gte": 3}`."""
    if not (isinstance(wanted, Mapping) and any(str(name).startswith("$") for name in wanted)):
        return bool(value == wanted)
    if unknown := wanted.keys() - _OPERATORS:
        raise InvalidArgumentError(f"filter has no operator {min(unknown)!r}: choose among {', '.join(_OPERATORS)}")
    try:
        return all(_OPERATORS[name](value, bound) for name, bound in wanted.items())
    except TypeError:  # of two kinds, such as None and a number
        return False
