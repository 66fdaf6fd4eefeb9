"""The labelled set is whole: a case that is missing or misfiled would silently change every figure."""

from collections import Counter

import pytest

from tests.quality.cases import FAMILIES, LANGUAGES, Case, files, load, read

CASES = load()
ENGLISH = [case for case in CASES if case.language == "en"]


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(case.id for case in CASES).items() if count > 1] == []


def test_every_case_lies_in_its_file() -> None:
    for path in files():
        for case in read(path):
            named = case.family if case.language == "en" else f"conflicts.{case.language}"
            assert path.stem == named, case.id
            assert case.id.startswith(f"{case.family}-"), case.id


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_26_english_cases_half_of_them_for_tuning(family: str) -> None:
    splits = Counter(case.split for case in ENGLISH if case.family == family)
    assert splits["dev"] == splits["test"]
    assert splits.total() >= 26


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_another_language_has_40_cases_over_all_families(language: str) -> None:
    cases = [case for case in CASES if case.language == language]
    assert len(cases) >= 40
    assert {case.family for case in cases} == set(FAMILIES)
    assert Counter(case.split for case in cases)["dev"] == len(cases) / 2


def test_no_turn_is_said_twice() -> None:
    said = Counter(case.turn.text for case in CASES)
    assert [text for text, count in said.items() if count > 1] == []


def test_both_splits_ask_for_everything() -> None:
    """Each best outcome that occurs is asked for in both halves."""
    dev, test = ({case.right[0] for case in ENGLISH if case.split == split} for split in ("dev", "test"))
    assert dev == test


def test_keeping_is_asked_for_as_well_as_ending() -> None:
    old = Counter(case.old for case in ENGLISH)
    assert min(old["kept"], old["ended"]) >= len(ENGLISH) / 4


def test_a_case_that_contradicts_itself_is_refused() -> None:
    good = CASES[0].model_dump()
    with pytest.raises(ValueError, match="right or harmful"):
        Case.model_validate(good | {"harmful": good["right"]})
    with pytest.raises(ValueError, match="none of"):
        Case.model_validate(good | {"concerns": [len(good["known"])]})
    with pytest.raises(ValueError, match="Extra inputs"):
        Case.model_validate(good | {"note": "no such field"})
