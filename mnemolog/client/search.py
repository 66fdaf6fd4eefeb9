"""The methods of the client that search and make a context for a prompt."""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from numbers import Integral
from typing import TYPE_CHECKING, Final, Literal, Unpack, cast

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.base import ClientBase, Read
from mnemolog.client.inputs import kind_of
from mnemolog.client.metrics import CONTEXT_LEFT_OUT, CONTEXT_TOKENS, SEARCH_HITS, search_phase
from mnemolog.client.search_arguments import (
    RERANKED,
    ContextArgs,
    SearchAids,
    SearchArgs,
    WhenAsked,
    search_options,
    search_scopes,
)
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
    SHOWN,
    Findings,
    Hit,
    LeftOutHits,
    LeftOutReason,
    Score,
    SearchMode,
    SearchOptions,
    count_facts,
    storable_question,
)
from mnemolog.projections.search.search import search as search_facts
from mnemolog.projections.search.turn_search import LeftOutTurns, TurnFindings, TurnHit, search_turns
from mnemolog.schemas.vector import Vector
from mnemolog.texts import NO_SELECTED, NO_TURN, no_hit_sentence

if TYPE_CHECKING:
    from mnemolog.streams.text.times import Period, PeriodEvent

MIN_SHARE: Final = 0.5
"""The share of an event's words that a fact must have to date the event, rare words counting more."""
NO_TIME: Final = "the question names no time to narrow the search to"
FoundBy = Literal["words", "vector", "both", "other"]


def joined_words(question: str, wordings: Sequence[str]) -> str:
    """The text whose words are looked for."""
    return "\n".join((question, *wordings))


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """The direction between vectors of one model, of length 1; the first one where they cancel each other out."""
    first, *others = vectors
    if not others:
        return first
    sums = [sum(column) for column in zip(*(vector.values for vector in vectors), strict=True)]
    length = math.hypot(*sums)
    return Vector.from_values(first.model, [value / length for value in sums]) if length else first


def count_hits(hits: Iterable[Hit], threshold: float) -> None:
    """Add the hits of a search to the metric; `threshold` is the cosine from which a vector alone finds a fact."""
    for hit in hits:
        SEARCH_HITS.labels(found_by=found_by(hit.score, threshold)).inc()


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
        CONTEXT_TOKENS.observe(context.tokens)
        for reason, number in context.left_out_counts.items():
            CONTEXT_LEFT_OUT.labels(reason=reason).inc(number)
        return replace(context, notice=found.notice) if found and found.notice else context

    async def _search(self, query: str, arguments: SearchArgs) -> SearchResult:
        asked = search_options(arguments)
        aids, within = SearchAids.read(arguments, asked.filters), search_scopes(arguments, asked.filters)
        check_unicode(query)
        question = storable_question(query)
        models = self._connections.search_models
        wordings, no_wordings = await models.wordings(query, aids.variants)
        words = joined_words(query, wordings)
        vector, no_vector = await self._embed(query, wordings) if aids.facts else (None, None)
        asked, no_time = await self._with_asked_period(query, asked, aids.when, within)
        turns = TurnFindings()
        if aids.turns:
            with search_phase("turns"):
                statuses = aids.turn_status
                turns = await self._query(search_turns, within, words, asked, at=self._now(), statuses=statuses)
        if asked.threshold is None and vector is not None:
            asked = asked.model_copy(update={"threshold": self._connections.query_embedder.floor_for(vector)})
        limit = asked.limit
        if aids.rerank:
            asked = asked.model_copy(update={"limit": max(limit, RERANKED)})
        found, no_hit = Findings(), None
        if aids.facts:
            with search_phase("sql"):
                found, no_hit = await self._query(_findings, within, words, vector, asked, at=self._now())
        least = aids.min_confidence if aids.min_confidence is not None else self._settings.min_confidence or 0.0
        sure = tuple(hit for hit in found.hits if hit.fact.confidence >= least)
        doubted = counted(len(found.hits) - len(sure), "hit")
        no_doubt = f"{doubted} with a confidence below {least:g} left out" if len(sure) < len(found.hits) else None
        hits, no_order = await models.rerank(question, sure) if aids.rerank else (sure, None)
        count_hits(hits[:limit], asked.threshold or 0.0)
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

    async def _embed(self, query: str, wordings: Sequence[str]) -> tuple[Vector | None, str | None]:
        """The mean vector of the question and its other wordings, and a notice where the embedder is away.

        Then only wordings whose vectors are known count.
        """
        with search_phase("embed"):
            vectors, fault = await self._connections.query_embedder.embed(query, *wordings)
        if not vectors:
            return None, f"full-text search only: {fault}"
        return mean_vector(vectors), f"without the vectors of some wordings: {fault}" if fault else None

    async def _with_asked_period(
        self, question: str, options: SearchOptions, when: WhenAsked, within: Sequence[ScopeFilter]
    ) -> tuple[SearchOptions, str | None]:
        """The options with the period that the question names; or as they are, with a notice if need be.

        A period may be named by an event ("after the wedding"): the event is dated by the fact that has most of its
        words. Raises `QueryError` where the search is to be narrowed and the package that reads times is missing.
        """
        if when == "ignore" or options.period is not None:
            return options, None
        at = self._now()
        try:
            period, event = await asyncio.to_thread(_read_period, question, at)
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


def _read_period(question: str, at: datetime) -> tuple["Period | None", "PeriodEvent | None"]:
    """The period that a question names, or else the event that it names one by.

    Called in a thread: the first question with a date loads the words of six languages.
    """
    from mnemolog.streams.text.times import asked_event, asked_period  # noqa: PLC0415 - needs an extra

    period = asked_period(question, at)
    return period, None if period else asked_event(question)


async def _findings(
    conn: AsyncConnection[TupleRow],
    within: Sequence[ScopeFilter],
    text: str,
    vector: Vector | None,
    options: SearchOptions,
    *,
    at: datetime,
) -> tuple[Findings, str | None]:
    """What a search finds, or in words why it finds nothing: then the facts of a single scope are counted."""
    found = await search_facts(conn, within, text, vector, options, at=at)
    if found.hits:
        return found, None
    if len(within) > 1 or options.selects:
        return found, NO_SELECTED
    return found, no_hit_sentence(await count_facts(conn, within[0], at=at))
