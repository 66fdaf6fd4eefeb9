"""The properties over some hundred histories; `make properties` tries thousands."""

import logging
import os

import pytest
import structlog

from tests.properties.runs import PROPERTIES, Property, run_property, running_harness

pytestmark = pytest.mark.postgres

HISTORIES = int(os.environ.get("MNEMOLOG_PROPERTY_HISTORIES", "120"))


@pytest.mark.parametrize("tested", PROPERTIES, ids=[one.name for one in PROPERTIES])
def test_property(database: str, tested: Property) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with running_harness(database) as (runner, harness):
        found = run_property(runner, harness, tested, histories=HISTORIES)
    assert found.error is None, f"after {found.first_after} histories: {found.error}"
    assert found.tried >= HISTORIES
