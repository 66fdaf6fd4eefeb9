"""What one turn or command changed in a person's facts, and which word of each vocabulary is right for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.projections.queries.results import WriteResult
from tests.support.harnesses.pipeline_harness import Person

OPEN_STATUSES: Final = ("active", "pending_confirmation")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The facts of one scope by text, before and after; `old` was known, `new` is the statement about it.

    `pending` are the overwrites that wait after it, `relations` how facts relate, by their texts.
    """

    result: WriteResult
    events: list[str]
    before: Mapping[str, Row]
    after: Mapping[str, Row]
    pending: Sequence[Row]
    relations: list[tuple[str, str, str]]
    old_text: str
    new_text: str

    @property
    def old(self) -> Row:
        return self.after[self.old_text]

    @property
    def new(self) -> Row:
        return self.after[self.new_text]

    @property
    def successor(self) -> Row | None:
        """The fact that superseded the old one."""
        return next((row for row in self.after.values() if row["fact_id"] == self.old["superseded_by"]), None)

    @property
    def new_texts(self) -> set[str]:
        return set(self.after) - set(self.before)


async def observe_change(person: Person, action: Awaitable[WriteResult], *, old: str, new: str) -> Change:
    """The change by `action`, a turn or a command: the tables are read before and after it."""
    before = await person.facts()
    result = await action
    after = await person.facts()
    texts = {row["fact_id"]: text for text, row in after.items()}
    ids = list(texts)
    pending = "SELECT * FROM pending_confirmations WHERE fact_id = ANY(%s) AND settled_at IS NULL"
    relations = "SELECT * FROM fact_relations WHERE fact_id = ANY(%s)"
    return Change(
        result=result,
        events=await person.events(result.turn_id),
        before=before,
        after=after,
        pending=await person.harness.rows(pending, ids),
        relations=[
            (texts[row["fact_id"]], row["relation"], texts[row["related_id"]])
            for row in await person.harness.rows(relations, ids)
        ],
        old_text=old,
        new_text=new,
    )


def _old_is_unchanged(change: Change) -> bool:
    """The old one, where there was one, is active, true and believed."""
    if change.old_text not in change.before:
        return True
    return change.old["status"] == "active" and change.old["true_to"] is None and change.old["believed_to"] is None


def _added(change: Change) -> bool:
    brought = [change.after[text]["status"] for text in change.new_texts]
    return brought == ["active"] and _old_is_unchanged(change)


def _only_old_remains(change: Change) -> bool:
    """The old one stays, and the new statement does not become a fact."""
    open_texts = [text for text, row in change.after.items() if row["status"] in OPEN_STATUSES]
    return change.old_text in change.before and _old_is_unchanged(change) and open_texts == [change.old_text]


def _old_has_successor(change: Change) -> bool:
    successor = change.successor
    return (
        successor is not None
        and successor["status"] == "active"
        and change.old["status"] in ("superseded", "archived")
        and change.old_text in change.before
    )


def _merged(change: Change) -> bool:
    """One fact has both statements, and neither was wrong."""
    successor = change.successor
    return (
        _old_has_successor(change)
        and successor is not None
        and successor["text"] not in (change.old_text, change.new_text)
        and change.old["true_to"] is None
    )


def _replaced(change: Change) -> bool:
    """The old one was true until then; that is still believed."""
    return _old_has_successor(change) and change.old["true_to"] is not None and change.old["believed_to"] is None


def _contradicted(change: Change) -> bool:
    """The old one never was true, and is no longer believed."""
    left = change.old["true_to"] is None and change.old["believed_to"] is not None
    return _old_has_successor(change) and left and not _merged(change)


def _old_has_ended(change: Change) -> bool:
    return change.old["status"] in ("expired", "retracted")


def _new_is_pending(change: Change) -> bool:
    return (
        _old_is_unchanged(change)
        and change.new_text in change.new_texts
        and change.new["status"] == "pending_confirmation"
        and [row["fact_id"] for row in change.pending] == [change.new["fact_id"]]
    )


def _related(relation: str) -> Callable[[Change], bool]:
    def holds(change: Change) -> bool:
        return (change.new_text, relation, change.old_text) in change.relations and _added(change)

    return holds


WORD_CHECKS: Final[Mapping[str, Mapping[str, Callable[[Change], bool]]]] = {
    "resolution": {
        "ADD": _added,
        "MERGE": _merged,
        "REPLACE": _replaced,
        "KEEP": _only_old_remains,
        "CONTRADICT": _contradicted,
    },
    "arbitration": {
        "insert": _added,
        "update": _merged,
        "supersede": lambda change: _old_has_successor(change) and not _merged(change),
        "expire": _old_has_ended,
        "noop": _only_old_remains,
        "mark_pending_confirmation": _new_is_pending,
    },
    "reconciliation": {
        "ADD": _added,
        "UPDATE": _old_has_successor,
        "NOOP": _only_old_remains,
        "DELETE": _old_has_ended,
    },
    "classification": {
        "update": _old_has_successor,
        "extend": _related("extends"),
        "similar": _related("similar"),
        "noop": _only_old_remains,
    },
}
"""By vocabulary and word: whether the word is right for a change. At most one word of a vocabulary is."""
