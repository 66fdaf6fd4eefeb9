"""The examples of docs/client.md run as they stand, and print what the page says."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
PAGE = (ROOT / "docs/client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)


def test_the_examples_of_the_page_print_what_it_says(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in shell.settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    monkeypatch.setenv("MNEMOLOG_TENANT", "page")
    names: dict[str, object] = {}
    assert len(EXAMPLES) > 10
    for code, expected in EXAMPLES:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)  # noqa: S102 - the page's own code
        assert printed.getvalue() == expected, code


def test_the_page_names_every_public_error() -> None:
    import mnemolog.errors  # noqa: PLC0415 - beside the page

    inner = {"MnemologError", "MissingExtraError"}
    assert [name for name in mnemolog.errors.__all__ if f"`{name}`" not in PAGE and name not in inner] == []
