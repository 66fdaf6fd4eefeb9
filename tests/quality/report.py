"""A run's figures as text tables: for the terminal, and for the page."""

from collections.abc import Iterable, Sequence
from statistics import mean, median
from typing import Final

from tests.quality.rates import OUTCOMES, Rates, ScoredCase, Share, compute_rates, confusion, slices
from tests.quality.scores import Cost

RATES: Final[dict[str, str]] = {
    "right": "right",
    "unmet": "unmet",
    "harmful": "harmful",
    "wrong_overwrites": "wrong overwrites",
    "lost_updates": "lost updates",
    "duplicates": "duplicates",
    "unfounded": "unfounded",
}
"""The columns: the rate's name, and how it is headed."""


def rates_table(scored: Sequence[ScoredCase]) -> str:
    """A line a slice."""
    rows = [
        (name, str(made.cases), *_rates(made))
        for name, some in slices(scored).items()
        for made in [compute_rates(some)]
    ]
    return table(("cases of", "number", *RATES.values()), rows)


def _rates(made: Rates) -> list[str]:
    return [_short(getattr(made, rate)) for rate in RATES]


def _short(share: Share) -> str:
    return f"{100 * share.rate:.1f}% of {share.of}" if share.of else "-"


def confusion_table(scored: Sequence[ScoredCase]) -> str:
    """A line an expected outcome, a column an actual one; columns without a case are left out."""
    counts = confusion(scored)
    columns = [word for word in OUTCOMES if any(row[word] for row in counts.values())]
    rows = [(expected, *(str(row[word] or ".") for word in columns)) for expected, row in counts.items()]
    return table(("best right outcome", *columns), rows)


def guards_line(scored: Sequence[ScoredCase]) -> str:
    made = compute_rates(scored)
    return (
        f"Overwrites: {made.wrong_overwrites.of}, wrong {made.wrong_overwrites}; cases with a wrong one "
        f"{made.wrong_overwrite_cases}. Held back by a guard: {made.held_back}, of which {made.held_wrong} "
        f"would have been wrong. Lost updates: {made.stale} left what had ended, {made.news_lost} lost the news."
    )


def cost_line(costs: Sequence[Cost]) -> str:
    return (
        f"A case, all its turns: {mean(one.llm_calls for one in costs):.2f} model calls, "
        f"{mean(one.input_tokens for one in costs):.0f} tokens in, {mean(one.output_tokens for one in costs):.0f} out, "
        f"{mean(one.embedding_calls for one in costs):.2f} embedding calls; "
        f"its last turn took {median(one.milliseconds for one in costs):.0f} ms (median)."
    )


def misses(scored: Iterable[ScoredCase]) -> str:
    """Every case that is not right, a line each."""
    return "\n".join(_miss(one) for one in scored if not one.score.right)


def _miss(one: ScoredCase) -> str:
    flags = [name for name in ("harmful", "stale", "news_lost", "duplicate", "unfounded") if getattr(one.score, name)]
    notes = f", {', '.join(flags)}" if flags else ""
    return f"{one.case.id}: {one.score.actual}{notes}; right: {' or '.join(one.case.right)}. {one.case.turn.text}"


def report(scored: Sequence[ScoredCase], costs: Sequence[Cost]) -> str:
    """All of it for the terminal."""
    return "\n\n".join(
        (aligned(rates_table(scored)), aligned(confusion_table(scored)), guards_line(scored), cost_line(costs))
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def aligned(markdown: str) -> str:
    """The same table in columns of even width."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    return "\n".join("  ".join(_cells(row, widths)).rstrip() for row in (head, *rows))


def _cells(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    first, *rest = zip(row, widths, strict=True)
    yield first[0].ljust(first[1])
    for text, width in rest:
        yield text.rjust(width)
