"""The examples of docs/client.md and docs/context.md run as they stand, and print what the pages say."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import CommandLine
from tests.support.paths import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
PAGE = (ROOT / "docs/client.md").read_text(encoding="utf-8")
PAGES = {"client": 11, "context": 2}
"""Pages with examples, and how many they have at the least."""


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_print_what_it_says(
    shell: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in shell.settings.items():
        monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    monkeypatch.setenv("MNEMOLOG_TENANT", f"page-{page}")
    names: dict[str, object] = {}
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert len(examples) >= PAGES[page]
    for code, expected in examples:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)  # noqa: S102 - the page's own code
        assert printed.getvalue() == expected, code


def test_the_page_names_every_public_error() -> None:
    import mnemolog.errors  # noqa: PLC0415 - beside the page

    inner = {"MnemologError", "MissingExtraError"}
    assert [name for name in mnemolog.errors.__all__ if f"`{name}`" not in PAGE and name not in inner] == []
