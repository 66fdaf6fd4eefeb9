"""The figures of a run of labelled conflicts: tables, docs/quality.md, and what is worse than the baseline."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Final

from tests.bench.markdown import aligned, filled, table
from tests.quality.cases import FAMILIES, LANGUAGES, SPLITS, Language
from tests.quality.runs import Cost, Share
from tests.quality.scores import UNMET, Score, ScoredCase, compute_rates
from tests.support.paths import ROOT

BASELINE: Final = Path(__file__).with_name("baseline.json")
TEMPLATE: Final = Path(__file__).with_name("quality.md.in")
PAGE: Final = ROOT / "docs" / "quality.md"
NAMES: Final[dict[Language, str]] = {"en": "English", "de": "German", "es": "Spanish", "ja": "Japanese"}
COLUMNS: Final = ("right", "unmet", "harmful", "wrong_overwrites", "lost_updates", "duplicates", "unfounded")
"""The names of the rates in the table."""
COMPARED: Final = (*COLUMNS, "wrong_overwrite_cases")
"""The names of the rates in which a run must not be worse."""
OUTCOMES: Final = (
    *("ADD", "SKIP", "KEEP", "MERGE", "REPLACE", "CONTRADICT", "EXTEND", "SIMILAR", "EXPIRE", "RETRACT", "PENDING"),
    *("NONE", "UNRESOLVED", "FAILED", UNMET),
)
_TOLERANCE: Final = 1e-9
_SHOWN: Final = 8


def slices(scored: Sequence[ScoredCase]) -> dict[str, list[ScoredCase]]:
    """All of a run's cases by language, the English ones by split and by family; empty slices are left out."""
    english = [one for one in scored if one.case.language == "en"]
    found: dict[str, list[ScoredCase]] = {
        NAMES["en"]: english,
        **{f"{NAMES['en']}, {name}": [one for one in english if one.case.split == name] for name in SPLITS},
        **{str(name): [one for one in english if one.case.family == name] for name in FAMILIES},
        **{NAMES[name]: [one for one in scored if one.case.language == name] for name in LANGUAGES if name != "en"},
    }
    return {name: some for name, some in found.items() if some}


def rates_table(scored: Sequence[ScoredCase]) -> str:
    """A line a slice."""
    rows = []
    for name, some in slices(scored).items():
        shares: list[Share] = [getattr(compute_rates(some), rate) for rate in COLUMNS]
        cells = (f"{100 * one.rate:.1f}% of {one.of}" if one.of else "-" for one in shares)
        rows.append((name, str(len(some)), *cells))
    return table(("cases of", "number", *(rate.replace("_", " ") for rate in COLUMNS)), rows)


def confusion(scored: Iterable[ScoredCase]) -> Mapping[str, Counter[str]]:
    """Per expected outcome (the first of the right ones) how often which came."""
    found: dict[str, Counter[str]] = {}
    for one in scored:
        found.setdefault(one.case.right[0], Counter())[one.score.actual] += 1
    return {word: found[word] for word in OUTCOMES if word in found}


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


def misses(scored: Iterable[ScoredCase]) -> str:
    """Every case that is not right, a line each."""
    lines = []
    for one in scored:
        if not one.score.right:
            names = ("harmful", "stale", "news_lost", "duplicate", "unfounded")
            told = ", ".join([one.score.actual, *(name for name in names if getattr(one.score, name))])
            lines.append(f"{one.case.id}: {told}; right: {' or '.join(one.case.right)}. {one.case.turn.text}")
    return "\n".join(lines)


def report(scored: Sequence[ScoredCase], costs: Sequence[Cost]) -> str:
    """All of it for the terminal."""
    cost = (
        f"A case, all its turns: {mean(one.llm_calls for one in costs):.2f} model calls, "
        f"{mean(one.input_tokens for one in costs):.0f} tokens in, {mean(one.output_tokens for one in costs):.0f} out, "
        f"{mean(one.embedding_calls for one in costs):.2f} embedding calls; "
        f"its last turn took {median(one.milliseconds for one in costs):.0f} ms (median)."
    )
    return "\n\n".join((aligned(rates_table(scored)), aligned(confusion_table(scored)), guards_line(scored), cost))


def page(scored: Sequence[ScoredCase]) -> str:
    """docs/quality.md for the scores of all cases with the offline provider; it has no times, so it is reproducible."""
    english = [one for one in scored if one.case.language == "en"]
    fields = {
        "english": len(english),
        "others": len(scored) - len(english),
        "right": compute_rates(english).right,
        "unmet": compute_rates(english).unmet,
        "dev": compute_rates([one for one in english if one.case.split == "dev"]).right,
        "test": compute_rates([one for one in english if one.case.split == "test"]).right,
        "rates": rates_table(scored),
        "guards": guards_line(english),
    }
    return filled(TEMPLATE, fields)


def regressions(scored: Sequence[ScoredCase], baseline: Mapping[str, Score]) -> list[str]:
    """What is worse than it was, a line each, then the cases that were right and are not, or that do damage now.

    For a set that has changed, only that.
    """
    unknown = [one.case.id for one in scored if one.case.id not in baseline]
    if unknown:
        some = ", ".join(unknown[:_SHOWN]) + (", ..." if len(unknown) > _SHOWN else "")
        return [f"{len(unknown)} cases have no baseline ({some}): record one with --update-baseline"]
    worse, moved = [], []
    for name, some_cases in slices(scored).items():
        now = compute_rates(some_cases)
        then = compute_rates([ScoredCase(case=one.case, score=baseline[one.case.id]) for one in some_cases])
        for rate in COMPARED:
            before, after = getattr(then, rate), getattr(now, rate)
            change = after.rate - before.rate
            if (-change if rate == "right" else change) > _TOLERANCE:
                worse.append(f"{name}: {rate.replace('_', ' ')} was {before}, is {after}")
    for one in scored:
        was = baseline[one.case.id]
        if (was.right and not one.score.right) or (one.score.harmful and not was.harmful):
            right = " or ".join(one.case.right)
            moved.append(f"  {one.case.id}: was {_told(was)}, is {_told(one.score)}; right would be {right}")
    return worse + moved if worse else []


def _told(score: Score) -> str:
    return f"{score.actual} ({'right' if score.right else 'harmful' if score.harmful else 'not right'})"
