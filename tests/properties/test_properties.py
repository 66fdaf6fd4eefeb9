"""The properties over a hundred histories; `make properties` tries thousands."""

import logging
import os

import pytest
import structlog

from tests.properties.faults.former import FAULTS, Fault
from tests.properties.runs import PROPERTIES, Property, run_property, running_harness
from tests.support.paths import ROOT

pytestmark = pytest.mark.postgres

HISTORIES = int(os.environ.get("MNEMOLOG_PROPERTY_HISTORIES", "100"))


@pytest.mark.parametrize("tested", PROPERTIES, ids=[one.name for one in PROPERTIES])
def test_property(database: str, tested: Property) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with running_harness(database) as (runner, harness):
        found = run_property(runner, harness, tested, histories=HISTORIES)
    assert found.error is None, f"after {found.first_after} histories: {found.error}"
    assert found.tried >= tested.number_of(HISTORIES)


@pytest.mark.parametrize("fault", FAULTS, ids=[str(one.number) for one in FAULTS])
def test_a_former_fault_can_still_be_put_back(fault: Fault) -> None:
    places = [(where, name) for where, name, _ in fault.places()]
    before = [getattr(where, name) for where, name in places]
    with fault.put_back():
        assert all(getattr(where, name) is not was for (where, name), was in zip(places, before, strict=True))
    assert [getattr(where, name) for where, name in places] == before
    file, _, test = fault.example.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
