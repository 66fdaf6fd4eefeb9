"""Tables and pages in Markdown, and the same tables for a terminal."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Final

WIDTH: Final = 120


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def aligned(markdown: str) -> str:
    """The same table in columns of even width."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip())
    return "\n".join(lines)


def filled(template: Path, fields: Mapping[str, object]) -> str:
    """The page that a template makes of these figures. Raises KeyError where it asks for another one."""
    return wrapped(Template(template.read_text()).substitute(fields))


def wrapped(page: str) -> str:
    """The page with its paragraphs and list items in lines of at most 120 characters; tables and code stay."""
    parts = re.split(r"(^```.*?^```$)", page, flags=re.DOTALL | re.MULTILINE)
    for place, part in enumerate(parts):
        if not part.startswith("```"):
            blocks = re.split(r"(\n\n+|\n(?=[*#-] |\d+\. |\|))", part)
            parts[place] = "".join(map(_wrapped_block, blocks))
    return "".join(parts)


def _wrapped_block(block: str) -> str:
    if not block.strip() or block.startswith(("#", "|")):
        return block
    item = re.match(r"[*-] |\d+\. ", block)
    end = "\n" if block.endswith("\n") else ""
    indent = " " * len(item[0]) if item else ""
    return textwrap.fill(block, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + end
