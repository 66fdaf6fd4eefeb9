"""Search, and a context for a prompt: their arguments, and the methods of the client."""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, Unpack, cast

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, ValidationError

from mnemolog.client.base import ClientBase, Read
from mnemolog.client.inputs import ScopeArgs, When, check_time, kind_of, scope_ids, scope_of
from mnemolog.projections.context import (
    DEFAULT_BUDGET_TOKENS,
    MIN_CONFIDENCE,
    Context,
    ContextFormat,
    ContextRules,
    compose,
    facts_of_summaries,
    lasting_facts,
    summaries_of_facts,
)
from mnemolog.projections.errors import QueryError, check_unicode
from mnemolog.projections.queries.results import counted
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import (
    MAX_SCOPES,
    SHOWN,
    Findings,
    Fusion,
    Hit,
    LeftOutHits,
    LeftOutReason,
    Score,
    SearchMode,
    SearchOptions,
    Weights,
    checked_scopes,
    count_facts,
    storable_question,
)
from mnemolog.projections.search.search import search as search_facts
from mnemolog.projections.search.turn_search import (
    SHOWN_STATUSES,
    LeftOutTurns,
    TurnFindings,
    TurnHit,
    TurnStatus,
    search_turns,
)
from mnemolog.schemas.base import Fraction, Record
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.filters import BRANCHES, EVERYTHING, Filter, parse_filter
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.vector import Vector
from mnemolog.texts import NO_SELECTED, NO_TURN, no_hit_sentence, other_model_sentence

if TYPE_CHECKING:
    from mnemolog.streams.text.times import Period, PeriodEvent

MIN_SHARE: Final = 0.5
"""The share of an event's words that a fact must have to date the event, rare words counting more."""
NO_TIME: Final = "the question names no time to narrow the search to"
FoundBy = Literal["words", "vector", "both", "other"]
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


_ONE_OR_SEVERAL: Final = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)


class SearchAids(Record):
    """What a search is asked besides the options of its statements.

    `include` is what is looked for: facts unless given. `turn_status` is how turns ended that are found; rejected turns
    are found only where it says so. `when` is what becomes of the time that the question names: what happened in it
    counts more, or alone, or it is ignored. `rerank` lets a model order the hits, `variants` is how many other wordings
    of the question a model adds.
    """

    include: Annotated[tuple[Include, ...], Field(min_length=1, max_length=2), _ONE_OR_SEVERAL] = ("facts",)
    turn_status: Annotated[tuple[TurnStatus, ...], Field(min_length=1, max_length=4), _ONE_OR_SEVERAL] = SHOWN_STATUSES
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
    several = given.get("any")
    if several is None:
        return (scope_of(given, wanted),)
    # the ids of the call hold where a scope of `any` names none
    return checked_scopes([ScopeFilter(**{**scope_ids(given), **ids}) for ids in listed_scopes(several)])


def listed_scopes(several: object) -> Sequence[Mapping[str, str | None]]:
    """What is given as `any`. Raises `QueryError` that names the place of what is no scope."""
    if not isinstance(several, Sequence) or isinstance(several, str) or not 1 <= len(several) <= MAX_SCOPES:
        raise QueryError(f"any must be a list of 1 to {MAX_SCOPES} scopes, such as [{{}}, {{'run_id': 'r1'}}]")
    for place, ids in enumerate(several):
        if not isinstance(ids, Mapping) or not all(isinstance(value, str | None) for value in ids.values()):
            raise QueryError(f"any[{place}] must be an object of ids, such as {{'run_id': 'r1'}}")
        if unknown := ids.keys() - set(SCOPE_FIELDS):
            known = ", ".join(SCOPE_FIELDS)
            raise QueryError(f"any[{place}] has no id {min(map(str, unknown))!r}: choose among {known}")
    return several


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """The direction between vectors of one model, of length 1; the first one where they cancel each other out."""
    first, *others = vectors
    if not others:
        return first
    sums = [sum(column) for column in zip(*(vector.values for vector in vectors), strict=True)]
    length = math.hypot(*sums)
    return Vector.from_values(first.model, [value / length for value in sums]) if length else first


def found_by(score: Score, threshold: float) -> FoundBy:
    """Which signals would have found this hit without the others; `other` where a name in the question did."""
    by_words = score.text_score is not None
    by_vector = score.similarity is not None and score.similarity >= threshold
    if by_words and by_vector:
        return "both"
    if by_words:
        return "words"
    return "vector" if by_vector else "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first; it can be used as a sequence of them. `mode` is lexical where the query could not be embedded.

    `notice` says why, and where there is no hit, why there is none and where facts of the same user or agent are.
    `threshold` is the cosine that a fact without a word in common needed, `below_threshold` how many facts it
    kept out. With `explain`, the result is `explained` and `left_out` says by reason what else is no hit.
    Where turns were included, `turns` are the best of them, best first, and `left_out_turns` says by reason how many
    others with a word of the query are none.
    """

    hits: tuple[Hit, ...]
    mode: SearchMode
    notice: str | None = None
    threshold: float = 0.0
    below_threshold: int = 0
    left_out: Mapping[LeftOutReason, LeftOutHits] = field(default_factory=dict)
    turns: tuple[TurnHit, ...] = ()
    left_out_turns: Mapping[LeftOutTurns, int] = field(default_factory=dict)
    explained: bool = False

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def __repr__(self) -> str:
        """Each hit in a line; the id of a fact is what `explain` and `delete` take."""
        lines = [f"SearchResult, {self.mode}, {counted(len(self.hits), 'hit')}:"]
        for number, hit in enumerate(self.hits, start=1):
            status = "" if hit.fact.status == "active" else f" [{hit.fact.status}]"
            lines.append(f"  {number}. {hit.fact.text}{status} ({hit.fact.fact_id})")
        if self.turns:
            lines.append(f"  {counted(len(self.turns), 'turn')}:")
        lines += [f"  {number}. {turn.excerpt} ({turn.turn_id})" for number, turn in enumerate(self.turns, start=1)]
        if self.notice:
            lines.append(f"  {self.notice}")
        return "\n".join(lines)


def with_cut(left_out: Mapping[LeftOutReason, LeftOutHits], cut: Sequence[Hit]) -> dict[LeftOutReason, LeftOutHits]:
    """`left_out` with the hits that are cut off behind `limit`, which are the best of the facts beyond it."""
    before = left_out.get("over_limit", LeftOutHits(facts=0, first=()))
    if not cut:
        return {**left_out}
    first = (*(hit.fact.fact_id for hit in cut), *before.first)[:SHOWN]
    return {**left_out, "over_limit": LeftOutHits(facts=before.facts + len(cut), first=first)}


class SearchMixin(ClientBase):
    """Search in the tables, and what is known as a text for a prompt. No method needs Kafka."""

    @Read
    async def search(self, query: str, **arguments: Unpack[SearchArgs]) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        `SearchArgs` says what may be asked besides: the scope, `limit`, `threshold`, `filters`, `state`, times, several
        scopes at once, how signals are fused, and whether turns are included, which are `turns` of the result. `notice`
        of it says why there is no hit.
        Pending facts are found as well: `status` of the fact says so. The client needs the embedder that the stages
        have (`MNEMOLOG_EMBEDDING_PROVIDER` and `_MODEL`): vectors of another one find nothing by meaning. Without a
        vector the search goes by words; `mode` and `notice` of the result say so.
        """
        return await self._search(query, arguments)

    @Read
    async def context(
        self,
        query: str | None,
        *,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        format: ContextFormat = "markdown",  # noqa: A002 - as it is called everywhere
        count_tokens: Callable[[str], int] | None = None,
        min_confidence: float | None = None,
        doubtful: bool = True,
        summaries: bool = False,
        **arguments: Unpack[ContextArgs],
    ) -> Context:
        """What is known of one scope, or of those in `any`, and matters to `query`: a text of at most `budget_tokens`.

        First what must be respected (hard preferences and health), then the current task, what the search finds, and
        soft preferences. Where the budget is tight, facts that are pending, unresolved, old, or below `min_confidence`
        (that of the settings, or 0.5, unless given) are left out first; with `doubtful=False` in any case. Without a
        query (None) nothing is searched.
        `count_tokens` is the model's tokenizer, such as `lambda text: len(encoding.encode(text))`; without it tokens
        are estimated from above. Put `messages` of the result into the prompt, and give `recalled` of it to `add` with
        the turn that comes of it. With `summaries` the summaries of the entities that most of these facts name, up to
        three, stand behind the facts where there is room; with `doubtful=False` none that has a doubtful fact.
        """
        if min_confidence is None:
            default = self._settings.min_confidence
            min_confidence = MIN_CONFIDENCE if default is None else default
        if budget_tokens < 1 or not 0 <= min_confidence <= 1:
            raise QueryError("budget_tokens must be at least 1, and min_confidence from 0 to 1")
        if count_tokens is not None and not callable(count_tokens):
            raise QueryError(f"count_tokens must be a function from a text to a number, not {kind_of(count_tokens)}")
        if count_tokens is not None and not isinstance(number := count_tokens(""), Integral):
            raise QueryError(f"count_tokens must return a whole number of tokens, not {kind_of(number)}")
        within, at = search_scopes(arguments), self._now()
        lasting = await self._query(lasting_facts, within, at)
        asked = cast("SearchArgs", {**arguments, "min_confidence": 0.0})
        found = None if query is None else await self._search(query, asked)
        rules = ContextRules(
            budget_tokens=budget_tokens,
            format=format,
            count_tokens=count_tokens,
            min_confidence=min_confidence,
            doubtful=doubtful,
        )
        hits = [hit.fact for hit in found or ()]
        about = await self._query(summaries_of_facts, [*lasting, *hits]) if summaries else []
        summed_up = await self._query(facts_of_summaries, about, at) if about and not doubtful else []
        context = compose(lasting, hits, rules, at=at, summaries=about, summed_up=summed_up)
        from mnemolog.client.metrics import CONTEXT_LEFT_OUT, CONTEXT_TOKENS  # noqa: PLC0415 - with Prometheus

        CONTEXT_TOKENS.observe(context.tokens)
        for reason, number in context.left_out_counts.items():
            CONTEXT_LEFT_OUT.labels(reason=reason).inc(number)
        return replace(context, notice=found.notice) if found and found.notice else context

    async def _search(self, query: str, arguments: SearchArgs) -> SearchResult:
        from mnemolog.client.metrics import SEARCH_HITS, search_phase  # noqa: PLC0415 - as in `context`

        asked = search_options(arguments)
        aids, within = SearchAids.read(arguments, asked.filters), search_scopes(arguments, asked.filters)
        check_unicode(query)
        question = storable_question(query)
        models = self._connections.search_models
        wordings, no_wordings = await models.wordings(query, aids.variants)
        words = "\n".join((query, *wordings))
        vector, no_vector = None, None
        if aids.facts:
            with search_phase("embed"):
                vectors, fault = await models.embed(query, *wordings)
            vector = mean_vector(vectors) if vectors else None
            if fault:
                no_vector = (
                    f"without the vectors of some wordings: {fault}" if vectors else f"full-text search only: {fault}"
                )
        asked, no_time = await self._with_asked_period(query, asked, aids.when, within)
        turns = TurnFindings()
        if aids.turns:
            with search_phase("turns"):
                statuses = aids.turn_status
                turns = await self._query(search_turns, within, words, asked, at=self._now(), statuses=statuses)
        if asked.threshold is None and vector is not None:
            asked = asked.model_copy(update={"threshold": models.floor_for(vector)})
        limit = asked.limit
        asked = asked.model_copy(update={"limit": max(limit, RERANKED if aids.rerank else limit)})
        found, no_hit, model = Findings(), "", vector.model if vector else None
        if aids.facts:
            with search_phase("sql"):
                found = await self._query(search_facts, within, words, vector, asked, at=self._now())
                if not found.hits and (len(within) > 1 or asked.selects):
                    no_hit = NO_SELECTED
                elif not found.hits:
                    no_hit = no_hit_sentence(await self._query(count_facts, within[0], at=self._now()), model)
                elif model and (others := {hit.fact.embedding_model for hit in found.hits} - {model}):
                    no_hit = f"found {other_model_sentence(model, sorted(others))}"
        least = aids.min_confidence if aids.min_confidence is not None else self._settings.min_confidence or 0.0
        sure = tuple(hit for hit in found.hits if hit.fact.confidence >= least)
        doubted = counted(len(found.hits) - len(sure), "hit")
        no_doubt = f"{doubted} with a confidence below {least:g} left out" if len(sure) < len(found.hits) else None
        hits, no_order = await models.rerank(question, sure) if aids.rerank else (sure, None)
        for hit in hits[:limit]:
            SEARCH_HITS.labels(found_by=found_by(hit.score, asked.threshold or 0.0)).inc()
        no_turn = NO_TURN if aids.turns and not turns.turns else None
        notices = (no_wordings, no_vector, no_time, no_order, no_hit, no_doubt, no_turn)
        return SearchResult(
            hits=hits[:limit],
            mode="hybrid" if vector else "lexical",
            notice="; ".join(filter(None, notices)) or None,
            threshold=asked.threshold or 0.0,
            below_threshold=found.below_threshold,
            explained=asked.explain,
            left_out=with_cut(found.left_out, hits[limit:]) if asked.explain else {},
            turns=turns.turns,
            left_out_turns=turns.left_out,
        )

    async def _with_asked_period(
        self, question: str, options: SearchOptions, when: WhenAsked, within: Sequence[ScopeFilter]
    ) -> tuple[SearchOptions, str | None]:
        """The options with the period that the question names; or as they are, with a notice if need be.

        A period may be named by an event ("after the wedding"): the event is dated by the fact that has most of its
        words. Raises `QueryError` where the search is to be narrowed and the package that reads times is missing.
        """
        from mnemolog.client.metrics import search_phase  # noqa: PLC0415 - as in `context`

        if when == "ignore" or options.period is not None:
            return options, None
        at = self._now()

        def read() -> "tuple[Period | None, PeriodEvent | None]":
            from mnemolog.streams.text.times import asked_event, asked_period  # noqa: PLC0415 - needs an extra

            period = asked_period(question, at)
            return period, None if period else asked_event(question)

        try:
            period, event = await asyncio.to_thread(read)  # the first date loads the words of six languages
        except ImportError as error:
            if when == "boost":
                return options, None
            raise QueryError(f"times of questions cannot be read ({error}): pip install 'mnemolog[offline]'") from error
        if event is not None:
            with search_phase("event"):
                best_alone = options.model_copy(update={"limit": 1})
                found = await self._query(search_facts, within, event.words, None, best_alone, at=at)
            if found.hits and (found[0].score.text_score or 0) >= MIN_SHARE:
                period = event.period_from(found[0].fact.event_time or found[0].fact.true_from)
        if period is None or period[0] >= period[1]:
            return options, NO_TIME if when == "narrow" else None
        return options.model_copy(update={"period": period, "only_period": when == "narrow"}), None
