"""The properties over a hundred histories; `make properties` tries thousands."""

import ast
import logging
import os

import pytest
import structlog

from tests.properties.faults import FAULTS, Fault
from tests.properties.play import check_truth
from tests.properties.play_people import PeoplePlayer
from tests.properties.runs import PROPERTIES, Property, run_property, running_harness
from tests.properties.shared import TALK, check_division
from tests.properties.told_people import STORIES, told_by_hand
from tests.support.paths import ROOT

ORACLES = ("sentences", "steps", "truth", "scenes", "told", "people", "told_people", "dialogues")
"""What says what is so: it shares no code with the product."""

HISTORIES = int(os.environ.get("MNEMOLOG_PROPERTY_HISTORIES", "100"))


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_shares_no_code_with_the_product(name: str) -> None:
    tree = ast.parse((ROOT / "tests/properties" / f"{name}.py").read_text(encoding="utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]
    ours = {f"tests.properties.{one}" for one in ORACLES}
    assert {one for one in imported if one.startswith(("mnemolog", "tests"))} <= ours


@pytest.mark.postgres
@pytest.mark.parametrize("tested", PROPERTIES, ids=[one.name for one in PROPERTIES])
def test_property(database: str, tested: Property) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with running_harness(database) as (runner, harness):
        found = run_property(runner, harness, tested, histories=range(HISTORIES))
    assert found.error is None, f"history {found.history}: {found.error}"


@pytest.mark.postgres
def test_what_rests_on_who_is_who_follows_each_decision_on_it(database: str) -> None:
    with running_harness(database) as (runner, harness):
        for story in STORIES:
            runner.run(check_truth(harness, told_by_hand(story), PeoplePlayer))


@pytest.mark.parametrize("places", [(0, 1), (5, 6)], ids=["two answers", "two values"])
def test_equal_answers_under_one_number_are_told_apart(places: tuple[int, int]) -> None:
    check_division([TALK[place] for place in places], (2, 2))


@pytest.mark.parametrize("fault", FAULTS, ids=[one.name for one in FAULTS])
def test_a_former_fault_can_still_be_put_back(fault: Fault) -> None:
    places = [(where, name) for where, name, _ in fault.places()]
    before = [getattr(where, name) for where, name in places]
    with fault.put_back():
        assert all(getattr(where, name) is not was for (where, name), was in zip(places, before, strict=True))
    assert [getattr(where, name) for where, name in places] == before
