"""The tables that the projector fills: each column once, with its Postgres type and where a row has its value."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from psycopg.sql import SQL, Composable, Identifier
from pydantic_core import to_json

from mnemolog.projections.database import ColumnValues, RowConnection, copy_binary, jsonb
from mnemolog.projections.write.rows import (
    AliasRow,
    CommitRow,
    EntityChangeRow,
    EntityRow,
    EventRow,
    EvidenceRow,
    FactRow,
    FormerStateRow,
    KnownFact,
    LinkRow,
    PendingRow,
    PolicyRow,
    RejectionRow,
    RelationRow,
    ScopeIncrement,
    SettlementRow,
    UndoneRow,
)
from mnemolog.schemas.scope import SCOPE_FIELDS

WITHOUT_VECTOR_DATA: Final[Any] = {"fact": {"vector": {"data"}}}
Row = TypeVar("Row")


Value = str | Callable[[Any], Any]
"""Where a row has the value of a column: the path of an attribute ("commit.owner"), or a function of the row."""


class Column(NamedTuple):
    name: str
    type: str
    value: Value


class Table(Generic[Row]):
    """Columns of a table, with what writes rows to them."""

    def __init__(self, name: str, columns: Iterable[tuple[str, str, Value]]) -> None:
        # Those with a path come first: one call reads them all, which is quicker than one for each.
        self.columns = sorted((Column(*column) for column in columns), key=lambda column: callable(column.value))
        self.name = name
        self.names = _joined(Identifier(column.name) for column in self.columns)
        self._read_paths = attrgetter(*[column.value for column in self.columns if isinstance(column.value, str)])
        self._functions = [column.value for column in self.columns if not isinstance(column.value, str)]
        copy = SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(Identifier(name), self.names)
        self._copy = SQL(copy.as_string())

    def values(self, row: Row) -> ColumnValues:
        """The values of a row, in the order of `columns`."""
        return (*self._read_paths(row), *[value(row) for value in self._functions])

    async def copy(self, connection: RowConnection, rows: Iterable[Row]) -> None:
        """Write new rows by COPY, which is not possible inside a pipeline; without rows nothing is sent."""
        await copy_binary(connection, self._copy, [column.type for column in self.columns], map(self.values, rows))

    def statement(self, query: SQL, **more: Composable) -> SQL:
        """`query` with its places filled: the {columns}, the {given} rows, and {values}, the columns of these.

        The rows come from `parameters`; `given.number` counts them in their order.
        """
        given = SQL("unnest({}) WITH ORDINALITY AS given ({}, number)").format(
            _joined(map(_parameter, self.columns)), self.names
        )
        return SQL(query.format(columns=self.names, values=self.given_values, given=given, **more).as_string())

    @property
    def given_values(self) -> SQL:
        """The columns of the table `given` of a statement, as values of columns of this table."""
        return _joined(
            SQL("given.{}::uuid []" if column.type == "uuid[]" else "given.{}").format(Identifier(column.name))
            for column in self.columns
        )

    def parameters(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        """The parameters of a `statement` that writes these rows, at least one."""
        values = dict(zip(self.columns, map(list, zip(*map(self.values, rows), strict=True)), strict=True))
        return {
            column.name: [f"{{{','.join(map(str, ids))}}}" for ids in found] if column.type == "uuid[]" else found
            for column, found in values.items()
        }


def _joined(parts: Iterable[Composable]) -> SQL:
    return SQL(SQL(", ").join(parts).as_string())


def _parameter(column: Column) -> Composable:
    """A list of values as an array; lists of arrays would have to be rectangles, so that each array comes as a text."""
    if column.type == "halfvec":
        return SQL("%({})b::halfvec []").format(SQL(column.name))
    return SQL("%({})s::{} []").format(SQL(column.name), SQL("text" if column.type == "uuid[]" else column.type))


def _scope_id(name: str) -> Callable[[Any], str]:
    def value(row: Any) -> str:
        scope = row.commit.scope
        return (scope and getattr(scope, name)) or ""

    return value


COMMIT_SCOPE: Final[list[tuple[str, str, Value]]] = [(name, "text", _scope_id(name)) for name in SCOPE_FIELDS]
"""The scope of the commit of a row; an id that is not set is the empty string."""
ROW_SCOPE: Final[list[tuple[str, str, Value]]] = [
    (name, "text", partial(lambda place, row: row.scope[place], place)) for place, name in enumerate(SCOPE_FIELDS)
]
"""The scope of a row that has one itself."""
STATE: Final[list[tuple[str, str, Value]]] = [
    ("status", "text", "state.status"),
    ("confidence", "float8", "state.confidence"),
    ("mention_count", "int4", "state.mention_count"),
    ("last_confirmed_at", "timestamptz", "state.last_confirmed_at"),
    ("true_to", "timestamptz", "state.true_to"),
    ("closed_at", "timestamptz", "state.closed_at"),
    ("believed_from", "timestamptz", "state.believed_from"),
    ("believed_to", "timestamptz", "state.believed_to"),
    ("superseded_by", "uuid", "state.superseded_by"),
    ("unresolved", "bool", "state.unresolved"),
    ("true_from", "timestamptz", "state.true_from"),
]
"""What events can change of a fact: the fields of `FactState`."""
STATE_SINCE: Final = ("state_since", "timestamptz", "state.state_since")

_LOG_COPY: Final[list[tuple[str, str, Value]]] = [
    ("partition", "int4", "position.partition"),
    ("log_offset", "int8", "position.offset"),
    ("owner", "text", "commit.owner"),
    ("source_id", "text", "commit.source_id"),
    *COMMIT_SCOPE,
]


def _sum_of_steps(name: str) -> Callable[[CommitRow], Any]:
    count = attrgetter(name)
    return lambda row: sum(map(count, row.commit.provenance.steps))


COMMITS_WITHOUT_RECORDS: Final = Table[CommitRow](
    "commits",
    [
        *_LOG_COPY,
        ("source_kind", "text", "commit.source_kind"),
        ("outcome", "text", "commit.outcome"),
        ("reason", "text", "commit.reason"),
        ("detail", "text", "commit.detail"),
        ("occurred_at", "timestamptz", "commit.occurred_at"),
        ("published_at", "timestamptz", "commit.published_at"),
        ("decided_at", "timestamptz", "commit.decided_at"),
        ("origin_topic", "text", "commit.origin.topic"),
        ("origin_partition", "int4", "commit.origin.partition"),
        ("origin_offset", "int8", "commit.origin.offset"),
        ("based_on", "int8", "commit.based_on"),
        ("llm_calls", "int4", _sum_of_steps("llm_calls")),
        ("embedding_calls", "float8", _sum_of_steps("embedding_calls")),
        ("input_tokens", "int8", _sum_of_steps("input_tokens")),
        ("output_tokens", "int8", _sum_of_steps("output_tokens")),
        ("reprompts", "int4", _sum_of_steps("reprompts")),
        ("provenance", "jsonb", lambda row: jsonb(row.commit.provenance.model_dump_json())),
        ("metadata", "jsonb", lambda row: jsonb(to_json(row.commit.metadata))),
        ("attempt", "int4", "commit.attempt"),
        ("order_kind", "text", lambda row: row.commit.order.kind if row.commit.order else None),
        ("actor", "text", "commit.actor"),
        ("limit_hit", "jsonb", lambda row: jsonb(to_json(row.commit.limit)) if row.commit.limit else None),
    ],
)
COMMITS: Final = Table[CommitRow]("commits", [*COMMITS_WITHOUT_RECORDS.columns, ("record", "bytea", "record")])


MEMORY_EVENTS: Final = Table[EventRow](
    "memory_events",
    [
        ("event_id", "uuid", "event.event_id"),
        *_LOG_COPY,
        ("ordinal", "int4", "event.ordinal"),
        ("event", "text", "event.event"),
        ("fact_id", "uuid", "fact_id"),
        ("targets", "uuid[]", lambda row: list(row.targets)),
        # A promoted statement occurred when it was said.
        (
            "occurred_at",
            "timestamptz",
            lambda row: origin.said_at if (origin := row.event.promoted_from) else row.commit.occurred_at,
        ),
        ("decided_at", "timestamptz", "commit.decided_at"),
        ("decided_by", "text", "event.decision.by"),
        ("reason", "text", "event.decision.reason"),
        ("stale", "bool", "stale"),
        ("payload", "jsonb", lambda row: jsonb(row.event.model_dump_json(exclude=WITHOUT_VECTOR_DATA))),
        ("model", "text", "event.decision.model"),
        ("prompt_version", "text", "event.decision.prompt_version"),
        ("guard", "text", "event.decision.guard"),
        ("undoes", "uuid", lambda row: getattr(row.event, "undone", None)),
        ("promoted_from", "uuid", lambda row: row.event.promoted_from and row.event.promoted_from.fact_id),
    ],
)
FACTS: Final = Table[FactRow](
    "facts",
    [
        ("fact_id", "uuid", "fact.fact_id"),
        ("owner", "text", "commit.owner"),
        *COMMIT_SCOPE,
        ("text", "text", "fact.text"),
        ("search_text", "text", "fact.search_text"),
        ("key", "text", "fact.key"),
        ("value", "text", "fact.value"),
        (
            "value_json",
            "jsonb",
            lambda row: None if row.fact.value_json is None else jsonb(to_json(row.fact.value_json)),
        ),
        ("category", "text", "fact.category"),
        ("more_categories", "text[]", lambda row: list(row.fact.more_categories)),
        ("importance_category", "text", "fact.importance_category"),
        ("importance", "float8", "fact.importance"),
        ("certainty", "text", "fact.certainty"),
        ("subject", "text", "fact.subject"),
        ("speaker", "text", "fact.speaker"),
        ("excerpt", "text", "fact.excerpt"),
        ("event_time", "timestamptz", "fact.event_time"),
        ("valid_until", "timestamptz", "fact.valid_until"),
        ("action_hint", "text", "fact.action_hint"),
        ("single_valued", "bool", "fact.single_valued"),
        ("authority", "text", "fact.authority"),
        ("content_hash", "text", "fact.content_hash"),
        ("embedding_model", "text", "fact.vector.model"),
        ("embedding", "halfvec", "fact.vector"),
        ("metadata", "jsonb", lambda row: jsonb(to_json(row.fact.metadata or row.commit.metadata))),
        ("source_id", "text", "commit.source_id"),
        ("said_at", "timestamptz", lambda row: row.fact.said_at or row.commit.occurred_at),
        ("recorded_at", "timestamptz", "commit.decided_at"),
        ("ordinal", "int4", "ordinal"),
        ("supersedes", "uuid[]", lambda row: list(row.supersedes)),
        ("stale", "bool", "stale"),
        *STATE,
        STATE_SINCE,
    ],
)
KNOWN_FACTS: Final = Table[KnownFact]("facts", [("fact_id", "uuid", "fact_id"), *STATE, STATE_SINCE])
FORMER_STATES: Final = Table[FormerStateRow](
    "former_states",
    [
        ("fact_id", "uuid", "fact_id"),
        ("event_id", "uuid", "event_id"),
        ("since", "timestamptz", "state.state_since"),
        ("until", "timestamptz", "until"),
        *STATE,
    ],
)
FACT_RELATIONS: Final = Table[RelationRow](
    "fact_relations",
    [
        ("fact_id", "uuid", "fact_id"),
        ("related_id", "uuid", "related_id"),
        ("relation", "text", "relation"),
        ("event_id", "uuid", "event_id"),
        ("since", "timestamptz", "since"),
    ],
)


PENDING_CONFIRMATIONS: Final = Table[PendingRow](
    "pending_confirmations",
    [
        ("fact_id", "uuid", "event.fact.fact_id"),
        ("owner", "text", "commit.owner"),
        *COMMIT_SCOPE,
        ("event_id", "uuid", "event.event_id"),
        ("targets", "uuid[]", lambda row: list(row.event.targets)),
        ("action", "text", "event.action"),
        ("ended_at", "timestamptz", "event.ended_at"),
        ("guard", "text", "event.guard"),
        ("needs_human", "bool", "event.needs_human"),
        ("since", "timestamptz", "commit.decided_at"),
    ],
)
SETTLEMENTS: Final = Table[SettlementRow](
    "pending_confirmations",
    [
        ("fact_id", "uuid", "fact_id"),
        ("settled_at", "timestamptz", lambda row: row.at if row.settlement else None),
        ("settlement", "text", "settlement"),
        ("settled_by", "uuid", lambda row: row.event_id if row.settlement else None),
    ],
)
REJECTIONS: Final = Table[RejectionRow](
    "rejections",
    [
        ("partition", "int4", "position.partition"),
        ("log_offset", "int8", "position.offset"),
        ("item", "int4", "item"),
        ("owner", "text", "owner"),
        ("source_id", "text", "source_id"),
        ("reason", "text", "reason"),
        ("detail", "text", "detail"),
        ("record", "bytea", "record"),
    ],
)
UNDONE: Final = Table[UndoneRow](
    "undone",
    [("event_id", "uuid", "event_id"), ("undone_by", "uuid", "undone_by"), ("since", "timestamptz", "since")],
)
POLICIES: Final = Table[PolicyRow](
    "policies",
    [
        *ROW_SCOPE,
        ("policy", "jsonb", lambda row: jsonb(row.event.policy.model_dump_json())),
        ("event_id", "uuid", "event.event_id"),
        ("since", "timestamptz", "since"),
    ],
)
SCOPE_INCREMENTS: Final = Table[ScopeIncrement](
    "scopes",
    [
        *ROW_SCOPE,
        ("owner", "text", "owner"),
        ("partition", "int4", "partition"),
        ("commits", "int8", "commits"),
        ("facts", "int8", "facts"),
        ("speakers", "jsonb", lambda row: jsonb(to_json(row.speakers))),
    ],
)

_SOURCE: Final[list[tuple[str, str, Value]]] = [
    ("owner", "text", "commit.owner"),
    ("source_id", "text", "commit.source_id"),
    *COMMIT_SCOPE,
]
ENTITIES: Final = Table[EntityRow](
    "entities",
    [
        ("entity_id", "uuid", "event.entity_id"),
        *_SOURCE,
        ("name", "text", "event.name"),
        ("type", "text", "event.type"),
        ("possible_twins", "uuid[]", "possible_twins"),
        ("event_id", "uuid", "event.event_id"),
        ("recorded_at", "timestamptz", "commit.decided_at"),
        ("ordinal", "int4", "event.ordinal"),
    ],
)
ENTITY_ALIASES: Final = Table[AliasRow](
    "entity_aliases",
    [
        ("entity_id", "uuid", "entity_id"),
        ("kind", "text", "alias.kind"),
        ("key", "text", "alias.key"),
        ("head", "text", "alias.head"),
        ("alias", "text", "alias.text"),
        ("place", "int4", "place"),
        ("event_id", "uuid", "event_id"),
        ("recorded_at", "timestamptz", "commit.decided_at"),
        ("owner", "text", "commit.owner"),
        *COMMIT_SCOPE,
        ("log_offset", "int8", "log_offset"),
        ("is_own", "bool", "is_own"),
        ("told_by", "uuid", "told_by"),
    ],
)
GIVEN_ALIASES: Final = Table[AliasRow](
    "entity_aliases",
    [
        *ENTITY_ALIASES.columns,
        ("source_id", "text", "commit.source_id"),
        ("repeated_fact_id", "uuid", "repeated_fact_id"),
    ],
)
"""With what gives the column `source_id`: the source of the commit, or that of the fact which it repeats."""
NAME_VECTORS: Final = Table[AliasRow](
    "name_vectors",
    [
        ("entity_id", "uuid", "entity_id"),
        ("key", "text", "alias.key"),
        ("event_id", "uuid", "event_id"),
        ("model", "text", "alias.vector.model"),
        ("embedding", "halfvec", "alias.vector"),
        *COMMIT_SCOPE,
    ],
)
FACT_ENTITIES: Final = Table[LinkRow](
    "fact_entities",
    [
        ("fact_id", "uuid", "fact_id"),
        ("entity_id", "uuid", "link.entity_id"),
        ("role", "text", "link.role"),
        ("event_id", "uuid", "event_id"),
        ("told_by", "uuid", "told_by"),
        ("type", "text", "link.type"),
    ],
)
RELATIONSHIPS: Final = Table[EvidenceRow](
    "relationships",
    [
        ("relation_id", "uuid", "relation_id"),
        *_SOURCE,
        ("subject_id", "uuid", "event.subject_id"),
        ("predicate", "text", "event.predicate"),
        ("object_id", "uuid", "event.object_id"),
        ("inverse", "text", "event.inverse"),
        ("event_id", "uuid", "event.event_id"),
        ("recorded_at", "timestamptz", "commit.decided_at"),
        ("ordinal", "int4", "event.ordinal"),
    ],
)
RELATIONSHIP_EVIDENCE: Final = Table[EvidenceRow](
    "relationship_evidence",
    [
        ("relation_id", "uuid", "relation_id"),
        ("fact_id", "uuid", "event.fact_id"),
        ("strength", "text", lambda row: getattr(row.event, "strength", None)),
        ("ended_at", "timestamptz", lambda row: getattr(row.event, "ended_at", None)),
        ("event_id", "uuid", "event.event_id"),
        ("recorded_at", "timestamptz", "commit.decided_at"),
        ("told_by", "uuid", "told_by"),
    ],
)
ENTITY_CHANGES: Final = Table[EntityChangeRow](
    "entity_changes",
    [
        ("event_id", "uuid", "event.event_id"),
        ("partition", "int4", "partition"),
        ("log_offset", "int8", "log_offset"),
        ("ordinal", "int4", "event.ordinal"),
        *_SOURCE,
        ("event", "text", "event.event"),
        ("entity_ids", "uuid[]", "event.entity_ids"),
        ("payload", "jsonb", lambda row: jsonb(row.event.model_dump_json())),
        ("decided_at", "timestamptz", "commit.decided_at"),
        ("original_id", "uuid", lambda row: getattr(row.event, "original_id", row.event.event_id)),
    ],
)
