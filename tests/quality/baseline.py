"""The recorded figures of the offline provider: a change that makes one of them worse is reported, and fails."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from tests.quality.cases import Case
from tests.quality.rates import Rates, ScoredCase, Share, compute_rates, slices
from tests.quality.scores import Score

BASELINE: Final = Path(__file__).with_name("baseline.json")
COMPARED: Final = (
    *("right", "harmful", "wrong_overwrites", "wrong_overwrite_cases", "lost_updates", "duplicates", "unfounded"),
    "unmet",
)
"""The names of the rates in which a run must not be worse."""
_TOLERANCE: Final = 1e-9
_SHOWN: Final = 8


def save(scores: Sequence[Score], path: Path = BASELINE) -> None:
    """One case a line, so that a change shows which cases it moved."""
    lines = ",\n".join(orjson.dumps(one.model_dump(exclude_defaults=True)).decode() for one in scores)
    path.write_text(f"[\n{lines}\n]\n")


def load(path: Path = BASELINE) -> dict[str, Score]:
    """The scores by case id; none where none were recorded."""
    if not path.exists():
        return {}
    return {one["id"]: Score.model_validate(one) for one in orjson.loads(path.read_bytes())}


def regressions(scored: Sequence[ScoredCase], baseline: dict[str, Score]) -> list[str]:
    """What is worse than it was, a line each; for a set that has changed, only that."""
    unknown = [one.case.id for one in scored if one.case.id not in baseline]
    if unknown:
        return [f"{len(unknown)} cases have no baseline ({_some(unknown)}): record one with --update-baseline"]
    before = [ScoredCase(case=one.case, score=baseline[one.case.id]) for one in scored]
    now, then = slices(scored), slices(before)
    complaints = [
        line for name in now for line in _complaints(name, compute_rates(now[name]), compute_rates(then[name]))
    ]
    return complaints + _moved(scored, baseline) if complaints else []


def _complaints(name: str, now: Rates, then: Rates) -> list[str]:
    return [
        f"{name}: {rate.replace('_', ' ')} was {before}, is {after}"
        for rate in COMPARED
        for before, after in [(getattr(then, rate), getattr(now, rate))]
        if _is_worse(rate, before, after)
    ]


def _is_worse(rate: str, before: Share, after: Share) -> bool:
    change = after.rate - before.rate
    return (-change if rate == "right" else change) > _TOLERANCE


def _moved(scored: Sequence[ScoredCase], baseline: dict[str, Score]) -> list[str]:
    """The cases that were right and are not, or that do damage now."""
    return [
        f"  {one.case.id}: was {_told(baseline[one.case.id])}, is {_told(one.score)}; right would be {_right(one.case)}"
        for one in scored
        if (baseline[one.case.id].right and not one.score.right)
        or (one.score.harmful and not baseline[one.case.id].harmful)
    ]


def _told(score: Score) -> str:
    return f"{score.actual} ({'right' if score.right else 'harmful' if score.harmful else 'not right'})"


def _right(case: Case) -> str:
    return " or ".join(case.right)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
