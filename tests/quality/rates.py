"""From the scores of single cases to the rates of many."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.quality.cases import FAMILIES, LANGUAGES, SPLITS, Case, Language
from tests.quality.scores import UNMET, Score

NAMES: Final[dict[Language, str]] = {"en": "English", "de": "German", "es": "Spanish", "ja": "Japanese"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A rate with what it is made of; a rate of nothing is 0."""

    of: int
    count: int

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f} % ({self.count}/{self.of})" if self.of else "- (0/0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case with its score."""

    case: Case
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of some cases. All but `right` are of things that should not be."""

    cases: int
    right: Share
    harmful: Share
    wrong_overwrites: Share
    wrong_overwrite_cases: Share
    lost_updates: Share
    stale: Share
    news_lost: Share
    duplicates: Share
    unfounded: Share
    unmet: Share
    held_back: int
    held_wrong: int


def compute_rates(scored: Sequence[ScoredCase]) -> Rates:
    """The rates as docs/quality.md defines them."""
    return Rates(
        cases=len(scored),
        right=_share(scored, lambda one: one.score.right),
        harmful=_share(scored, lambda one: one.score.harmful),
        wrong_overwrites=Share(
            of=sum(one.score.overwrites for one in scored), count=sum(one.score.wrong for one in scored)
        ),
        wrong_overwrite_cases=_share(scored, lambda one: one.score.wrong > 0),
        lost_updates=_share(_with(scored, _may_lose), lambda one: one.score.lost_update),
        stale=_share(_with(scored, _may_go_stale), lambda one: one.score.stale),
        news_lost=_share(_with(scored, lambda one: one.case.new == "kept"), lambda one: one.score.news_lost),
        duplicates=_share(_with(scored, _may_double), lambda one: one.score.duplicate),
        unfounded=_share(_with(scored, lambda one: one.case.is_no_news), lambda one: one.score.unfounded),
        unmet=_share(scored, lambda one: one.score.unmet),
        held_back=sum(one.score.held_back for one in scored),
        held_wrong=sum(one.score.held_wrong for one in scored),
    )


def _may_go_stale(one: ScoredCase) -> bool:
    return one.case.old == "ended" and not one.score.unmet


def _may_lose(one: ScoredCase) -> bool:
    return _may_go_stale(one) or one.case.new == "kept"


def _may_double(one: ScoredCase) -> bool:
    return one.case.is_repetition and not one.score.unmet


def _with(scored: Iterable[ScoredCase], has: Callable[[ScoredCase], bool]) -> list[ScoredCase]:
    return [one for one in scored if has(one)]


def _share(scored: Sequence[ScoredCase], has: Callable[[ScoredCase], bool]) -> Share:
    return Share(of=len(scored), count=len(_with(scored, has)))


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


OUTCOMES: Final = (
    *("ADD", "SKIP", "KEEP", "MERGE", "REPLACE", "CONTRADICT", "EXTEND", "SIMILAR", "EXPIRE", "RETRACT", "PENDING"),
    *("NONE", "UNRESOLVED", "FAILED", UNMET),
)


def confusion(scored: Iterable[ScoredCase]) -> Mapping[str, Counter[str]]:
    """Per expected outcome (the first of the right ones) how often which came."""
    table: dict[str, Counter[str]] = {}
    for one in scored:
        table.setdefault(one.case.right[0], Counter())[one.score.actual] += 1
    return {word: table[word] for word in OUTCOMES if word in table}
