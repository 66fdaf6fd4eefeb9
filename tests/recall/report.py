"""The figures as Markdown tables."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.bench.markdown import table
from tests.recall.ablation import Figures
from tests.recall.dialogues import CATEGORIES, CHOOSING, REPORTING, Question
from tests.recall.measures import DEPTHS, Mean, Measures, mean_difference, mean_of
from tests.recall.variations import BASELINE

SPLITS: Final = {"reported": REPORTING, "choosing": CHOOSING}
HEAD: Final = ("search", *(f"recall@{depth}" for depth in DEPTHS), "MRR", "nDCG@10", f"recall@10 less {BASELINE.name}")

Value = Callable[[Measures], float]


def recall_at(depth: int) -> Value:
    """The share of the evidence among so many hits."""
    place = DEPTHS.index(depth)
    return lambda one: one.recall[place]


_target: Final = recall_at(10)
_COLUMNS: Final[Sequence[Value]] = (
    *(_target if depth == 10 else recall_at(depth) for depth in DEPTHS),
    lambda one: one.reciprocal_rank,
    lambda one: one.ndcg,
)


def main_table(figures: Figures, split: str) -> str:
    """Every variation over the questions of a split, recall@10 with its interval, and against the first one."""
    baseline = _values(figures, BASELINE.name, split, _target)
    rows = [(name, *_cells(figures, name, split), _signed(baseline, figures, name, split)) for name in figures.measures]
    return table(HEAD, rows)


def category_table(figures: Figures, split: str) -> str:
    """recall@10 of every variation by the category of the question."""
    groups = [
        (f"{name} ({count})", category)
        for category, name in CATEGORIES.items()
        if (count := len(_values(figures, BASELINE.name, split, _target, category)))
    ]
    rows = [
        (name, *(_short(mean_of(_values(figures, name, split, _target, one)).value) for _, one in groups))
        for name in figures.measures
    ]
    return table(("search", *(name for name, _ in groups)), rows)


def count(figures: Figures, split: str) -> int:
    """The questions of a split."""
    return sum(question.conversation in SPLITS[split] for question in figures.questions)


def recall_at_10(figures: Figures, name: str, split: str) -> Mean:
    """The figure that searches are compared by."""
    return mean_of(_values(figures, name, split, _target))


def _cells(figures: Figures, name: str, split: str) -> Sequence[str]:
    return [
        _interval(mean) if value is _target else _short(mean.value)
        for value in _COLUMNS
        for mean in [mean_of(_values(figures, name, split, value))]
    ]


def _signed(baseline: Sequence[float], figures: Figures, name: str, split: str) -> str:
    mean = mean_difference(_values(figures, name, split, _target), baseline)
    return f"{_short(mean.value, '+')} ({_short(mean.low, '+')} to {_short(mean.high, '+')})"


def _interval(mean: Mean) -> str:
    return f"{_short(mean.value)} ({_short(mean.low)} to {_short(mean.high)})"


def _short(value: float, sign: str = "") -> str:
    """Three digits: .816, or +.095 with a sign."""
    return f"{value:{sign}.3f}".replace("0.", ".", 1)


def _values(figures: Figures, name: str, split: str, value: Value, category: int | None = None) -> list[float]:
    def counts(question: Question) -> bool:
        return question.conversation in SPLITS[split] and category in (None, question.category)

    return [
        value(one) for question, one in zip(figures.questions, figures.measures[name], strict=True) if counts(question)
    ]
