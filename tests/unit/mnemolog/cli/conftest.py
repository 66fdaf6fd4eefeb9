from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a function writes to stdout, with one space between words."""

    def show(function: Callable[..., Any], *arguments: Any) -> str:
        function(*arguments)
        return " ".join(capsys.readouterr().out.split())

    return show
