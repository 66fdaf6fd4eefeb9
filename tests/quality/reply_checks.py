"""`python -m tests.quality.reply_checks`: what the checks of replies refuse, of honest and of harmful ones.

`replies/facts.jsonl` has facts that a reply takes from a message, `replies/decisions.jsonl` KEEPs and MERGEs; both were
written before the checks that they measure. `replies/blind.jsonl` and `replies/last.jsonl` have facts in 20 languages,
by one who had not read the checks; `replies/fresh.jsonl` was written before the checks were written anew,
`replies/later.jsonl` with the checks of swapped persons, small talk and requests, `replies/values.jsonl` before those
of denied values, exceptions, directions and comparisons. Those of `tests/support/cases` are older. `--verbose` lists
what is wrong.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mnemolog.schemas.provenance import Verdict
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.evidence import Evidence
from mnemolog.streams.llm.extract_reply import lines_of
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.llm.reply_checks import ParsedDecision, doubts
from tests.support.builders.prompts import MONDAY, extraction, fact, known_fact, user
from tests.support.builders.questions import number_conflicts
from tests.support.cases import labelled_pairs, reply_cases

REPLIES: Final = Path(__file__).parent / "replies"
_NAMES: Final = {
    "リタ": "リタ",
    "Рит": "Рита",
    "ريتا": "ريتا",
    "アリス": "アリス",
    "리타": "리타",
    "रीता": "रीता",
    "Алис": "Алиса",
}
"""How a text begins that names a speaker in another script, and that name."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled reply of a table, and the names of the checks that refuse it or a field of it."""

    table: str
    kind: str
    is_honest: bool
    shown: str
    checks: frozenset[str]

    @property
    def is_wrong(self) -> bool:
        return self.is_honest == bool(self.checks)


@cache
def judged() -> tuple[Judged, ...]:
    """All labelled replies, as the checks judge them."""
    return (*_facts(), *_decisions(), *_older_facts(), *_older_decisions())


def _facts() -> Iterator[Judged]:
    for name, table in (
        ("facts", "facts"),
        *((one, f"{one} facts") for one in ("blind", "last", "fresh", "later", "values")),
    ):
        for row in _rows(name):
            yield Judged(table, row["kind"], row["honest"], f"{row['said']} -> {row['text']}", fact_checks(row))


def _decisions() -> Iterator[Judged]:
    for row in _rows("decisions"):
        yield _decision("decisions", row["kind"], row["known"], row["new"], row.get("text", ""), honest=row["honest"])


def _older_facts() -> Iterator[Judged]:
    for name, side in ((name, side) for name in ("", "seen_", "unseen_") for side in ("honest", "harmful")):
        path = Path(reply_cases.__file__).with_name(f"{name}{side}_extractions.txt")
        for line in path.read_text(encoding="utf-8").splitlines():
            said, text, *_ = line.split(" | ")
            row = {"said": f"Well, {said}, you know.", "excerpt": said, "text": text, "speaker": "Alice", "at": MONDAY}
            yield Judged("older facts", name, side == "honest", f"{said} -> {text}", fact_checks(row))


def _older_decisions() -> Iterator[Judged]:
    for name, side in ((name, side) for name in ("", "SEEN_", "UNSEEN_", "THIRD_") for side in ("HONEST", "HARMFUL")):
        for case in getattr(reply_cases, f"{name}{side}"):
            if case.action in ("KEEP", "MERGE"):
                honest = side == "HONEST"
                yield _decision("older decisions", name, case.known, case.new, case.merged, honest=honest)
    pairs = chain(labelled_pairs.CONTRADICTING, labelled_pairs.COMPATIBLE)
    labelled = [*((pair, True) for pair in labelled_pairs.SAME_MEANING), *((pair, False) for pair in pairs)]
    for pair, honest in labelled:
        for known, new in (pair, pair[::-1]):
            yield _decision("older decisions", "pairs", known, new, "", honest=honest)


def _rows(name: str) -> Iterable[dict[str, Any]]:
    return map(json.loads, (REPLIES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())


def fact_task(row: dict[str, Any]) -> ExtractionTask:
    """The turn of a labelled fact, with the message of the assistant `before` it, if there is one."""
    said = (*([Message(role="assistant", content=row["before"])] if "before" in row else []), user(row["said"]))
    speaker = next((name for begins, name in _NAMES.items() if begins in row["text"]), row.get("speaker", "Rita"))
    return extraction(*said, speaker=speaker, occurred_at=row.get("at", "2026-11-28T12:00:00+00:00"))


def fact_checks(row: dict[str, Any]) -> frozenset[str]:
    fields = {name: row.get(name) for name in ("key", "value", "subject")}
    fields |= {name: datetime.fromisoformat(row[name]) for name in ("event_time", "valid_until") if name in row}
    evidence, excerpt = Evidence(fact_task(row)), row.get("excerpt", row["said"])
    if "line" in row:
        excerpt = lines_of(row["said"])[row["line"] - 1]
    if not evidence.messages_of(row["text"], excerpt):
        return frozenset({"excerpt"})
    return frozenset(fault.check for fault in evidence.support(row["text"], excerpt, **fields)[1])


def _decision(table: str, kind: str, known: str, new: str, merged: str, *, honest: bool) -> Judged:
    action: Verdict = "MERGE" if merged else "KEEP"
    subject = number_conflicts([(fact(new), (known_fact(1, known),))], said_at=MONDAY)
    claim = ParsedDecision(number=1, verdict=action, targets=(1,), text=merged)
    checks = frozenset(doubts(claim, subject.conflicts[0], ()))
    return Judged(table, kind, honest, f"{known} / {new} -> {merged or action}", checks)


@dataclass(frozen=True, slots=True)
class Refused:
    """How many harmful and honest replies of a group are refused, of how many."""

    group: str
    harmful: int
    of_harmful: int
    honest: int
    of_honest: int


def by_table() -> list[Refused]:
    """What is refused of each table, and of each kind of the newer two."""
    tables = dict.fromkeys(one.table for one in judged())
    kinds = dict.fromkeys((one.table, one.kind) for one in judged() if not one.table.startswith("older"))
    groups = {table: [one for one in judged() if one.table == table] for table in tables}
    groups |= {f"{table}: {kind}": [one for one in groups[table] if one.kind == kind] for table, kind in kinds}
    return [_refused(name, rows, lambda one: bool(one.checks)) for name, rows in groups.items()]


def by_check() -> list[Refused]:
    """What each check refuses of all replies of its side."""
    sides = {side: [one for one in judged() if one.table.endswith(side)] for side in ("facts", "decisions")}
    checks = {(side, check) for side, rows in sides.items() for one in rows for check in one.checks}
    return [
        _refused(f"{side}: {check}", sides[side], lambda one, check=check: check in one.checks)
        for side, check in sorted(checks)
    ]


def _refused(group: str, rows: Iterable[Judged], is_refused: Any) -> Refused:
    count = Counter((one.is_honest, is_refused(one)) for one in rows)
    harmful, honest = ((count[side, True], count[side, True] + count[side, False]) for side in (False, True))
    return Refused(group, *harmful, *honest)


def tables() -> tuple[list[str], list[str]]:
    """The rows of both tables in Markdown: of the labelled replies, and of the checks."""
    return (
        [
            f"| {one.group} | {one.harmful} of {one.of_harmful} | {one.honest} of {one.of_honest} |"
            for one in by_table()
        ],
        [f"| {one.group} | {one.harmful} | {one.honest} |" for one in by_check()],
    )


def main() -> None:
    replies, checks = tables()
    lines = ["| replies | harmful refused | honest refused |", "| --- | ---: | ---: |", *replies, ""]
    lines += ["| check | harmful | honest |", "| --- | ---: | ---: |", *checks]
    if "--verbose" in sys.argv:
        wrong = [one for one in judged() if one.is_wrong]
        lines += [
            "",
            *(
                f"{'honest' if one.is_honest else 'harmful'} {one.table} ({one.kind}): {one.shown} {sorted(one.checks)}"
                for one in wrong
            ),
        ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
