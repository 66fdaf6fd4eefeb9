"""A plugin of pytest: `--fault NAME` puts a former fault back, so that the example test of it fails."""

from contextlib import ExitStack

import pytest

from tests.properties.faults import FAULTS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault", default="", help="the name of a function that puts a fault back")


def pytest_configure(config: pytest.Config) -> None:
    stack = ExitStack()
    config.add_cleanup(stack.close)
    for fault in FAULTS:
        if fault.name == config.getoption("--fault"):
            stack.enter_context(fault.put_back())
