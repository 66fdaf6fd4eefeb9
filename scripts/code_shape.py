"""Figures about the shape of the tree; nothing checks them, anyone may run it.

    python scripts/code_shape.py [FOLDER ...]

Without folders: the product's four, then lines of SQL and of tests, and words of the pages. Links are not followed, so
nothing is counted twice. A function's length is counted from `def` to its last line. Import lines are all lines of
import statements. A private function has a name that begins with one underscore; its callers are the places in its own
module that name it.
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
    imports: int
    modules: int
    lengths: Sequence[int]
    private: int
    called_once: int

    def cells(self) -> Iterator[str]:
        lengths = sorted(self.lengths) or [0]
        yield f"{self.lines:6}"
        yield f"{percent(self.imports, self.lines):>7}"
        yield f"{self.modules:7}"
        yield f"{len(self.lengths):9}"
        yield f"{statistics.median(lengths):6g}"
        yield f"{lengths[min(len(lengths) - 1, round(len(lengths) * 0.95))]:4}"
        yield f"{lengths[-1]:4}"
        yield f"{percent(self.private, len(self.lengths)):>8}"
        yield f"{percent(self.called_once, self.private):>10}"


def percent(part: int, whole: int) -> str:
    return f"{100 * part / (whole or 1):.1f} %"


def files_of(folder: Path, suffix: str = ".py") -> Iterator[Path]:
    """Every file under a folder with this suffix, links and caches aside."""
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from files_of(entry, suffix)
        elif entry.suffix == suffix:
            yield entry


def shape_of(modules: Sequence[Path]) -> Shape:
    lines, imports, lengths, private, called_once = 0, 0, [], 0, 0
    for module in modules:
        text = module.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        functions = [node for node in nodes if isinstance(node, Function)]
        named = [name for node in nodes if (name := _name_of(node)) is not None]
        hidden = [function.name for function in functions if _is_private(function.name)]
        lines += len(text.splitlines())
        imports += sum(_length(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
        lengths += [_length(function) for function in functions]
        private += len(hidden)
        called_once += sum(named.count(name) == 1 for name in hidden)
    return Shape(
        lines=lines,
        imports=imports,
        modules=sum(module.stat().st_size > 0 for module in modules),
        lengths=lengths,
        private=private,
        called_once=called_once,
    )


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _name_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def main(folders: Sequence[str]) -> None:
    print("folder         lines imports modules functions median  p95  max  private one caller")
    every: list[Path] = []
    for folder in folders or DEFAULT:
        modules = list(files_of(Path(folder)))
        every += modules
        print(f"{Path(folder).name:12}", *shape_of(modules).cells())
    print(f"{'all':12}", *shape_of(every).cells())
    if not folders:
        _print_other_files()


def _print_other_files() -> None:
    sql = [path for folder in DEFAULT for path in files_of(Path(folder), ".sql")]
    pages = [*Path().glob("*.md"), *files_of(Path("docs"), ".md")]
    print(f"\nSQL {_lines(sql)} lines, tests {_lines(files_of(Path('tests')))} lines of Python,", end=" ")
    print(f"pages {sum(len(path.read_text(encoding='utf-8').split()) for path in pages)} words")


def _lines(paths: Iterator[Path] | Sequence[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


if __name__ == "__main__":
    main(sys.argv[1:])
