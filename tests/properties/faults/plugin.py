"""A plugin of pytest: `--fault 5` puts a former fault back, so that the example test of it fails."""

from contextlib import ExitStack

import pytest

from tests.properties.faults.former import FAULTS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault", type=int, default=0, help="the number of a fault in tests/properties/faults/former.py")


def pytest_configure(config: pytest.Config) -> None:
    stack = ExitStack()
    config.add_cleanup(stack.close)
    for fault in FAULTS:
        if fault.number == config.getoption("--fault"):
            stack.enter_context(fault.put_back())
