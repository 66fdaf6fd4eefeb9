"""Arguments of a search and of a context besides the question: scopes, what is searched, options and models."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, ValidationError

from mnemolog.client.inputs import ScopeArgs, When, check_time, scope_ids, scope_of
from mnemolog.errors import QueryError
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import MAX_SCOPES, Fusion, SearchOptions, Weights, checked_scopes
from mnemolog.projections.search.turn_search import SHOWN_STATUSES, TurnStatus
from mnemolog.schemas.base import Fraction, Record
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.filters import BRANCHES, EVERYTHING, Filter, parse_filter
from mnemolog.schemas.scope import SCOPE_FIELDS

Include = Literal["facts", "turns"]
WhenAsked = Literal["boost", "narrow", "ignore"]
MAX_VARIANTS: Final = 5
RERANKED: Final = 50
"""Hits that a reranker orders at the most."""
_FACT_ARGUMENTS: Final = (
    "threshold",
    "state",
    "true_at",
    "per_matter",
    "fusion",
    "rrf_k",
    "ranks",
    "rerank",
    "neighbours",
)
_TURN_FIELDS: Final = frozenset(
    {*BRANCHES, "user_id", "agent_id", "app_id", "run_id", "source_id", "speaker", "metadata"}
    | {"created_at", "event_time", "structured_attributes"}
)


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class SearchAids(Record):
    """What a search is asked besides the options of its statements.

    `include` is what is looked for: facts unless given. `turn_status` is how turns ended that are found; rejected turns
    are found only where it says so. `when` is what becomes of the time that the question names: what happened in it
    counts more, or alone, or it is ignored. `rerank` lets a model order the hits, `variants` is how many other wordings
    of the question a model adds.
    """

    include: Annotated[tuple[Include, ...], Field(min_length=1, max_length=2), BeforeValidator(_as_list)] = ("facts",)
    turn_status: Annotated[tuple[TurnStatus, ...], Field(min_length=1, max_length=4), BeforeValidator(_as_list)] = (
        SHOWN_STATUSES
    )
    when: WhenAsked = "boost"
    rerank: StrictBool = False
    variants: Annotated[StrictInt, Field(ge=0, le=MAX_VARIANTS)] = 0
    min_confidence: Fraction | None = None

    @property
    def facts(self) -> bool:
        return "facts" in self.include

    @property
    def turns(self) -> bool:
        return "turns" in self.include

    @classmethod
    def read(cls, given: Mapping[str, Any], wanted: Filter) -> Self:
        """The aids among the arguments of a search with the filter `wanted`.

        Raises `QueryError` that names the place of each fault, and where turns alone are looked for by what only facts
        have.
        """
        try:
            asked = cls.model_validate({name: given[name] for name in cls.model_fields if given.get(name) is not None})
        except ValidationError as error:
            raise QueryError(describe_faults(error)) from error
        if not asked.facts:
            named = [name for name in _FACT_ARGUMENTS if given.get(name) not in (None, False)]
            if of_facts := named or [f"filters.{name}" for name in sorted(_fields_of(wanted) - _TURN_FIELDS)]:
                verb = "is" if len(of_facts) == 1 else "are"
                raise QueryError(
                    f"{', '.join(of_facts)} {verb} about facts, and only turns are searched: include facts too, or "
                    "leave it out"
                )
        if not asked.turns and given.get("turn_status") is not None:
            raise QueryError("turn_status is about turns: add include=['facts', 'turns'], or leave it out")
        return asked


def _fields_of(wanted: Filter) -> set[str]:
    """The fields that a filter and its branches name."""
    inner = (part for name in BRANCHES for part in getattr(wanted, name) or ())
    return set(wanted.model_fields_set).union(*map(_fields_of, inner))


class SearchArgs(ScopeArgs, total=False):
    """What a search takes besides its question.

    `limit` is the most hits, 1 to 100, 20 unless given. A fact that has no word in common with the query is a hit from
    the cosine similarity `threshold` on: that of the embedding model unless it is given, 0 for none. Facts whose
    confidence is below `min_confidence` (that of the settings, or 0, unless given) are left out. `filters` are
    conditions as `facts` takes them. `state` is one status or several: active and pending ones unless given.
    `believed_at` asks for what was known then, `true_at` for what was true then; each is the other one unless given.
    `any` has up to 20 scopes that are searched together, each completed by the ids of the call. `fusion` is `rrf`
    (with `rrf_k`) or `weighted`; `weights` change how much each signal counts, `half_life_days` how soon recency
    fades. `neighbours` is how many facts before and after each hit are given with it, up to 10, of what was said
    within an hour in its scope: `hit.neighbours`. `period` is a time that the question names, from and to: what
    happened in it counts more, and with `only_period` nothing else is found. `ranks` asks for the rank of each hit by
    each signal, `explain` also for what was left out and why. Of facts with one subject and key those beyond the best
    `per_matter` (3) come after all others. With `rerank` a model orders the first 50 candidates; `variants` is how
    many other wordings of the question a model adds, up to 5. Where the model is away the search goes on without it,
    and `notice` says so. `when` is what the time does that the question names, unless `period` is given: `boost`
    (unless given) or `narrow` to it, or `ignore`. `include` is `facts`, `turns` or both: turns are found by what
    people said in them, and are a list of their own. `turn_status` says how those turns ended: `rejected` ones are
    found only where it names them.
    """

    limit: int
    threshold: float | None
    min_confidence: float | None
    filters: Mapping[str, Any] | None
    state: FactStatus | Sequence[FactStatus] | None
    believed_at: When | None
    true_at: When | None
    any: Sequence[Mapping[str, str | None]] | None
    period: Sequence[When] | None
    only_period: bool
    neighbours: int
    per_matter: int
    explain: bool
    ranks: bool
    fusion: Fusion
    rrf_k: int
    half_life_days: float
    weights: Weights | Mapping[str, float] | None
    rerank: bool
    variants: int
    when: WhenAsked
    include: Include | Sequence[Include]
    turn_status: TurnStatus | Sequence[TurnStatus]


class ContextArgs(ScopeArgs, total=False):
    """What the search of a context takes: `limit`, `threshold` and `any` as `SearchArgs` has them."""

    limit: int
    threshold: float | None
    any: Sequence[Mapping[str, str | None]] | None


_NOT_OPTIONS: Final = frozenset({*SCOPE_FIELDS, "any", *SearchAids.model_fields})


def search_options(given: SearchArgs) -> SearchOptions:
    """The options among the arguments. Raises `QueryError` that names the place of each fault."""
    asked = {
        name: value.model_dump() if isinstance(value, Weights) else value
        for name, value in given.items()
        if name not in _NOT_OPTIONS and value is not None
    }
    if isinstance(period := asked.get("period"), Sequence) and not isinstance(period, str):
        asked["period"] = tuple(check_time(f"period.{place}", one, QueryError) for place, one in enumerate(period))
    return SearchOptions.read({**asked, "filters": parse_filter(asked.get("filters", EVERYTHING))})


def search_scopes(given: SearchArgs | ContextArgs, wanted: Filter = EVERYTHING) -> tuple[ScopeFilter, ...]:
    """The scopes to search in; where no id is named, those of the filter.

    Raises `QueryError` for scopes that cannot be searched together.
    """
    several: object = given.get("any")
    if several is None:
        return (scope_of(given, wanted),)
    if not isinstance(several, Sequence) or isinstance(several, str) or not 1 <= len(several) <= MAX_SCOPES:
        raise QueryError(f"any must be a list of 1 to {MAX_SCOPES} scopes, such as [{{}}, {{'run_id': 'r1'}}]")
    scopes = []
    for place, ids in enumerate(several):  # the ids of the call hold where a scope of `any` names none
        if not isinstance(ids, Mapping) or not all(isinstance(value, str | None) for value in ids.values()):
            raise QueryError(f"any[{place}] must be an object of ids, such as {{'run_id': 'r1'}}")
        if unknown := ids.keys() - set(SCOPE_FIELDS):
            known = ", ".join(SCOPE_FIELDS)
            raise QueryError(f"any[{place}] has no id {min(map(str, unknown))!r}: choose among {known}")
        scopes.append(ScopeFilter(**{**scope_ids(given), **ids}))
    return checked_scopes(scopes)
