"""The parts of a generated page in Markdown, with lines of at most 120 characters."""

import textwrap
from collections.abc import Iterable
from typing import Final

WIDTH: Final = 120


def page(title: str, purpose: str, content: str) -> str:
    return f"# {title}\n\n{paragraph(f'{purpose} This page is written by `make generate`.')}\n{content}"


def paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def item(text: str) -> str:
    """An entry of a list."""
    wrapped = textwrap.fill(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return "* " + wrapped.replace("\n", "\n  ") + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
