"""The tables that the projector fills: where a row has the value of each column. `tables.sql` has their types."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from psycopg.sql import SQL, Composable, Identifier
from pydantic_core import to_json

from mnemolog.projections.database import RowConnection, jsonb
from mnemolog.projections.sql import column_types
from mnemolog.projections.write import rows
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.scope import SCOPE_FIELDS

WITHOUT_VECTOR_DATA: Final[Any] = {"fact": {"vector": {"data"}}}
Row = TypeVar("Row")
Values = Mapping[str, str | Callable[[Any], Any]]
"""Where a row has the value of each column: the path of an attribute ("commit.owner"), or a function of the row."""


class Table(Generic[Row]):
    """Columns of a table, with what writes rows to them.

    `types` are those of columns that `tables.sql` does not have, or has with another type.
    """

    def __init__(self, name: str, values: Values, types: Mapping[str, str] = MappingProxyType({})) -> None:
        # Those with a path come first: one call reads them all, which is quicker than one for each.
        self.sources = dict(sorted(values.items(), key=lambda column: callable(column[1])))
        self.name = name
        self.names = _joined(map(Identifier, self.sources))
        known = {**column_types(name), **types}
        self._types = {column: known[column] for column in self.sources}
        self._read_paths = attrgetter(*[value for value in self.sources.values() if isinstance(value, str)])
        self._functions = [value for value in self.sources.values() if not isinstance(value, str)]
        copy = SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(Identifier(name), self.names)
        self._copy = SQL(copy.as_string())

    def values(self, row: Row) -> tuple[Any, ...]:
        """The values of a row, in the order of `sources`."""
        return (*self._read_paths(row), *[value(row) for value in self._functions])

    async def copy(self, connection: RowConnection, new: Sequence[Row]) -> None:
        """Write new rows by COPY, which is not possible inside a pipeline; without rows nothing is sent."""
        if not new:
            return
        async with connection.cursor() as cursor, cursor.copy(self._copy) as copy:
            copy.set_types(list(self._types.values()))
            for row in new:
                await copy.write_row(self.values(row))

    def statement(self, query: SQL, **more: Composable) -> SQL:
        """`query` with its places filled: the {columns}, the {given} rows, and {values}, the columns of these.

        The rows come from `parameters`; `given.number` counts them in their order.
        """
        # Lists of arrays would have to be rectangles, so that each array comes as a text.
        arrays = {column: "text" if kind == "uuid[]" else kind for column, kind in self._types.items()}
        given = SQL("unnest({}) WITH ORDINALITY AS given ({}, number)").format(
            _joined(
                SQL(f"%({column})b::halfvec []" if kind == "halfvec" else f"%({column})s::{kind} []")
                for column, kind in arrays.items()
            ),
            self.names,
        )
        return SQL(query.format(columns=self.names, values=self.given_values, given=given, **more).as_string())

    @property
    def given_values(self) -> SQL:
        """The columns of the table `given` of a statement, as values of columns of this table."""
        return _joined(
            SQL("given.{}::uuid []" if kind == "uuid[]" else "given.{}").format(Identifier(column))
            for column, kind in self._types.items()
        )

    def parameters(self, new: Sequence[Row]) -> dict[str, list[Any]]:
        """The parameters of a `statement` that writes these rows, at least one."""
        values = zip(self._types.items(), map(list, zip(*map(self.values, new), strict=True)), strict=True)
        return {
            column: [f"{{{','.join(map(str, ids))}}}" for ids in found] if kind == "uuid[]" else found
            for (column, kind), found in values
        }


def _joined(parts: Iterable[Composable]) -> SQL:
    return SQL(SQL(", ").join(parts).as_string())


def _of(path: str, *names: str) -> dict[str, str]:
    """Columns that are named as the attributes of the value at `path`."""
    return {name: f"{path}.{name}" for name in names}


def _own(*names: str) -> dict[str, str]:
    """Columns that are named as the attributes of a row."""
    return dict(zip(names, names, strict=True))


def _scope_id(name: str, row: Any) -> str:
    scope = row.commit.scope
    return (scope and getattr(scope, name)) or ""


def _sum_of_steps(count: str, row: rows.CommitRow) -> Any:
    return sum(map(attrgetter(count), row.commit.provenance.steps))


_COMMIT_SCOPE: Final[Values] = {name: partial(_scope_id, name) for name in SCOPE_FIELDS}
"""The scope of the commit of a row; an id that is not set is the empty string."""
_ROW_SCOPE: Final[Values] = {
    name: partial(lambda place, row: row.scope[place], place) for place, name in enumerate(SCOPE_FIELDS)
}
"""The scope of a row that has one itself."""
_STATE: Final = _of("state", *FactState.model_fields)
"""What events can change of a fact."""
_SOURCE: Final[Values] = {**_of("commit", "owner", "source_id"), **_COMMIT_SCOPE}
_PLACE: Final = {"partition": "position.partition", "log_offset": "position.offset"}

COMMITS_WITHOUT_RECORDS: Final = Table[rows.CommitRow](
    "commits",
    {
        **_PLACE,
        **_SOURCE,
        **_of("commit", "source_kind", "attempt", "actor", "outcome", "reason", "detail", "based_on"),
        **_of("commit", "occurred_at", "published_at", "decided_at"),
        **{f"origin_{name}": f"commit.origin.{name}" for name in ("topic", "partition", "offset")},
        **{
            name: partial(_sum_of_steps, name)
            for name in ("llm_calls", "embedding_calls", "input_tokens", "output_tokens", "reprompts")
        },
        "provenance": lambda row: jsonb(row.commit.provenance.model_dump_json()),
        "metadata": lambda row: jsonb(to_json(row.commit.metadata)),
        "order_kind": lambda row: row.commit.order.kind if row.commit.order else None,
        "limit_hit": lambda row: jsonb(to_json(row.commit.limit)) if row.commit.limit else None,
    },
)
COMMITS: Final = Table[rows.CommitRow]("commits", {**COMMITS_WITHOUT_RECORDS.sources, "record": "record"})
MEMORY_EVENTS: Final = Table[rows.EventRow](
    "memory_events",
    {
        **_PLACE,
        **_SOURCE,
        **_own("fact_id", "stale"),
        **_of("event", "event_id", "ordinal", "event"),
        **_of("event.decision", "reason", "model", "prompt_version", "guard"),
        "decided_by": "event.decision.by",
        "decided_at": "commit.decided_at",
        "targets": lambda row: list(row.targets),
        # A promoted statement occurred when it was said.
        "occurred_at": lambda row: origin.said_at if (origin := row.event.promoted_from) else row.commit.occurred_at,
        "payload": lambda row: jsonb(row.event.model_dump_json(exclude=WITHOUT_VECTOR_DATA)),
        "undoes": lambda row: getattr(row.event, "undone", None),
        "promoted_from": lambda row: row.event.promoted_from and row.event.promoted_from.fact_id,
    },
)
FACTS: Final = Table[rows.FactRow](
    "facts",
    {
        **_SOURCE,
        **_own("ordinal", "stale"),
        **_of("fact", "fact_id", "text", "search_text", "key", "value", "category", "subject", "speaker", "excerpt"),
        **_of("fact", "importance", "importance_category", "certainty", "event_time", "valid_until", "action_hint"),
        **_of("fact", "single_valued", "authority", "content_hash"),
        "embedding_model": "fact.vector.model",
        "embedding": "fact.vector",
        "recorded_at": "commit.decided_at",
        **_STATE,
        "state_since": "state.state_since",
        "value_json": lambda row: None if row.fact.value_json is None else jsonb(to_json(row.fact.value_json)),
        "more_categories": lambda row: list(row.fact.more_categories),
        "metadata": lambda row: jsonb(to_json(row.fact.metadata or row.commit.metadata)),
        "said_at": lambda row: row.fact.said_at or row.commit.occurred_at,
        "supersedes": lambda row: list(row.supersedes),
    },
)
KNOWN_FACTS: Final = Table[rows.KnownFact](
    "facts", {"fact_id": "fact_id", **_STATE, "state_since": "state.state_since"}
)
FORMER_STATES: Final = Table[rows.FormerStateRow](
    "former_states", {**_own("fact_id", "event_id", "until"), "since": "state.state_since", **_STATE}
)
FACT_RELATIONS: Final = Table[rows.RelationRow](
    "fact_relations", _own("fact_id", "related_id", "relation", "event_id", "since")
)
PENDING_CONFIRMATIONS: Final = Table[rows.PendingRow](
    "pending_confirmations",
    {
        "fact_id": "event.fact.fact_id",
        "owner": "commit.owner",
        **_COMMIT_SCOPE,
        **_of("event", "event_id", "action", "ended_at", "guard", "needs_human"),
        "since": "commit.decided_at",
        "targets": lambda row: list(row.event.targets),
    },
)
SETTLEMENTS: Final = Table[rows.SettlementRow](
    "pending_confirmations",
    {
        **_own("fact_id", "settlement"),
        "settled_at": lambda row: row.at if row.settlement else None,
        "settled_by": lambda row: row.event_id if row.settlement else None,
    },
)
REJECTIONS: Final = Table[rows.RejectionRow](
    "rejections", {**_PLACE, **_own("item", "owner", "source_id", "reason", "detail", "record")}
)
UNDONE: Final = Table[rows.UndoneRow]("undone", _own("event_id", "undone_by", "since"))
POLICIES: Final = Table[rows.PolicyRow](
    "policies",
    {
        **_ROW_SCOPE,
        "event_id": "event.event_id",
        "since": "since",
        "policy": lambda row: jsonb(row.event.policy.model_dump_json()),
    },
)
SCOPE_INCREMENTS: Final = Table[rows.ScopeIncrement](
    "scopes",
    {
        **_ROW_SCOPE,
        **_own("owner", "partition", "commits", "facts"),
        "speakers": lambda row: jsonb(to_json(row.speakers)),
    },
    types={"partition": "integer", "commits": "bigint", "speakers": "jsonb"},
)
ENTITIES: Final = Table[rows.EntityRow](
    "entities",
    {
        **_SOURCE,
        **_of("event", "entity_id", "name", "type", "event_id", "ordinal"),
        "possible_twins": "possible_twins",
        "recorded_at": "commit.decided_at",
    },
)
ENTITY_ALIASES: Final = Table[rows.AliasRow](
    "entity_aliases",
    {
        **_own("entity_id", "place", "event_id", "log_offset", "is_own", "told_by"),
        **_of("alias", "kind", "key", "head"),
        "alias": "alias.text",
        "recorded_at": "commit.decided_at",
        "owner": "commit.owner",
        **_COMMIT_SCOPE,
    },
)
GIVEN_ALIASES: Final = Table[rows.AliasRow](
    "entity_aliases",
    {**ENTITY_ALIASES.sources, "source_id": "commit.source_id", "repeated_fact_id": "repeated_fact_id"},
    types={"repeated_fact_id": "uuid"},
)
"""With what gives the column `source_id`: the source of the commit, or that of the fact which it repeats."""
NAME_VECTORS: Final = Table[rows.AliasRow](
    "name_vectors",
    {
        **_own("entity_id", "event_id"),
        "key": "alias.key",
        "model": "alias.vector.model",
        "embedding": "alias.vector",
        **_COMMIT_SCOPE,
    },
)
FACT_ENTITIES: Final = Table[rows.LinkRow](
    "fact_entities", {**_own("fact_id", "event_id", "told_by"), **_of("link", "entity_id", "role", "type")}
)
RELATIONSHIPS: Final = Table[rows.EvidenceRow](
    "relationships",
    {
        **_SOURCE,
        "relation_id": "relation_id",
        **_of("event", "subject_id", "predicate", "object_id", "inverse", "event_id", "ordinal"),
        "recorded_at": "commit.decided_at",
    },
)
RELATIONSHIP_EVIDENCE: Final = Table[rows.EvidenceRow](
    "relationship_evidence",
    {
        **_own("relation_id", "told_by"),
        **_of("event", "fact_id", "event_id"),
        "recorded_at": "commit.decided_at",
        "strength": lambda row: getattr(row.event, "strength", None),
        "ended_at": lambda row: getattr(row.event, "ended_at", None),
    },
)
ENTITY_CHANGES: Final = Table[rows.EntityChangeRow](
    "entity_changes",
    {
        **_PLACE,
        **_SOURCE,
        **_of("event", "event_id", "ordinal", "event", "entity_ids"),
        "decided_at": "commit.decided_at",
        "payload": lambda row: jsonb(row.event.model_dump_json()),
        "original_id": lambda row: getattr(row.event, "original_id", row.event.event_id),
    },
)
