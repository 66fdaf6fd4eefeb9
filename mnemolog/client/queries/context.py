"""The method of the client that makes a context for a prompt."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Unpack

from mnemolog.client.base import checked
from mnemolog.client.inputs.checks import kind_of
from mnemolog.client.inputs.search_arguments import ContextArgs, search_scopes
from mnemolog.client.metrics import CONTEXT_LEFT_OUT, CONTEXT_TOKENS, measured
from mnemolog.client.queries.search import SearchMixin
from mnemolog.projections.context.composer import DEFAULT_BUDGET_TOKENS, ContextRules, compose
from mnemolog.projections.context.entries import MIN_CONFIDENCE
from mnemolog.projections.context.formats import ContextFormat
from mnemolog.projections.context.lasting_facts import lasting_facts
from mnemolog.projections.context.result import Context
from mnemolog.projections.context.summaries import facts_of_summaries, summaries_of_facts
from mnemolog.projections.queries.errors import QueryError


@measured
@checked(QueryError)
class ContextMixin(SearchMixin):
    """What is known, as a text for a prompt. It needs no Kafka."""

    async def context(
        self,
        query: str | None,
        *,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        format: ContextFormat = "markdown",  # noqa: A002 - as it is called everywhere
        count_tokens: Callable[[str], int] | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        doubtful: bool = True,
        summaries: bool = False,
        **arguments: Unpack[ContextArgs],
    ) -> Context:
        """What is known of one scope, or of those in `any`, and matters to `query`: a text of at most `budget_tokens`.

        First what must be respected (hard preferences and health), then the current task, what the search finds, and
        soft preferences. Where the budget is tight, facts that are pending, unresolved, old, or below `min_confidence`
        are left out first; with `doubtful=False` in any case. Without a query (None) nothing is searched.
        `count_tokens` is the model's tokenizer, such as `lambda text: len(encoding.encode(text))`; without it tokens
        are estimated from above. Put `messages` of the result into the prompt, and give `recalled` of it to `add` with
        the turn that comes of it. With `summaries` the summaries of the entities that most of these facts name, up to
        three, stand behind the facts where there is room; with `doubtful=False` none that has a doubtful fact.
        """
        if budget_tokens < 1 or not 0 <= min_confidence <= 1:
            raise QueryError("budget_tokens must be at least 1, and min_confidence from 0 to 1")
        if count_tokens is not None and not callable(count_tokens):
            raise QueryError(f"count_tokens must be a function from a text to a number, not {kind_of(count_tokens)}")
        if count_tokens is not None and not isinstance(number := count_tokens(""), Integral):
            raise QueryError(f"count_tokens must return a whole number of tokens, not {kind_of(number)}")
        within, at = search_scopes(arguments), self._now()
        lasting = await self._query(lasting_facts, within, at)
        found = await self.search(query, **arguments) if query is not None else None
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
        _measure(context)
        return replace(context, notice=found.notice) if found and found.notice else context


def _measure(context: Context) -> None:
    CONTEXT_TOKENS.observe(context.tokens)
    for reason, number in context.left_out_counts.items():
        CONTEXT_LEFT_OUT.labels(reason=reason).inc(number)
