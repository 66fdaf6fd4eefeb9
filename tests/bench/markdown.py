"""Markdown of the pages that runs write."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

WIDTH: Final = 120
_ITEM: Final = re.compile(r"[*-] |\d+\. ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wrapped(page: str) -> str:
    """The page with its paragraphs and list items in lines of at most 120 characters; tables and code stay."""
    parts = re.split(r"(^```.*?^```$)", page, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _wrapped_text(part) for part in parts)


def _wrapped_text(text: str) -> str:
    blocks = re.split(r"(\n\n+|\n(?=[*#-] |\d+\. |\|))", text)
    return "".join(_wrapped_block(block) for block in blocks)


def _wrapped_block(block: str) -> str:
    if not block.strip() or block.startswith(("#", "|")):
        return block
    item = _ITEM.match(block)
    end = "\n" if block.endswith("\n") else ""
    indent = " " * len(item[0]) if item else ""
    return textwrap.fill(block, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + end
