"""Hybrid search in facts.

Its options, the one statement that answers a question by vector and by words, and the hits with their scores.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, LiteralString, Self, get_args
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed
from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, ValidationError, model_validator

from mnemolog.projections.database import fetch_long, fetch_rows
from mnemolog.projections.errors import QueryError
from mnemolog.projections.filter_condition import filter_condition, status_at
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import (
    ANY_OR_NONE,
    ScopeFilter,
    fact_columns,
    read_query,
    scope_condition,
)
from mnemolog.projections.sql import queries
from mnemolog.schemas.base import Record, Timestamp
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.facts import OPEN_STATUSES, FactStatus
from mnemolog.schemas.filters import EVERYTHING, Filter, parse_filter
from mnemolog.schemas.vector import Vector

MAX_QUERY_CHARACTERS: Final = 10_000
MAX_QUERY_WORDS: Final = 256


def storable_question(text: str) -> str:
    """What Postgres can hold of `text`: no U+0000, no unpaired surrogate, at most 10 000 characters in whole words.

    Raises `QueryError` for a text without any character.
    """
    asked = text[:MAX_QUERY_CHARACTERS]
    if len(text) > MAX_QUERY_CHARACTERS and not text[MAX_QUERY_CHARACTERS].isspace():
        asked = re.sub(r"(?<=\s)\S+\Z", "", asked)  # half a word would be another word
    shown = asked.replace("\x00", " ").encode("utf-8", "replace").decode().strip()
    if not shown:
        raise QueryError("the text to search for is empty: say in a few words what to look for, or list the facts")
    return shown


Fusion = Literal["rrf", "weighted"]
FUSIONS: Final = get_args(Fusion)
MAX_TOP_K: Final = 100
DEFAULT_RRF_K: Final = 10
"""The constant of reciprocal rank fusion. On real dialogues 5 to 10 finds more than the customary 60."""

Weight = Annotated[StrictFloat, Field(ge=0, le=1)]


class Weights(Record):
    """How much each signal counts, 0 to 1: 0 switches it off.

    `vector`, `text`, `names`, `recency` and `times` are summed; the fusion `weighted` divides them by
    their sum, so that a score is a number of 0 to about 1. `neighbours` is what a word of the question counts that a
    fact does not have, but what was said just before or after it, as a share of a word of its own. `importance` and
    `confidence` multiply the sum: with .05 the greatest importance counts 2.5 % more than the middle one, and the least
    2.5 % less.
    """

    vector: Weight
    text: Weight
    names: Weight
    recency: Weight
    times: Weight
    neighbours: Weight = 0.0
    importance: Weight = 0.05
    confidence: Weight = 0.05


DEFAULT_WEIGHTS: Final[Mapping[Fusion, Weights]] = MappingProxyType(
    {
        "rrf": Weights.model_construct(vector=1.0, text=1.0, names=0.2, recency=0.0, times=0.2, neighbours=0.3),
        "weighted": Weights.model_construct(vector=0.45, text=0.45, names=0.2, recency=0.1, times=0.1, neighbours=0.6),
    }
)
"""Measured on real dialogues (docs/decisions, record 12)."""
FIELD_WEIGHTS: Final = (1.0, 1.0, 1.0, 0.5)
"""What a word counts in the text of a fact, its search text, its key and value, and its excerpt.

The last one is measured (docs/decisions, record 12); nothing measured tells the others apart.
"""
_ADDED: Final = ("vector", "text", "names", "recency", "times")
DEFAULT_FUSION: Final[Fusion] = "weighted"


class SearchOptions(Record):
    """What a search takes besides its question and its scope. It refuses what it does not know.

    `threshold` is the cosine from which a fact without a word in common is a hit: None for that of the embedding
    model. `filters` are conditions on facts. `state` names the statuses that are found; without it they are active
    and pending ones. `believed_at` and `true_at` ask for what was known then, and true then. `period` is a time
    that the question names, from its first instant up to, but not at, its last: what happened in it counts more,
    and with `only_period` nothing else is found. `ranks` asks for the rank of each hit by each signal, which the
    fusion `rrf` has anyway, and `explain` for them and for what was left out and why. `neighbours` is how many
    facts before and after each hit are given with it, of what was said within an hour in its scope. Of facts with
    one subject and key those beyond the best `per_matter` come after all others. `half_life_days` is the age at
    which the recency of a fact is a half.
    """

    limit: Annotated[StrictInt, Field(ge=1, le=MAX_TOP_K)] = 20
    threshold: Annotated[StrictFloat, Field(ge=0, le=1)] | None = None
    filters: Annotated[Filter, BeforeValidator(parse_filter)] = EVERYTHING
    state: Annotated[
        tuple[FactStatus, ...] | None,
        Field(min_length=1, max_length=7),
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    ] = None
    believed_at: Timestamp | None = None
    true_at: Timestamp | None = None
    period: tuple[Timestamp, Timestamp] | None = None
    only_period: StrictBool = False
    fusion: Fusion = DEFAULT_FUSION
    neighbours: Annotated[StrictInt, Field(ge=0, le=10)] = 0
    per_matter: Annotated[StrictInt, Field(ge=1, le=MAX_TOP_K)] = 3
    explain: StrictBool = False
    ranks: StrictBool = False
    rrf_k: Annotated[StrictInt, Field(ge=1, le=1000)] = DEFAULT_RRF_K
    half_life_days: Annotated[StrictFloat, Field(ge=0.001, le=36_500)] = 365.0
    weights: Weights = DEFAULT_WEIGHTS[DEFAULT_FUSION]

    @model_validator(mode="before")
    @classmethod
    def _complete_weights(cls, given: Any) -> Any:
        """What is not said of the weights is as the fusion has it."""
        if not isinstance(given, Mapping):
            return given
        fusion, weights = given.get("fusion", DEFAULT_FUSION), given.get("weights") or {}
        if fusion not in FUSIONS or not isinstance(weights, Mapping):
            return given
        return {**given, "weights": {**DEFAULT_WEIGHTS[fusion].model_dump(), **weights}}

    @model_validator(mode="after")
    def _period_is_one(self) -> Self:
        if self.only_period and self.period is None:
            raise ValueError("only_period needs a period: from when, and up to when")
        if self.period and self.period[0] >= self.period[1]:
            raise ValueError("period must end after it begins")
        return self

    @property
    def is_ranked(self) -> bool:
        """Whether facts are ranked by each signal alone."""
        return self.ranks or self.explain or self.fusion == "rrf"

    @property
    def travels(self) -> bool:
        """Whether it asks for another time than now."""
        return self.believed_at is not None or self.true_at is not None

    @property
    def states(self) -> tuple[FactStatus, ...] | None:
        """The statuses that count; None where the time or the filter alone decides."""
        if self.state is not None:
            return self.state
        return None if self.travels or self.filters.asks_about_state else tuple(sorted(OPEN_STATUSES))

    @property
    def shares(self) -> dict[str, float]:
        """The weights as the statement takes them: those that `weighted` adds up as parts of 1."""
        weights = self.weights.model_dump()
        whole = sum(weights[name] for name in _ADDED) if self.fusion == "weighted" else 1.0
        return {name: weight / (whole or 1.0) if name in _ADDED else weight for name, weight in weights.items()}

    @property
    def selects(self) -> bool:
        """Whether it asks for other facts than all that are current."""
        return self.travels or self.only_period or self.state is not None or self.filters != EVERYTHING

    @property
    def narrows(self) -> bool:
        """Whether it asks about more than the best facts that the indexes of a large scope hold."""
        return self.selects or self.explain or self.neighbours > 0

    def times(self, now: datetime) -> tuple[datetime | None, datetime]:
        """When it was known (None for now) and when it was true. The one that is not given is the other one, or now."""
        if not self.travels:
            return None, now
        believed_at = self.believed_at or now
        return believed_at, self.true_at or believed_at

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Options from what a caller wrote. Raises `QueryError` that names the place of each fault."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise QueryError(describe_faults(error)) from error


SearchMode = Literal["hybrid", "lexical"]
LeftOutReason = Literal["below_threshold", "outside_period", "same_matter", "over_limit", "other_state"]
"""`other_state` are facts with a word of the question that are in no state that was asked for, or did not hold then."""
SHOWN: Final = 5
"""How many ids are given of the facts that were left out for a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Why a hit has its rank: `total` = (the sum of the parts) times `prior`.

    A rank is the place by one signal alone; it is there with the fusion `rrf` and with `ranks`. `similarity` is the
    cosine, -1..1; `text_score`, 0..1, is the share of the question's words that the fact has, where a word weighs the
    more, the fewer facts have it; `neighbours_part` is for words that were said just before or after it alone. A part
    is its weight / (k + rank) with the fusion `rrf`, and its share of all weights times a number of 0 to 1 with
    `weighted`. `prior` is what importance and confidence make of the sum, about 1.
    """

    mode: SearchMode
    total: float
    vector_rank: int | None
    similarity: float | None
    vector_part: float
    text_rank: int | None
    text_score: float | None
    text_part: float
    names_part: float = 0.0
    recency_part: float = 0.0
    times_part: float = 0.0
    neighbours_part: float = 0.0
    prior: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fact that was found, with its score.

    `neighbours` are the facts that were asked for with it: what was said just before and after it, in that order.
    `messages` are those of the turn that it came from, with `explain`; None for a fact of a command.
    """

    fact: Fact
    score: Score
    neighbours: tuple[Fact, ...] = ()
    messages: Sequence[Mapping[str, Any]] | None = None

    def __repr__(self) -> str:
        near = "" if self.score.similarity is None else f", similarity={self.score.similarity:.2f}"
        return f"Hit({self.fact.text!r}, status={self.fact.status!r}{near}, fact_id='{self.fact.fact_id}')"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutHits:
    """How many facts were left out for a reason, and the ids of the best five of them."""

    facts: int
    first: tuple[UUID, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Hits, best first. `below_threshold` counts the facts that only their low similarity kept out.

    `left_out` has, where it was asked for, by reason what else is no hit.
    """

    hits: tuple[Hit, ...] = ()
    below_threshold: int = 0
    left_out: Mapping[LeftOutReason, LeftOutHits] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCount:
    """How many facts a scope holds, and how many stand beside it: in scopes that name its ids and one more.

    `ids` are the ids that those beside it name, `models` the embedding models of those within.
    """

    within: int
    beside: int
    ids: tuple[str, ...]
    models: tuple[str, ...] = ()


async def count_facts(conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, at: datetime) -> ScopeCount:
    """Count the facts that hold at `at` in `scope`, and those that it misses because it leaves out an id."""
    left_out = [name for name, value in scope.parameters.items() if not value]
    wider = {**scope.parameters, **dict.fromkeys(left_out, ANY_OR_NONE)}
    rows = await fetch_rows(conn, dict, read_query("search", "count_by_ids", scope=wider), {**wider, "at": at})
    found = [([name for name in left_out if name in row["ids"]], row["facts"]) for row in rows]
    models = {model for row, (ids, _) in zip(rows, found, strict=True) if not ids for model in row["models"]}
    return ScopeCount(
        within=sum(facts for ids, facts in found if not ids),
        beside=sum(facts for ids, facts in found if ids),
        ids=tuple(name for name in left_out if any(name in ids for ids, _ in found)),
        models=tuple(sorted(models)),
    )


_NOW: Final[LiteralString] = "%(at)s"


def search_query(
    scopes: Sequence[ScopeFilter],
    options: SearchOptions,
    *,
    indexed: bool = False,
) -> tuple[SQL | Composed, dict[str, Any]]:
    """The statement of a search and the parameters of its filter.

    Several scopes come as arrays. `indexed` gives the one for scopes that have indexes of their own.
    """
    if indexed:
        source = "from_indexes"
    elif options.travels:
        source = "as_of"
    else:
        source = "scanned" if options.state is None and not options.filters.asks_about_state else "in_states"
    wildcards = () if len(scopes) > 1 else tuple(scopes[0].wildcards.items())
    is_filtered = options.filters != EVERYTHING
    query = _composed(
        source=source,
        wildcards=wildcards,
        is_filtered=is_filtered,
        is_ranked=options.is_ranked,
        has_neighbours=options.weights.neighbours > 0 and not indexed,
        shows_neighbours=options.neighbours > 0,
        is_explained=options.explain,
    )
    if not is_filtered:
        return query, {}
    condition, parameters = filter_condition(options.filters)
    wanted, _ = filter_condition(options.filters, as_active=True)
    return query.format(filter=condition, wanted=wanted), parameters


def scope_parameters(scopes: Sequence[ScopeFilter]) -> Mapping[str, Any]:
    """The ids of one scope, or for each id those of all scopes as an array, and their one tenant."""
    if len(scopes) == 1:
        return scopes[0].parameters
    rows = [one.parameters for one in scopes]
    arrays = {f"{name}s": [row[name] for row in rows] for name in rows[0] if name != "tenant"}
    return {"tenant": rows[0]["tenant"], **arrays}


@cache
def _composed(
    *,
    source: str,
    wildcards: tuple[tuple[str, str], ...],
    is_filtered: bool,
    is_ranked: bool,
    has_neighbours: bool,
    shows_neighbours: bool,
    is_explained: bool,
) -> SQL:
    """One text for each kind of search, with `{filter}` left open where there is one; without wildcards for several."""
    parts, is_several = queries("search"), not wildcards
    scope = parts["of_named_scope"] if is_several else scope_condition(dict(wildcards))
    of_any = parts["of_any_scope"] if is_several else scope
    state_at = queries("facts")["state_at"]
    condition, wanted = (SQL("{filter}"), SQL("{wanted}")) if is_filtered else (SQL("true"), SQL("true"))
    live = parts[source].format(filter=condition, scope=scope, state_at=state_at, state=status_at(SQL(_NOW)))
    if is_several:
        of_scopes = parts["of_scopes"].format(live=live)
        live = parts["facts_of_scopes"].format(of_scopes=of_scopes, of_any=of_any, wanted=wanted)
    travels = source == "as_of"
    query = parts["hybrid"].format(
        live=live,
        state=parts["hit_state"].format(state_at=state_at) if travels else SQL(""),
        whole=parts["indexed_facts" if source == "from_indexes" else "all_facts"],
        conversation=parts["conversation"] if has_neighbours or shows_neighbours else SQL(""),
        neighbours=parts["neighbours" if has_neighbours else "no_neighbours"],
        shown=parts["with_neighbours" if shows_neighbours else "hits_alone"],
        left_out=parts["left_out"].format(scope=of_any, filter=condition)
        if is_explained
        else parts["nothing_left_out"],
        messages=parts["messages" if is_explained else "no_messages"],
        ranks=parts["ranks" if is_ranked else "no_ranks"],
        route=parts["any_route" if is_several else "by_indexes_or_not"],
        fact=fact_columns(state="s" if travels else "f", at=_NOW),
    )
    return SQL(query.as_string())


CANDIDATES_PER_HIT: Final = 8
"""How many facts the vector index of a large scope gives for each hit: other signals change their order."""
MIN_CANDIDATES: Final = 400
"""The fewest facts that each signal of an index gives."""
MAX_SCOPES: Final = 20
DEFAULT_OPTIONS: Final = SearchOptions.model_construct()  # see `EVERYTHING`


async def search(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter | Sequence[ScopeFilter],
    text: str,
    vector: Vector | None,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    at: datetime,
) -> Findings:
    """The best facts for `text` that hold at `at`, or begin later, which is marked; best first.

    One that waits for a confirmation is found too, behind an active one of equal rank. `vector` is
    the embedding of `text`; facts embedded by another model are found by their words alone. A fact without a word in
    common is a hit from the similarity `threshold` on, at 0 or None whatever it is. Without a vector the search is
    lexical, which each score says. Any text is taken as plain words; of more than 10 000 characters the first ones
    count. Several scopes are those of one tenant, each exactly as it is named.
    Raises `QueryError` for a text without any character, or scopes that cannot be searched together.
    """
    scopes = checked_scopes(scope)
    believed_at, true_at = options.times(at)
    parameters = {
        **scope_parameters(scopes),
        **{f"{name}_weight": weight for name, weight in options.shares.items()},
        "text": storable_question(text),
        "at": true_at,
        "believed_at": believed_at,
        "states": list(options.states) if options.states else None,
        "period_from": options.period[0] if options.period else None,
        "period_to": options.period[1] if options.period else None,
        "only_period": options.only_period,
        "vector": vector,
        "model": vector.model if vector else None,
        "dimensions": vector.dimensions if vector else None,
        "threshold": options.threshold or 0.0,
        "fusion": options.fusion,
        "rrf_k": options.rrf_k,
        "half_life_days": options.half_life_days,
        "candidates": max(MIN_CANDIDATES, CANDIDATES_PER_HIT * options.limit),
        "max_words": MAX_QUERY_WORDS,
        "field_weights": list(FIELD_WEIGHTS),
        "top_k": options.limit,
        "neighbours": options.neighbours,
        "ranked": 2 * options.limit,
        "per_matter": options.per_matter,
    }
    # Facts are found by a scan or by indexes, in turn until a statement answers; None is a scan in any case. The third
    # one is for a scope that has lost its indexes between the first two.
    may_be_indexed = len(scopes) == 1 and scopes[0].is_exact and not options.narrows
    for indexed in (False, True, False) if may_be_indexed else (None,):
        query, of_filter = search_query(scopes, options, indexed=bool(indexed))
        if rows := await fetch_long(conn, query, {**parameters, **of_filter, "indexed": indexed}):
            return _findings(rows, "hybrid" if vector else "lexical")
    return Findings()


def checked_scopes(scope: ScopeFilter | Sequence[ScopeFilter]) -> tuple[ScopeFilter, ...]:
    """The scopes of one search, each once. Raises `QueryError` for too many, and for scopes that do not go together."""
    if isinstance(scope, ScopeFilter):
        return (scope,)
    scopes = tuple(dict.fromkeys(scope))
    if not 1 <= len(scopes) <= MAX_SCOPES:
        raise QueryError(f"a search has 1 to {MAX_SCOPES} scopes, not {len(scopes)}: name those that matter")
    if len({one.tenant for one in scopes}) > 1:
        raise QueryError("the scopes of one search belong to one tenant: search in each tenant by itself")
    if len(scopes) > 1 and not all(one.is_exact for one in scopes):
        raise QueryError("one of several scopes has a wildcard: name each id, or leave it out, instead of '*'")
    return scopes


_SCORE_COLUMNS: Final = tuple(one.name for one in fields(Score) if one.name != "mode")
_OWN_COLUMNS: Final = frozenset({*_SCORE_COLUMNS, "below_threshold", "left_out", "hit_id", "step", "messages"})


def _findings(rows: Sequence[Mapping[str, Any]], mode: SearchMode) -> Findings:
    """The first row is there even where nothing was found; a hit and its neighbours each have the score of the hit."""
    hits = []
    for _, group in groupby([row for row in rows if row["fact_id"] is not None], key=itemgetter("hit_id")):
        of_hit = {row["step"]: row for row in group}
        facts = {step: Fact(**{name: row[name] for name in row.keys() - _OWN_COLUMNS}) for step, row in of_hit.items()}
        score = Score(mode=mode, **{name: of_hit[0][name] for name in _SCORE_COLUMNS})
        fact, messages = facts.pop(0), of_hit[0]["messages"]
        hits.append(Hit(fact=fact, score=score, neighbours=tuple(facts.values()), messages=messages))
    return Findings(
        hits=tuple(hits),
        below_threshold=rows[0]["below_threshold"],
        left_out={
            reason: LeftOutHits(facts=one["facts"], first=tuple(map(UUID, one["first"])))
            for reason, one in (rows[0]["left_out"] or {}).items()
        },
    )
