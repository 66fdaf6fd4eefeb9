"""Composes a context of facts for a prompt within a budget of tokens. Pure: the same input gives the same text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mnemolog.projections.context.entries import MIN_CONFIDENCE, SECTIONS, ContextEntry, context_entries, doubtful_ids
from mnemolog.projections.context.formats import LAYOUTS, ContextFormat, Layout, ShownFact
from mnemolog.projections.context.result import Context, ContextFact, ContextSummary, LeftOut, LeftOutSummary
from mnemolog.projections.context.tokens import estimate_tokens
from mnemolog.projections.context.words import state_words, time_words
from mnemolog.projections.queries.results import Fact

TokenCount = Callable[[str], int]
DEFAULT_BUDGET_TOKENS: Final = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRules:
    """How a context is made: `count_tokens` is the model's tokenizer, None for the estimate.

    Below `min_confidence` a fact is doubtful; without `doubtful` such facts are left out.
    """

    budget_tokens: int = DEFAULT_BUDGET_TOKENS
    format: ContextFormat = "markdown"
    count_tokens: TokenCount | None = None
    min_confidence: float = MIN_CONFIDENCE
    doubtful: bool = True


@dataclass(frozen=True, slots=True)
class _EntryText:
    entry: ContextEntry
    shown: ShownFact
    tokens: int


def compose(
    profile_facts: Iterable[Fact],
    hits: Iterable[Fact],
    rules: ContextRules,
    *,
    at: datetime,
    summaries: Sequence[ContextSummary] = (),
    summed_up: Iterable[Fact] = (),
) -> Context:
    """The context of `profile_facts`, which are in it whatever is asked, and of `hits`, the best first.

    Each fact gets room in the order of `context_entries`, if there is enough left: so one that is doubtful never
    takes the room of one that is certain. `summaries` get what room is left; where no doubtful facts are wanted, none
    that was written from one gets any: `summed_up` are the facts of all summaries. The budget holds for the whole text.
    """
    found = context_entries(profile_facts, hits, at=at, min_confidence=rules.min_confidence)
    wanted = [one for one in found if rules.doubtful or not one.doubts]
    composer = _Composer(LAYOUTS[rules.format], rules.count_tokens or estimate_tokens, rules.budget_tokens)
    chosen, text, tokens = composer.fitting([composer.line(one, at) for one in wanted])
    doubted = set() if rules.doubtful else doubtful_ids(summed_up, at=at, min_confidence=rules.min_confidence)
    certain = [one for one in summaries if doubted.isdisjoint(one.fact_ids)]
    about, text, tokens = composer.with_summaries(chosen, certain, text, tokens)
    kept = {line.entry.fact.fact_id for line in chosen}
    return Context(
        text=text,
        format=rules.format,
        tokens=tokens,
        budget_tokens=rules.budget_tokens,
        counted_by="tokenizer" if rules.count_tokens else "estimate",
        facts=tuple(_context_fact(line) for line in chosen),
        summaries=about,
        left_out_summaries=tuple(
            LeftOutSummary(summary=one, reason="budget" if one in certain else "doubtful")
            for one in summaries
            if one not in about
        ),
        left_out=tuple(
            LeftOut(
                fact_id=one.fact.fact_id,
                text=one.fact.text,
                section=one.section,
                reason="budget" if one in wanted else "doubtful",
                doubts=one.doubts,
            )
            for one in found
            if one.fact.fact_id not in kept
        ),
    )


@dataclass(frozen=True, slots=True)
class _Composer:
    layout: Layout
    count: TokenCount
    budget: int

    def line(self, entry: ContextEntry, at: datetime) -> _EntryText:
        shown = ShownFact(
            section=entry.section,
            text=entry.fact.text,
            when=", ".join(time_words(entry.fact, at)),
            state=", ".join(state_words(entry, at)),
        )
        return _EntryText(entry, shown, self.count(self.layout.fact(shown) + self.layout.separator))

    def fitting(self, wanted: Sequence[_EntryText]) -> tuple[list[_EntryText], str, int]:
        """Those for which there is room, in the order of the text, with the text and its tokens."""
        chosen: list[_EntryText] = []
        used = self.count(self.layout.head + self.layout.foot)
        for line in wanted:
            more = line.tokens + self._heading_tokens(line, chosen)
            if used + more > self.budget:
                # The parts may count for more than the whole.
                whole = self.count(self.text([*chosen, line])) if line.tokens <= self.budget else self.budget + 1
                if whole > self.budget:
                    continue
                used, more = whole, 0
            used += more
            chosen.append(line)
        while chosen and self.count(self.text(chosen)) > self.budget:
            chosen.pop()  # or, with some tokenizers, for less
        text = self.text(chosen)
        return _ordered(chosen), text, self.count(text) if text else 0

    def with_summaries(
        self, chosen: Sequence[_EntryText], summaries: Iterable[ContextSummary], text: str, tokens: int
    ) -> tuple[tuple[ContextSummary, ...], str, int]:
        """The summaries for which there is room behind the chosen facts, with the text and its tokens then."""
        shown, kept = [line.shown for line in _ordered(chosen)], list[ContextSummary]()
        for one in summaries:
            state = "may be out of date" if one.changed else ""
            more = [*shown, ShownFact(section="summaries", text=f"{one.name}: {one.summary}", when="", state=state)]
            longer = self.layout.text(more)
            if (count := self.count(longer)) <= self.budget:
                shown, text, tokens = more, longer, count
                kept.append(one)
        return tuple(kept), text, tokens

    def text(self, lines: Sequence[_EntryText]) -> str:
        return self.layout.text([line.shown for line in _ordered(lines)])

    def _heading_tokens(self, line: _EntryText, chosen: Sequence[_EntryText]) -> int:
        section = line.entry.section
        if any(one.entry.section == section for one in chosen):
            return 0
        return self.count(self.layout.section_head(section) + self.layout.section_foot + self.layout.between_sections)


def _ordered(lines: Sequence[_EntryText]) -> list[_EntryText]:
    return sorted(lines, key=lambda line: (SECTIONS.index(line.entry.section), line.entry.rank))


def _context_fact(line: _EntryText) -> ContextFact:
    fact, shown = line.entry.fact, line.shown
    return ContextFact(
        fact_id=fact.fact_id,
        scope=fact.scope,
        text=fact.text,
        section=line.entry.section,
        when=shown.when,
        state=shown.state,
        confidence=fact.confidence,
        source_id=fact.source_id,
    )
