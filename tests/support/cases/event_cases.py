"""Event cases: one event, driven from a turn or a command to the rows, and the words of other vocabularies for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from mnemolog.projections.queries.results import Result
from mnemolog.projections.write.effects import HUMAN_CONFIDENCE
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.provenance import Verdict
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.pipeline_harness import START, Person, day
from tests.support.servers.kafka_client import wait_until
from tests.support.servers.scripted_model import ScriptedDecision

Row = Mapping[str, Any]
OPEN_STATUSES: Final = ("active", "pending_confirmation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one turn or command changed in the facts of a person, by text; `new` is the statement about the fact `old`.

    `pending` are the overwrites that wait after it, `relations` how facts relate, by their texts.
    """

    result: Result
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


def old_text(person: Person) -> str:
    """The fact that is known first."""
    return f"{person.name} writes with Emacs."


def new_text(person: Person) -> str:
    """The new fact, which concerns the known one."""
    return f"{person.name} writes with Vim."


def merged_text(person: Person) -> str:
    return f"{person.name} writes with Emacs and Vim."


def say(person: Person, text: str, decision: ScriptedDecision | None = None, **fields: Any) -> Awaitable[Result]:
    """A turn with a fact, about which the model decides `decision`; all have equal vectors, only the texts differ."""
    decisions = {text: decision} if decision else None
    return person.say(fact_json(text, "the editor", **fields), decisions=decisions)


def say_old(person: Person, **fields: Any) -> Awaitable[Result]:
    return say(person, old_text(person), **fields)


async def changed(person: Person, action: Awaitable[Result], *, new: str | None = None) -> Change:
    """The change by `action`, a turn or a command: the tables are read before and after it."""
    before = await person.facts()
    result = await action
    after = await person.facts()
    texts = {row["fact_id"]: text for text, row in after.items()}
    pending = "SELECT * FROM pending_confirmations WHERE fact_id = ANY(%s) AND settled_at IS NULL"
    relations = "SELECT * FROM fact_relations WHERE fact_id = ANY(%s)"
    return Change(
        result=result,
        events=await person.events(result.turn_id),
        before=before,
        after=after,
        pending=await person.harness.rows(pending, list(texts)),
        relations=[
            (texts[row["fact_id"]], row["relation"], texts[row["related_id"]])
            for row in await person.harness.rows(relations, list(texts))
        ],
        old_text=old_text(person),
        new_text=new or new_text(person),
    )


async def told(person: Person, action: Verdict, *, known: Mapping[str, Any] | None = None, **fields: Any) -> Change:
    """The change by a statement about a known fact, on which the model decides `action`."""
    await say_old(person, **known or {})
    decided = {name: fields.pop(name) for name in ("text", "ended_at") if name in fields}
    return await changed(person, say(person, new_text(person), ScriptedDecision(action, **decided), **fields))


async def held(person: Person, action: Verdict = "REPLACE", **fields: Any) -> Change:
    """An uncertain statement about a fact of a high-risk category: the overwrite is pending."""
    change = await told(person, action, known={"category": "health"}, certainty="weak", **fields)
    assert change.events == ["fact_pending"]
    return change


async def confirmed(person: Person, action: Verdict, **fields: Any) -> Change:
    """The same, and a human confirms it."""
    (row,) = (await held(person, action, **fields)).pending
    change = await changed(person, person.run_command("confirm", row["fact_id"]))
    (fact,) = (one for one in change.after.values() if one["fact_id"] == row["fact_id"])
    assert fact["status"] == "active"
    assert fact["confidence"] >= HUMAN_CONFIDENCE
    assert fact["believed_from"] == fact["state_since"] > fact["recorded_at"]
    assert change.pending == []
    return change


async def settled(person: Person, action: str) -> Change:
    """The model gives no valid decision, and a human resolves the conflict."""
    await say_old(person)
    await person.say(fact_json(new_text(person), "the editor"), answers=["Let me think about it."])
    assert (await person.facts())[new_text(person)]["unresolved"]
    change = await changed(person, person.run_command("resolve", await person.fact_id(new_text(person)), action))
    assert not change.new["unresolved"]
    return change


CaseRun = Callable[[Person], Awaitable[Change]]


@dataclass(frozen=True, slots=True)
class EventCase:
    """Drives `event`, checks the rows, and shows at most one word of each vocabulary."""

    event: str
    vocabulary: Mapping[str, str]
    run: CaseRun

    @property
    def name(self) -> str:
        return self.run.__name__


EVENT_CASES: Final[list[EventCase]] = []
ADD: Final = {"resolution": "ADD", "arbitration": "insert", "reconciliation": "ADD"}
OVERWRITE: Final = {"arbitration": "supersede", "reconciliation": "UPDATE", "classification": "update"}
MERGE: Final = {**OVERWRITE, "resolution": "MERGE", "arbitration": "update"}
REPLACE: Final = {**OVERWRITE, "resolution": "REPLACE"}
CONTRADICT: Final = {**OVERWRITE, "resolution": "CONTRADICT"}
KEEP: Final = {"resolution": "KEEP", "arbitration": "noop", "reconciliation": "NOOP", "classification": "noop"}
END: Final = {"arbitration": "expire", "reconciliation": "DELETE"}


def event_case(event: str, **words: str) -> Callable[[CaseRun], CaseRun]:
    """Register a case; it is run with a person without facts."""

    def collect(run: CaseRun) -> CaseRun:
        EVENT_CASES.append(EventCase(event, words, run))
        return run

    return collect


@event_case("fact_added", **ADD)
async def first_statement(ann: Person) -> Change:
    change = await changed(ann, say_old(ann), new=old_text(ann))
    assert (change.new["status"], change.new["mention_count"], change.new["true_from"]) == ("active", 1, START)
    assert change.new["believed_from"] == change.new["recorded_at"]
    return change


@event_case("fact_skipped", **KEEP)
async def equal_text_is_skipped(ann: Person) -> Change:
    await say_old(ann)
    change = await changed(ann, say_old(ann))
    assert (change.old["mention_count"], change.old["confidence"], change.new_texts) == (2, 0.95, set())
    assert change.old["last_confirmed_at"] == day(1)
    return change


@event_case("fact_confirmed", **KEEP)
async def same_meaning_confirms(ann: Person) -> Change:
    await say_old(ann, certainty="weak")
    again = f"Emacs is what {ann.name} writes with."
    change = await changed(ann, say(ann, again, ScriptedDecision("KEEP")), new=again)
    assert (change.old["mention_count"], change.old["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert change.new_texts == set()
    return change


@event_case("facts_merged", **MERGE)
async def merge(ann: Person) -> Change:
    change = await told(ann, "MERGE", text=merged_text(ann))
    merged = change.after[merged_text(ann)]
    assert (change.old["status"], change.new_texts) == ("superseded", {merged_text(ann)})
    assert (merged["status"], merged["supersedes"], merged["true_from"]) == ("active", [change.old["fact_id"]], START)
    assert change.old["believed_to"] == merged["believed_from"]
    return change


@event_case("fact_replaced", **REPLACE)
async def replacement(ann: Person) -> Change:
    change = await told(ann, "REPLACE")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    assert change.new["supersedes"] == [change.old["fact_id"]]
    assert change.old["closed_at"] == change.new["recorded_at"]
    return change


@event_case("fact_contradicted", **CONTRADICT)
async def contradiction(ann: Person) -> Change:
    change = await told(ann, "CONTRADICT", known={"certainty": "strong"})
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    assert change.old["believed_to"] == change.new["believed_from"]
    return change


@event_case("fact_extended", **ADD, classification="extend")
async def extension(ann: Person) -> Change:
    change = await told(ann, "EXTEND")
    assert (change.old, change.new["status"]) == (change.before[old_text(ann)], "active")
    assert change.relations == [(new_text(ann), "extends", old_text(ann))]
    return change


@event_case("facts_related", **ADD, classification="similar")
async def similar_fact(ann: Person) -> Change:
    change = await told(ann, "SIMILAR")
    assert (change.old, change.new["status"]) == (change.before[old_text(ann)], "active")
    assert change.relations == [(new_text(ann), "similar", old_text(ann))]
    return change


@event_case("fact_expired", **END)
async def announced_end(ann: Person) -> Change:
    change = await told(ann, "EXPIRE", ended_at=day(7))
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("expired", day(7), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change


@event_case("fact_expired", **END)
async def timer_expiry(ann: Person) -> Change:
    async def by_the_timer() -> Result:
        query = "SELECT source_id FROM memory_events WHERE event = 'fact_expired' AND user_id = %s"
        (event,) = await wait_until(partial(ann.harness.rows, query, ann.name))
        return await ann.harness.memory.status(str(event["source_id"]), user_id=ann.name)

    said = [{"role": "user", "content": f"{old_text(ann).removesuffix('.')} until {day(2):%d %B %Y}."}]
    fact = fact_json(old_text(ann), "the editor", excerpt=said[0]["content"], valid_until=day(2).isoformat())
    await ann.say(fact, messages=said)
    change = await changed(ann, by_the_timer())
    assert (change.old["status"], change.old["true_to"], change.new_texts) == ("expired", day(2), set())
    assert (change.result.source_kind, change.result.order) == ("command", "expire")
    return change


@event_case("fact_retracted", **END)
async def retraction(ann: Person) -> Change:
    change = await told(ann, "RETRACT", action_hint="retract")
    assert (change.old["status"], change.old["true_to"], change.old["believed_to"]) == ("retracted", day(1), None)
    assert (change.new["status"], change.old["superseded_by"]) == ("active", change.new["fact_id"])
    return change


@event_case("fact_retracted", **END)
async def deletion(ann: Person) -> Change:
    await say_old(ann)
    change = await changed(ann, ann.run_command("delete", await ann.fact_id(old_text(ann))))
    assert (change.old["status"], change.old["true_to"], change.new_texts) == ("retracted", None, set())
    assert change.old["believed_to"] == change.old["state_since"]
    return change


@event_case("fact_pending", arbitration="mark_pending_confirmation")
async def pending(ann: Person) -> Change:
    change = await held(ann)
    (row,) = change.pending
    assert (change.old, change.new["believed_from"]) == (change.before[old_text(ann)], None)
    assert (row["targets"], row["action"], row["guard"]) == ([change.old["fact_id"]], "replace", "high_risk")
    return change


@event_case("pending_confirmed", **MERGE)
async def confirmed_merge(ann: Person) -> Change:
    change = await confirmed(ann, "MERGE", text=merged_text(ann))
    merged = change.after[merged_text(ann)]
    assert (change.old["status"], change.old["superseded_by"]) == ("superseded", merged["fact_id"])
    return change


@event_case("pending_confirmed", **REPLACE)
async def confirmed_replacement(ann: Person) -> Change:
    change = await confirmed(ann, "REPLACE")
    assert (change.old["status"], change.old["true_to"]) == ("superseded", day(1))
    return change


@event_case("pending_confirmed", **CONTRADICT)
async def confirmed_contradiction(ann: Person) -> Change:
    change = await confirmed(ann, "CONTRADICT")
    assert (change.old["status"], change.old["believed_to"]) == ("archived", change.new["believed_from"])
    return change


@event_case("pending_confirmed", **END)
async def confirmed_retraction(ann: Person) -> Change:
    change = await confirmed(ann, "RETRACT")
    assert (change.old["status"], change.old["true_to"]) == ("retracted", day(1))
    return change


@event_case("pending_confirmed", **REPLACE)
async def confirmed_by_repetition(ann: Person) -> Change:
    await held(ann)
    again = say(ann, new_text(ann), ScriptedDecision("KEEP", (new_text(ann),)), certainty="weak")
    change = await changed(ann, again)
    assert (change.new["mention_count"], change.new["confidence"]) == (2, pytest.approx(0.60 + 0.25 * 0.40))
    assert (change.old["status"], change.old["true_to"], change.pending) == ("superseded", day(1), [])
    return change


@event_case("pending_rejected", **KEEP)
async def rejected_by_command(ann: Person) -> Change:
    waiting = await held(ann)
    change = await changed(ann, ann.run_command("reject", waiting.new["fact_id"]))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert change.old == waiting.old
    return change


@event_case("pending_rejected", **KEEP)
async def rejected_by_old_fact_repeated(ann: Person) -> Change:
    await held(ann)
    change = await changed(ann, say_old(ann, certainty="weak"))
    assert (change.new["status"], change.new["believed_from"], change.pending) == ("archived", None, [])
    assert (change.old["mention_count"], change.old["confidence"]) == (2, 0.95)  # equal words
    return change


@event_case("fact_corrected", **CONTRADICT)
async def correction(ann: Person) -> Change:
    await say_old(ann, certainty="weak")
    change = await changed(ann, ann.run_command("correct", await ann.fact_id(old_text(ann)), new_text(ann)))
    assert (change.new["authority"], change.new["confidence"], change.new["status"]) == ("human", 1.0, "active")
    assert (change.old["status"], change.old["believed_to"]) == ("superseded", change.new["believed_from"])
    return change


@event_case("fact_corrected", **REPLACE)
async def correction_with_end(ann: Person) -> Change:
    await say_old(ann)
    correct = ann.run_command("correct", await ann.fact_id(old_text(ann)), new_text(ann), ended_at=day(5))
    change = await changed(ann, correct)
    assert (change.old["status"], change.old["true_to"], change.new["true_from"]) == ("superseded", day(5), day(5))
    return change


@event_case("conflict_resolved", **KEEP)
async def resolved_keep_old(ann: Person) -> Change:
    change = await settled(ann, "keep_old")
    assert (change.new["status"], change.old) == ("archived", change.before[old_text(ann)])
    return change


@event_case("conflict_resolved", **REPLACE)
async def resolved_replace(ann: Person) -> Change:
    change = await settled(ann, "replace")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("superseded", day(1), "active")
    return change


@event_case("conflict_resolved", **CONTRADICT)
async def resolved_contradict(ann: Person) -> Change:
    change = await settled(ann, "contradict")
    assert (change.old["status"], change.old["true_to"], change.new["status"]) == ("archived", None, "active")
    return change


@event_case("decision_undone")
async def undone_replacement(ann: Person) -> Change:
    before = (await told(ann, "REPLACE")).before[old_text(ann)]
    change = await changed(ann, ann.run_command("undo", turn_id=f"{ann.name}-1"))
    assert change.old == {**before, "state_since": change.old["state_since"]}
    assert (change.new["status"], change.new["believed_to"]) == ("undone", change.new["state_since"])
    return change


@event_case("subjects_changed")
async def one_person_of_two(ann: Person) -> Change:
    for name, text, value in (("Vera", old_text(ann), "Emacs"), ("Willy", new_text(ann), "Vim")):
        entities = [{"name": name, "type": "person", "role": "subject"}]
        fact = fact_json(text, key="editor", value=value, single_valued=True, subject=name, entities=entities)
        said = [{"role": "user", "content": f"{name} is {ann.name}, and {text}"}]
        await ann.say(fact, decisions={text: ScriptedDecision("ADD")}, messages=said)
    query = "SELECT entity_id FROM entities WHERE user_id = %s AND name IN ('Vera', 'Willy') ORDER BY name"
    vera, willy = [row["entity_id"] for row in await ann.harness.rows(query, ann.name)]
    change = await changed(ann, ann.run_command("entities.merge", vera, into=willy))
    unresolved = {**change.before[new_text(ann)], "unresolved": True, "state_since": change.new["state_since"]}
    assert change.after == {**change.before, new_text(ann): unresolved}
    return change


@event_case("policy_set")
async def policy_change(ann: Person) -> Change:
    await say_old(ann)
    change = await changed(ann, ann.run_command("admin.set_policy", Policy(add_only=True)))
    assert change.before == change.after
    (row,) = await ann.harness.rows("SELECT policy FROM policies WHERE user_id = %s", ann.name)
    assert Policy.model_validate(row["policy"]) == Policy(add_only=True)
    return change


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
    return lambda change: (change.new_text, relation, change.old_text) in change.relations and _added(change)


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
