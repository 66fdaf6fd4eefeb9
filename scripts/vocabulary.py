"""What each event does to rows, what other memory layers call it, and what each status means.

The other vocabularies are: the resolutions of a smart store (ADD, MERGE, REPLACE, KEEP,
CONTRADICT), the actions of an arbitration (insert, update, supersede, expire, noop, mark_pending_confirmation), the
operations of a reconciliation (ADD, UPDATE, NOOP, DELETE) and the relations of a classification (update, extend,
similar, noop). `docs/vocabulary.md` is written from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mnemolog.projections.queries.results import Status
from mnemolog.schemas.facts import FactStatus

Resolution = Literal["ADD", "MERGE", "REPLACE", "KEEP", "CONTRADICT"]
Arbitration = Literal["insert", "update", "supersede", "expire", "noop", "mark_pending_confirmation"]
Reconciliation = Literal["ADD", "UPDATE", "NOOP", "DELETE"]
Settlement = Literal["confirmed", "rejected", "overtaken", "deleted", "undone"]
Classification = Literal["update", "extend", "similar", "noop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyEntry:
    """One event, with all words that a vocabulary has for it."""

    event: str
    resolution: tuple[Resolution, ...] = ()
    arbitration: tuple[Arbitration, ...] = ()
    reconciliation: tuple[Reconciliation, ...] = ()
    classification: tuple[Classification, ...] = ()
    effect: str


VOCABULARY: Final[tuple[VocabularyEntry, ...]] = (
    VocabularyEntry(
        event="fact_added",
        resolution=("ADD",),
        arbitration=("insert",),
        reconciliation=("ADD",),
        effect="a new active row; a late statement is superseded from the beginning, with the newer fact's "
        "begin as its true_to",
    ),
    VocabularyEntry(
        event="fact_skipped",
        resolution=("KEEP",),
        arbitration=("noop",),
        reconciliation=("NOOP",),
        classification=("noop",),
        effect="no row; the known fact has one more mention",
    ),
    VocabularyEntry(
        event="fact_confirmed",
        resolution=("KEEP",),
        arbitration=("noop",),
        reconciliation=("NOOP",),
        classification=("noop",),
        effect="no row; the known fact has one more mention, and its confidence rises by a quarter of the doubt",
    ),
    VocabularyEntry(
        event="facts_merged",
        resolution=("MERGE",),
        arbitration=("update",),
        reconciliation=("UPDATE",),
        classification=("update",),
        effect="a new active row; the old ones are superseded and no longer believed (believed_to)",
    ),
    VocabularyEntry(
        event="fact_replaced",
        resolution=("REPLACE",),
        arbitration=("supersede",),
        reconciliation=("UPDATE",),
        classification=("update",),
        effect="a new active row; the old ones are superseded, true until the new one began (true_to)",
    ),
    VocabularyEntry(
        event="fact_contradicted",
        resolution=("CONTRADICT",),
        arbitration=("supersede",),
        reconciliation=("UPDATE",),
        classification=("update",),
        effect="a new active row; the old ones are archived: never true, and no longer believed (believed_to)",
    ),
    VocabularyEntry(
        event="fact_extended",
        resolution=("ADD",),
        arbitration=("insert",),
        reconciliation=("ADD",),
        classification=("extend",),
        effect="a new active row with the relation extends to the old ones, which do not change",
    ),
    VocabularyEntry(
        event="facts_related",
        resolution=("ADD",),
        arbitration=("insert",),
        reconciliation=("ADD",),
        classification=("similar",),
        effect="a new active row with the relation similar to the old ones, which do not change",
    ),
    VocabularyEntry(
        event="fact_expired",
        arbitration=("expire",),
        reconciliation=("DELETE",),
        effect="the old ones are expired, true until then (true_to); with a future end they stay active until "
        "then; the announcement, if there is one, is a new active row",
    ),
    VocabularyEntry(
        event="fact_retracted",
        arbitration=("expire",),
        reconciliation=("DELETE",),
        effect="the old ones are retracted, true until then (true_to); those deleted by a command are no longer"
        " believed (believed_to); the statement, if there is one, is a new active row",
    ),
    VocabularyEntry(
        event="fact_pending",
        arbitration=("mark_pending_confirmation",),
        effect="a new row with the status pending_confirmation, and a row of pending_confirmations; the old "
        "ones do not change",
    ),
    VocabularyEntry(
        event="pending_confirmed",
        resolution=("MERGE", "REPLACE", "CONTRADICT"),
        arbitration=("update", "supersede", "expire"),
        reconciliation=("UPDATE", "DELETE"),
        classification=("update",),
        effect="the pending row becomes active and believed; the old ones change as the held overwrite says",
    ),
    VocabularyEntry(
        event="pending_rejected",
        resolution=("KEEP",),
        arbitration=("noop",),
        reconciliation=("NOOP",),
        classification=("noop",),
        effect="the pending row is archived and never believed; an old one that was repeated is mentioned or confirmed",
    ),
    VocabularyEntry(
        event="fact_corrected",
        resolution=("CONTRADICT", "REPLACE"),
        arbitration=("supersede",),
        reconciliation=("UPDATE",),
        classification=("update",),
        effect="a new active row with the authority of a human; the old one is superseded and no longer "
        "believed, or true until the given end",
    ),
    VocabularyEntry(
        event="conflict_resolved",
        resolution=("KEEP", "REPLACE", "CONTRADICT"),
        arbitration=("noop", "supersede"),
        reconciliation=("NOOP", "UPDATE"),
        classification=("noop", "update"),
        effect="the row is no longer unresolved; keep_old archives it, replace and contradict end the old ones",
    ),
    VocabularyEntry(
        event="decision_undone",
        effect="each row that the decision changed has its former state again; a row that it added is undone "
        "and no longer believed",
    ),
    VocabularyEntry(
        event="subjects_changed",
        effect="what ended in favour of a fact about another entity is active again, what ended in favour of one about "
        "its own ends again; two values of a slot of one entity are unresolved",
    ),
    VocabularyEntry(event="policy_set", effect="no row of facts; a row of policies"),
)

TURN_STATUSES: Final[Mapping[Status, str]] = {
    "pending": "it is being processed, or its end is not in the tables yet",
    "stored": "a turn: it said something that is kept, or repeated or changed what was known",
    "nothing_stored": "a turn: nothing in it is to be remembered",
    "done": "a command: it was carried out as a whole",
    "rejected": "understood and not wanted, nothing was changed: over a limit, empty, or a command that does not apply",
    "failed": "not understood, nothing was changed: no turn, or no valid reply of the model",
}
FACT_STATUSES: Final[Mapping[FactStatus, str]] = {
    "active": "it is believed",
    "pending_confirmation": "its overwrite waits for a confirmation; it is found and flagged, and is not believed",
    "superseded": "another fact took its place, by a replacement, a merge or a correction; or it came as late news",
    "archived": "it was contradicted or rejected, or lost its conflict",
    "expired": "its end has come",
    "retracted": "it ended with nothing in its place, or was deleted",
    "undone": "the decision that brought it was undone",
}
SETTLEMENTS: Final[Mapping[Settlement, str]] = {
    "confirmed": "the overwrite took effect",
    "rejected": "the known facts stay",
    "overtaken": "something newer ended it",
    "deleted": "it was deleted",
    "undone": "the decision that held it was undone",
}
