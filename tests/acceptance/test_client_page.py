"""The Python examples of the how-tos run as they stand and print what the pages say."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
PAGES = [
    page for page in sorted((ROOT / "docs/how-to").glob("*.md")) if "```python" in page.read_text(encoding="utf-8")
]


def test_the_how_tos_have_examples() -> None:
    assert {page.stem for page in PAGES} >= {"publish", "query", "language-model", "delete-a-user", "tune-search"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_says(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in shell.settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    monkeypatch.setenv("MNEMOLOG_TENANT", f"page-{page.stem}")
    names: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    for code, expected in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL):
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)  # noqa: S102 - the page's own code
        assert printed.getvalue() == expected, code
