"""Cases judged by what a search returns."""

import pytest

from tests.quality.cases import load
from tests.quality.first_hits import Found, FoundFact, SearchScore, judge, sampled_cases

CASES = {case.id: case for case in load()}
OLD, NEWS, LOOSE = (
    FoundFact(text=text, places=places) for text, places in (("Porto", (0,)), ("Lyon", (1,)), ("-", ()))
)


@pytest.mark.parametrize(
    ("case_id", "stored", "hits", "faults"),
    [
        ("move-01", (1, 1), (NEWS, OLD), {}),
        ("move-01", (1, 1), (OLD, NEWS), {"lost_update": True}),
        ("move-01", (1, 1), (LOOSE, NEWS, OLD), {}),
        ("move-01", (1, 0), (OLD,), {"lost_update": True}),
        ("move-01", (1, 1), (FoundFact(text="Inês has moved", places=(1,)),), {"lost_update": True}),
        ("move-01", (1, 1), (FoundFact(text="Inês lives in Lyon, not in Porto", places=(0, 1)),), {}),
        ("move-01", (0, 1), (NEWS,), {"unmet": True}),
        ("move-01", (None, 1), (NEWS,), {"unmet": True}),
        ("end_without_replacement-01", (1, 0), (), {}),
        ("end_without_replacement-01", (1, 0), (OLD,), {"lost_update": True}),
        ("move-25", (1, 1), (FoundFact(text="Beirut", places=(1,)),), {"forgotten": True}),
        ("move-25", (1, 1), (OLD, FoundFact(text="Beirut", places=(1,))), {}),
        ("sarcasm_or_hypotheticals-13", (1, 1), (OLD,), {"unfounded": True}),
        ("repetition_in_other_words-01", (1, 1), (OLD,), {"duplicate": True}),
        ("repetition_in_other_words-01", (1, 0), (OLD,), {}),
    ],
)
def test_a_case_is_judged_by_its_hits(
    case_id: str, stored: tuple[int | None, ...], hits: tuple[FoundFact, ...], faults: dict[str, bool]
) -> None:
    case = CASES[case_id]
    assert judge(case, Found(id=case_id, stored=stored, hits=hits)) == SearchScore(id=case_id, **faults)


def test_the_sample_has_three_cases_of_each_family_and_split() -> None:
    found = sampled_cases()
    groups = [(case.family, case.split) for case in found]
    assert len(found) == 72
    assert {groups.count(group) for group in groups} == {3}
    assert len({*groups[:24]}) == 24
