"""Figures about the shape of the Python code: lines, modules, functions, their length, private functions.

    python scripts/code_shape.py [FOLDER ...]

Without folders: the product's four. Links are not followed, so nothing is counted twice. A function's length is counted
from `def` to its last line. A private function has a name that begins with one underscore and is no method of a
protocol; its callers are the places in its own module that name it.
"""

import ast
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFAULT = ("schemas", "projections", "streams", "mnemolog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The figures of one folder. Lengths are in lines."""

    lines: int
    modules: int
    lengths: Sequence[int]
    private: int
    called_once: int

    def cells(self) -> Iterator[str]:
        lengths = sorted(self.lengths) or [0]
        yield f"{self.lines:6}"
        yield f"{self.modules:7}"
        yield f"{len(self.lengths):9}"
        yield f"{statistics.median(lengths):6g}"
        yield f"{lengths[min(len(lengths) - 1, round(len(lengths) * 0.95))]:4}"
        yield f"{lengths[-1]:4}"
        yield f"{self.private:8}"
        yield f"{100 * self.called_once / (self.private or 1):10.1f} %"


def modules_of(folder: Path) -> Iterator[Path]:
    """Every Python file under a folder, links aside."""
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from modules_of(entry)
        elif entry.suffix == ".py":
            yield entry


def shape_of(modules: Sequence[Path]) -> Shape:
    lines, lengths, private, called_once = 0, [], 0, 0
    for module in modules:
        text = module.read_text(encoding="utf-8")
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
        named = [name for node in ast.walk(tree) if (name := _name_of(node)) is not None]
        hidden = [function.name for function in functions if _is_private(function.name)]
        lines += len(text.splitlines())
        lengths += [(function.end_lineno or function.lineno) - function.lineno + 1 for function in functions]
        private += len(hidden)
        called_once += sum(named.count(name) == 1 for name in hidden)
    filled = [module for module in modules if module.stat().st_size]
    return Shape(lines=lines, modules=len(filled), lengths=lengths, private=private, called_once=called_once)


def _name_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def main(folders: Sequence[str]) -> None:
    print("folder         lines modules functions median  p95  max  private  one caller")
    every: list[Path] = []
    for folder in folders:
        modules = list(modules_of(Path(folder)))
        every += modules
        print(f"{Path(folder).name:12}", *shape_of(modules).cells())
    print(f"{'all':12}", *shape_of(every).cells())


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT)
