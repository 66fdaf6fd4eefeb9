"""docs/glossary.md has the words of the product's classes and modules, and no word that the code does not have."""

# ruff: noqa: SIM905 -- a list of words is best read as words

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/glossary.md"
PACKAGES = ("schemas", "projections", "streams", "mnemolog")
GENERAL = frozenset(
    """
    account address admin ambiguous answer app arg argument ask async background bar base batch batcher body builder
    byte cached call change changed chat check child choice cli closed compared comparison completion configuration
    column connected connection consumer cost count crash created db dead default definition dependent differs
    downgrade dumper effect embedding ended endpoint enqueue entry env error exceeded exit extraction factory
    failed faust feature fetch file filter folder gap handler hit id in index input invalid item kafka large last
    launch list lock log logger metadata metric migration mismatch missing mixin mnemolog model no normalise
    not null numbered offset old option outcome output parsed parser partition partly patch patched plan point pool
    port postgres processor producer progress published publisher query rate read reader record refused regression
    report requested resource result retention retrier retrieved retry revision row runner
    running runtime schema score server setting shared short skipped sql stack start state stop storable store
    stored stream sync table text thread timed timeout timestamp token too topic traced transport tuning turning type
    unavailable undeliverable unknown unusable unread unreadable unsupported upgrade usage use version versioned view
    wait wiring word write writer wrong
    """.split()
)
"""Words of programming, or English with no meaning of its own here."""
GERUNDS = {
    "pending": "an adjective: facts that are pending",
    "wiring": "the noun for how parts are put together",
}
"""Modules named by a word in -ing, with the reason."""


def modules(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from modules(entry)
        elif entry.suffix == ".py" and not entry.name[0].isdigit():
            yield entry


@cache
def product() -> tuple[Path, ...]:
    return tuple(path for package in PACKAGES for path in modules(ROOT / package))


def words(name: str) -> tuple[str, ...]:
    """The words of a snake_case, CamelCase or written name, each in the singular and in small letters."""
    plain = re.sub(r"Open(?=A[Ii])|Mini(?=L[Mm])", lambda match: match[0].lower(), name)
    found = re.findall(r"(?:open|mini)[A-Z][A-Za-z](?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", plain)
    return tuple(singular(word.lower()) for word in found)


def singular(word: str) -> str:
    if word in {"is", "has", "this", "its", "status", "ambiguous", "postgres", "differs"}:
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def names() -> Iterator[tuple[str, str]]:
    """Each name with where it is."""
    for path in product():
        module = path.parent.name if path.stem == "__init__" else path.stem
        if module != "__main__":
            yield module, str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name, f"{path.relative_to(ROOT)}:{node.lineno}"


@cache
def headwords() -> tuple[tuple[str, ...], ...]:
    """The bold words of the page, where two are named by a comma each of them."""
    bold = re.findall(r"\*\*(.+?)\*\*", PAGE.read_text(encoding="utf-8"))
    return tuple(words(name) for term in bold for name in term.split(", "))


def unexplained(name: str, terms: Iterable[tuple[str, ...]]) -> list[str]:
    """The words of a name that belong to none of the terms in it and are not general."""
    parts = words(name)
    explained = {
        place
        for term in terms
        for start in range(len(parts) - len(term) + 1)
        if parts[start : start + len(term)] == term
        for place in range(start, start + len(term))
    }
    return [part for place, part in enumerate(parts) if place not in explained and part not in GENERAL]


def test_every_domain_word_of_a_class_or_module_is_in_the_glossary() -> None:
    missing = [
        f"{where}: {name}: {', '.join(rest)}" for name, where in names() if (rest := unexplained(name, headwords()))
    ]
    assert missing == []


def test_every_word_of_the_glossary_is_in_the_code() -> None:
    sources = [*product(), *(ROOT / "projections").rglob("*.sql")]
    code = " ".join(" ".join(words(path.read_text(encoding="utf-8"))) for path in sources)
    assert [" ".join(term) for term in headwords() if f" {' '.join(term)} " not in f" {code} "] == []


def test_the_glossary_has_each_word_once() -> None:
    assert len(headwords()) == len(set(headwords()))


def test_a_general_word_is_not_in_the_glossary_too_and_is_used() -> None:
    used = {part for name, _ in names() for part in words(name)}
    assert sorted(GENERAL - used) == []
    assert sorted(GENERAL & {term[0] for term in headwords() if len(term) == 1}) == []


def test_no_module_is_named_by_a_gerund_without_a_reason() -> None:
    assert {path.stem for path in product() if path.stem.endswith("ing")} == set(GERUNDS)


@pytest.mark.parametrize(
    ("name", "terms", "rest"),
    [
        ("DeadLetterWriter", [("dead", "letter")], []),
        ("DeadLetterWriter", [("dead",)], ["letter"]),
        ("fact_states", [("fact", "state")], []),
        ("StageErrors", [], ["stage"]),
        ("OpenAiChatModel", [("openai",), ("chat", "model")], []),
    ],
)
def test_a_name_is_explained_by_whole_terms(name: str, terms: list[tuple[str, ...]], rest: list[str]) -> None:
    assert unexplained(name, terms) == rest
