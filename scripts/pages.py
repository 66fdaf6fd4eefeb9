"""The parts of a generated page in Markdown."""

from collections.abc import Iterable


def page(title: str, purpose: str, content: str) -> str:
    return f"# {title}\n\n{purpose}\nThis page is written by `make generate`.\n\n{content}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
