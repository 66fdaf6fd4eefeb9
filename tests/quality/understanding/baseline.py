"""The recorded figures of the offline provider: a case that becomes worse is reported, and fails."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import orjson

from tests.quality.understanding.scores import FIGURES, CaseScore

BASELINE: Final = Path(__file__).with_name("baseline.json")


def save(scores: Iterable[CaseScore], path: Path = BASELINE) -> None:
    """One case a line, so that a change shows which cases it moved."""
    lines = ",\n".join(orjson.dumps(one.model_dump(exclude_defaults=True)).decode() for one in scores)
    path.write_text(f"[\n{lines}\n]\n")


def load(path: Path = BASELINE) -> dict[str, CaseScore]:
    """The scores by case id; none where none were recorded."""
    if not path.exists():
        return {}
    return {one["id"]: CaseScore.model_validate(one) for one in orjson.loads(path.read_bytes())}


def regressions(scores: Iterable[CaseScore], known: dict[str, CaseScore]) -> list[str]:
    """What is worse than it was, a line each; for a set that has changed, only that."""
    now = list(scores)
    unknown = [one.id for one in now if one.id not in known]
    if unknown:
        return [f"{len(unknown)} cases have no baseline ({unknown[0]}, ...): record one with --update-baseline"]
    return [
        f"{one.id}: {name} {before} -> {found}"
        for one in now
        for name in FIGURES
        if (found := getattr(one, name)) > (before := getattr(known[one.id], name))
    ]
