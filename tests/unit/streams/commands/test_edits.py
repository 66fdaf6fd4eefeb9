"""What commands with a text mean for facts, and what refuses them: pure functions, without tables."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.command import Correct, Delete, Edit, Import, ImportedFact, Resolve, Update
from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactContradicted,
    FactCorrected,
    FactReplaced,
    FactsMerged,
)
from mnemolog.schemas.facts import CONFIDENCE_OF_CERTAINTY, EmbeddedFact, ExtractedFact, NewFact
from mnemolog.schemas.ids import event_id, fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands import edits, status_changes
from mnemolog.streams.commands.context import CommandRefusedError
from mnemolog.streams.commands.edits import value_after_edit
from mnemolog.streams.ends import EndRules
from tests.support.builders.commits import ALICE, BOB, day, pseudo_random_vector
from tests.support.builders.stored_facts import CONTEXT, by_id, stored_fact


def embedded_fact(*texts: str) -> list[EmbeddedFact]:
    return [
        EmbeddedFact(
            fact=ExtractedFact(text=text, excerpt=text, search_text=text), vector=pseudo_random_vector(text, 3)
        )
        for text in texts
    ]


def updates(*given: tuple[StoredFact, str]) -> tuple[Update, list[EmbeddedFact]]:
    order = Update(edits=tuple(Edit(fact_id=fact.fact_id, text=text) for fact, text in given))
    return order, embedded_fact(*(text for _, text in given))


def new_version(kind: str, old: StoredFact, text: str, **fields: Any) -> NewFact:
    """The fact that an update, or a correction, brings in the place of `old`."""
    edit = Edit(fact_id=old.fact_id, text=text, **fields)
    if kind == "correct":
        return edits.correct(CONTEXT, Correct(edit=edit), by_id(old), embedded_fact(text))[0].fact
    (event,) = edits.update(CONTEXT, Update(edits=(edit,)), by_id(old), embedded_fact(text))
    assert event.new_fact is not None
    return event.new_fact


def refusal_detail(reason: str, *parts: str) -> Any:
    return pytest.raises(CommandRefusedError, match=rf"(?s){reason}: .*" + ".*".join(parts))


def test_an_update_keeps_all_that_it_does_not_change() -> None:
    old = stored_fact(value="Bern", category="identity", importance=0.7, subject="Alice", valid_until=day(9))
    order, words = updates((old, "Alice lives in Basel."))
    (event,) = edits.update(CONTEXT, order, by_id(old), words)
    assert isinstance(event, FactReplaced)
    kept = ("key", "category", "importance", "subject", "valid_until")
    assert [getattr(event.fact, name) for name in kept] == [getattr(old.fact, name) for name in kept]
    assert event.fact.value == "Basel"
    assert (event.ended_at, event.fact.true_from, event.fact.confidence) == (day(5), day(5), 0.8)
    assert (event.fact.fact_id, event.event_id) == (fact_id(ALICE.owner, "c1", 0), event_id(ALICE.owner, "c1", 0))
    assert event.fact.vector == words[0].vector
    assert event.decision.reason == "a person updated it"


@pytest.mark.parametrize("kind", ["update", "correct"])
@pytest.mark.parametrize(
    ("old", "value", "new", "is_other"),
    [
        ("Alice is allergic to nuts.", "nuts", "Alice plays chess.", True),
        ("Alice is allergic to nuts.", "nuts", "Alice is allergic to milk.", False),
        ("Alice is allergic to nuts.", "nuts", "Alice is severely allergic to nuts.", False),
        ("Alice is allergic to nuts.", "nuts", "Alice only dislikes nuts.", True),
        ("Likes tea.", None, "Likes coffee.", False),
        ("Alice ist gegen Nüsse allergisch.", None, "Alice arbeitet bei Acme.", True),
        ("爱丽丝对坚果过敏", None, "我住北京", True),
        ("我住在上海", None, "我住在北京", False),
    ],
)
def test_a_text_about_something_else_has_no_key_or_category_of_the_old_one(
    kind: str, old: str, value: str | None, new: str, is_other: bool
) -> None:
    slot: dict[str, Any] = {"key": "allergy", "category": "health", "value": value, "single_valued": True}
    known = stored_fact(old, **slot, importance=0.9, valid_until=day(20), subject="Alice", metadata={"shelf": 1})
    fact = new_version(kind, known, new)
    found = (fact.key, fact.category, fact.single_valued, fact.importance, fact.valid_until)
    assert found == ((None, "other", False, 0.5, None) if is_other else ("allergy", "health", True, 0.9, day(20)))
    assert (fact.subject, fact.metadata) == ("Alice", {"shelf": 1})
    given: dict[str, Any] = {"key": "employer", "categories": ("pets", "professional"), "metadata": {}}
    named = new_version(kind, known, new, **given)
    assert (named.key, named.categories, named.metadata) == ("employer", ("professional", "pets"), None)


@pytest.mark.parametrize("kind", ["update", "correct"])
@pytest.mark.parametrize(
    ("old", "subject", "new", "key", "value", "of"),
    [
        ("Alice lives in Ulm.", "Alice", "Alice works at Bosch.", "employer", "Bosch", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice is vegan.", "diet", "vegan", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice has a cat called Ulm.", "cat", "Ulm", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice's wife is called Ana.", "wife", "Ana", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice moved to Rome.", "home_city", "Rome", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice lives in Ulm with Tom.", "home_city", "Ulm", "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice no longer lives in Ulm.", "home_city", None, "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice works in Ulm.", None, None, "Alice"),
        ("Alice lives in Ulm.", "Alice", "Alice has a flat in Ulm.", None, None, "Alice"),
        ("Alice lives in Ulm.", "Alice", "Bea lives in Ulm.", "home_city", "Ulm", "Bea"),
        ("Alice lives in Ulm.", "Alice", "Alice's sister lives in Ulm.", "home_city", "Ulm", "Alice's sister"),
        ("Alice's sister lives in Ulm.", "Alice's sister", "Alice lives in Ulm.", "home_city", "Ulm", "Alice"),
        ("Alice Kovac lives in Ulm.", "Alice Kovac", "Alice lives in Ulm.", "home_city", "Ulm", "Alice Kovac"),
        ("Alice lives in Ulm.", "Alice", "Tom plays the piano.", None, None, "Tom"),
        ("Alice lives in Ulm.", "Alice", "Alice's brother Tom plays the piano.", None, None, "Alice's brother Tom"),
        ("Alice lives in Ulm.", "Alice", "Lunch is at noon.", None, None, "Alice"),
        ("Alice likes Ulm.", "Alice", "Yusuf likes Ulm.", "home_city", "Ulm", "Yusuf"),
        ("I live in Ulm.", None, "I live in Rome.", "home_city", "Rome", None),
        ("The user lives in Ulm.", None, "Bob lives in Ulm.", "home_city", "Ulm", "Bob"),
    ],
)
def test_a_text_fills_the_slot_that_it_names_of_whom_it_names(  # noqa: PLR0917 -- a row
    kind: str, old: str, subject: str | None, new: str, key: str | None, value: str | None, of: str | None
) -> None:
    slot: dict[str, Any] = {"key": "home_city", "category": "identity", "value": "Ulm", "single_valued": True}
    known = stored_fact(old, **slot, subject=subject)
    fact = new_version(kind, known, new)
    assert (fact.key, fact.value, fact.subject) == (key, value, of)
    category = {"employer": "professional", "diet": "hard_preference", "wife": "relationship", "home_city": "identity"}
    assert fact.category == category.get(key or "", "other")
    edit = Edit(fact_id=known.fact_id, text=new)
    notes = edits.edit_notes(
        Correct(edit=edit), edits.correct(CONTEXT, Correct(edit=edit), by_id(known), embedded_fact(new))
    )
    assert bool(notes) == (key != "home_city")


@pytest.mark.parametrize("kind", ["update", "correct"])
def test_the_value_of_an_application_stays_with_the_value_that_it_is_of(kind: str) -> None:
    old = stored_fact(value="Bern", value_json={"geonames": 2661552})
    assert new_version(kind, old, "Alice lives in Bern now.").value_json == {"geonames": 2661552}
    assert new_version(kind, old, "Alice lives in Basel.").value_json is None
    assert new_version(kind, old, "Alice lives in Basel.", value_json=[2661604]).value_json == [2661604]


@pytest.mark.parametrize("kind", ["update", "correct", "delete"])
def test_a_command_takes_what_stands_for_a_former_version_and_says_so(kind: str) -> None:
    former, current = stored_fact(status="superseded"), stored_fact("Alice lives in Rome.")
    edit = Edit(fact_id=former.fact_id, text="Alice plays chess.")
    facts = {former.fact_id: current, current.fact_id: current}
    payload: Any = {
        "update": Update(edits=(edit, edit.model_copy(update={"fact_id": current.fact_id}))),
        "correct": Correct(edit=edit),
        "delete": Delete(fact_ids=(former.fact_id, current.fact_id)),
    }[kind]
    words = embedded_fact(edit.text, edit.text)
    carry_out: Any = status_changes.delete if kind == "delete" else getattr(edits, kind)
    events = carry_out(CONTEXT, payload, facts, *([] if kind == "delete" else [words]))
    assert [event.affected_ids for event in events] == [(current.fact_id,)]
    notes = edits.edit_notes(payload, events)
    assert str(former.fact_id) in notes
    assert ("nothing in common" in notes) == (kind != "delete")


@pytest.mark.parametrize(
    ("true_from", "issued_at", "ended_at"),
    [(day(0), day(4), day(4)), (day(4.5), day(4), day(4.5)), (day(0), day(8), CONTEXT.now)],
)
def test_nothing_ends_before_it_began_or_later_than_now(
    true_from: datetime, issued_at: datetime, ended_at: datetime
) -> None:
    old = stored_fact(true_from=true_from)
    order, words = updates((old, "Alice lives in Basel."))
    (event,) = edits.update(replace(CONTEXT, issued_at=issued_at), order, by_id(old), words)
    assert isinstance(event, FactReplaced)
    assert (event.ended_at, event.fact.true_from) == (ended_at, ended_at)


def test_what_has_not_begun_yet_never_was_true() -> None:
    old = stored_fact(true_from=day(90))
    order, words = updates((old, "Alice will live in Basel."))
    (event,) = edits.update(CONTEXT, order, by_id(old), words)
    assert isinstance(event, FactContradicted)
    assert (event.targets, event.fact.true_from) == ((old.fact_id,), day(90))


def test_the_same_edit_twice_counts_once_and_two_edits_of_one_fact_contradict_each_other() -> None:
    one, other = stored_fact(), stored_fact("Alice has a cat.")
    order, words = updates((one, "Basel."), (other, "A dog."), (one, "Basel."))
    made = edits.update(CONTEXT, order, by_id(one, other), words)
    texts = [(event.ordinal, event.fact.text) for event in made if isinstance(event, FactReplaced)]
    assert texts == [(0, "Basel."), (1, "A dog.")]
    order, words = updates((one, "Basel."), (one, "Biel."))
    with refusal_detail("invalid_command", "edited twice"):
        edits.update(CONTEXT, order, by_id(one), words)


CLOSED, FOREIGN, PENDING, HUMAN = (
    stored_fact(status="superseded"),
    stored_fact("A secret.", scope=BOB),
    stored_fact(status="pending_confirmation"),
    stored_fact(authority="human"),
)


@pytest.mark.parametrize(
    ("old", "reason", "detail"),
    [
        (CLOSED, "closed_fact", " is superseded: see its history for the fact in its place"),
        (FOREIGN, "foreign_fact", "belongs to another scope: send the command in the scope"),
        (PENDING, "closed_fact", "waits for a confirmation"),
        (HUMAN, "human_word", "only a human can correct it"),
        (None, "unknown_fact", "is not known: check the id"),
    ],
)
def test_what_cannot_be_edited_refuses_the_whole_command(old: StoredFact | None, reason: str, detail: str) -> None:
    """Only a human overrules a human."""
    fine, aimed = stored_fact(), old or stored_fact()
    facts = by_id(fine, *([old] if old else []))
    order, words = updates((fine, "Yes."), (aimed, "Alice lives in Basel."))
    with refusal_detail(reason, detail) as refused:
        edits.update(CONTEXT, order, facts, words)
    assert "secret" not in str(refused.value)
    correction = Correct(edit=order.edits[1])
    if old is not HUMAN:
        with refusal_detail(reason, detail):
            edits.correct(CONTEXT, correction, facts, words[1:])
        return
    (event,) = edits.correct(CONTEXT, correction, facts, words[1:])
    assert isinstance(event, FactCorrected)
    assert (event.fact.authority, event.fact.confidence, event.fact.true_from) == ("human", 1.0, old.true_from)
    assert (event.decision.by, event.decision.reason) == ("person", "a person corrected it")


def test_a_correction_of_what_has_ended_is_true_from_then_on() -> None:
    old = stored_fact()
    order, words = updates((old, "Alice lives in Basel."))
    (event,) = edits.correct(CONTEXT, Correct(edit=order.edits[0], ended_at=day(2)), by_id(old), words)
    assert isinstance(event, FactCorrected)
    assert (event.ended_at, event.fact.true_from) == (day(2), day(2))
    with refusal_detail("invalid_command", "give an ended_at that is not before that"):
        edits.correct(CONTEXT, Correct(edit=order.edits[0], ended_at=day(-1)), by_id(old), words)


@pytest.mark.parametrize("kind", ["update", "correct"])
@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("Alice lives in Bonn.", None, "Bonn"),
        ("Alice lives in the old town of Bonn.", None, None),
        ("Alice lives in the old town of Bonn.", "Bonn", "Bonn"),
        ("Alice lives in Bonn.", "", None),
    ],
)
def test_a_new_text_has_the_given_value_or_the_one_that_it_shows(
    kind: str, text: str, given: str | None, value: str | None
) -> None:
    old = stored_fact("Alice lives in Munich.", value="Munich")
    assert new_version(kind, old, text, value=given).value == value


@pytest.mark.parametrize("kind", ["update", "correct"])
@pytest.mark.parametrize(
    ("before", "value", "denial", "text", "expected", "hint"),
    [
        ("Al lives in Oslo.", "Oslo", "Al no longer lives in Oslo.", "Al lives in Rome.", "Rome", "new"),
        ("Runs daily.", "daily", "Does not run.", "Runs yearly.", "yearly", "new"),
        ("Al wohnt in Ulm.", "Ulm", "Al wohnt nicht in Ulm.", "Al wohnt in Bonn.", "Bonn", "new"),
        ("Al lives in Oslo.", "Oslo", "Al no longer lives in Oslo.", "Al lives in Oslo.", "Oslo", "new"),
        ("Al lives in Oslo.", "Oslo", "Al no longer lives in Oslo.", "Al never lives in Oslo.", None, "retract"),
        ("Al lives in Oslo.", "Oslo", "Al left Oslo, not Rome.", "Al left Oslo.", "Oslo", "retract"),
    ],
)
def test_a_text_in_the_place_of_a_denial_has_the_value_that_it_shows_beside_what_was_denied(  # noqa: PLR0917 -- a row
    kind: str, before: str, value: str, denial: str, text: str, expected: str | None, hint: str
) -> None:
    former, old = stored_fact(before, value=value), stored_fact(denial, value=None, action_hint="retract")
    edit = Edit(fact_id=old.fact_id, text=text)
    order: Any = Correct(edit=edit) if kind == "correct" else Update(edits=(edit,))
    facts = by_id(old), embedded_fact(text), {old.fact_id: former}
    (event,) = getattr(edits, kind)(CONTEXT, order, *facts)
    fact = event.new_fact
    assert (fact.key, fact.value, fact.action_hint) == ("home_city", expected, hint)


def test_a_term_that_is_over_when_the_new_text_begins_is_none_of_its_own() -> None:
    late = replace(CONTEXT, issued_at=day(12), now=day(12))
    for until, expected in ((day(9), None), (day(12), None), (day(13), day(13))):
        old = stored_fact(valid_until=until)
        order, words = updates((old, "Alice lives there in Bern."))
        (event,) = edits.update(late, order, by_id(old), words)
        assert isinstance(event, FactReplaced)
        assert event.fact.valid_until == expected


def test_a_conflict_is_settled_against_what_is_given_or_still_open() -> None:
    doubtful, one = stored_fact(unresolved=True, true_from=day(3)), stored_fact(true_from=day(1))
    closed = stored_fact(status="archived")
    facts, beside = by_id(doubtful, one, closed), (one.fact_id, closed.fact_id)
    order = Resolve(fact_id=doubtful.fact_id, action="replace")
    (event,) = edits.resolve(CONTEXT, order, facts, beside, [])
    assert isinstance(event, ConflictResolved)
    assert (event.targets, event.ended_at) == ((one.fact_id,), day(3))
    with refusal_detail("closed_fact", str(closed.fact_id)):
        edits.resolve(CONTEXT, order.model_copy(update={"targets": (closed.fact_id,)}), facts, (), [])
    with refusal_detail("invalid_command", "name targets"):
        edits.resolve(CONTEXT, order, facts, (closed.fact_id,), [])
    with refusal_detail("not_unresolved", "nothing to settle"):
        edits.resolve(CONTEXT, order.model_copy(update={"fact_id": one.fact_id}), facts, beside, [])
    with refusal_detail("unknown_fact", "is not known"):
        edits.resolve(CONTEXT, order.model_copy(update={"fact_id": uuid4()}), facts, beside, [])


def test_a_merge_has_the_best_of_its_parents() -> None:
    doubtful = stored_fact(unresolved=True, true_from=day(3), confidence=0.6)
    one = stored_fact(true_from=day(1), confidence=0.9, authority="human")
    order = Resolve(fact_id=doubtful.fact_id, action="merge", text="Bern and Chur.")
    (event,) = edits.resolve(CONTEXT, order, by_id(doubtful, one), (one.fact_id,), embedded_fact("Bern and Chur."))
    assert isinstance(event, FactsMerged)
    assert event.targets == (doubtful.fact_id, one.fact_id)
    assert (event.fact.true_from, event.fact.confidence, event.fact.authority) == (day(1), 0.9, "human")
    assert event.fact.text == event.statement.text == "Bern and Chur."


@pytest.mark.parametrize("lasting_is_target", [False, True])
def test_what_holds_for_ever_and_what_ends_are_not_merged_by_hand(*, lasting_is_target: bool) -> None:
    """One of both would vanish with the term of the other, or outlive its own."""
    ends, lasts = stored_fact(valid_until=day(7), unresolved=True), stored_fact(unresolved=True)
    one, two = (ends, lasts)[:: 1 if lasting_is_target else -1]
    order = Resolve(fact_id=one.fact_id, targets=(two.fact_id,), action="merge", text="Both.")
    with refusal_detail("invalid_command", "they hold until different times"):
        edits.resolve(CONTEXT, order, by_id(one, two), (), embedded_fact("Both."))


@pytest.mark.parametrize("other", [{"key": "flatmate", "value": "Tom"}, {"key": "home_city", "value": "Chur"}])
def test_a_merge_by_hand_loses_no_slot(other: dict[str, Any]) -> None:
    one, two = stored_fact(key="home_city", value="Bern", unresolved=True), stored_fact(**other)
    order = Resolve(fact_id=one.fact_id, targets=(two.fact_id,), action="merge", text="Both.")
    with refusal_detail("invalid_command", "one fact holds one key and value"):
        edits.resolve(CONTEXT, order, by_id(one, two), (), embedded_fact("Both."))
    keyless = stored_fact("Alice likes Bern.", unresolved=True, key=None, value=None)
    order = Resolve(fact_id=keyless.fact_id, targets=(one.fact_id,), action="merge", text="Both.")
    (event,) = edits.resolve(CONTEXT, order, by_id(keyless, one), (), embedded_fact("Both."))
    assert isinstance(event, FactsMerged)
    assert (event.fact.key, event.fact.value) == ("home_city", "Bern")


HOME: dict[str, Any] = {"key": "home_city", "value": "Bern", "category": "identity", "subject": "Alice"}
KNOWN = stored_fact("Alice lives in Bern.", single_valued=True, **HOME)


def imported(
    text: str, *, known: StoredFact = KNOWN, metadata: dict[str, Any] | None = None, **fields: Any
) -> FactAdded | FactsMerged | None:
    """What the import of a fact adds beside a known one, or makes of it."""
    order = Import(fact=ImportedFact(text=text, **fields), metadata=metadata or {})
    rules = EndRules(at=CONTEXT.now, policy=EffectivePolicy(), user_names=())
    events = edits.import_fact(CONTEXT, order, embedded_fact(text)[0], by_id(known), rules)
    (event,) = events or (None,)
    assert event is None or isinstance(event, FactAdded | FactsMerged)
    return event


@pytest.mark.parametrize(
    "fields",
    [{}, {"key": "home_city", "confidence": 0.1, "importance": 0.1}, HOME | {"true_from": day(3)}],
)
def test_an_import_of_what_is_known_adds_nothing(fields: dict[str, Any]) -> None:
    assert imported(KNOWN.fact.text, **fields) is None


@pytest.mark.parametrize(
    ("text", "fields", "is_unresolved"),
    [
        ("alice lives in bern", {}, False),
        (KNOWN.fact.text, {"key": "residence"}, False),
        (KNOWN.fact.text, HOME | {"subject": "Tom"}, False),
        (KNOWN.fact.text, HOME | {"speaker": "Tom"}, False),
        (KNOWN.fact.text, HOME | {"valid_until": day(90)}, False),
        ("Alice has her home in Bern.", HOME, False),
        ("Alice is in Rome until spring.", HOME | {"value": "Rome", "valid_until": day(90)}, False),
        ("Alice no longer lives in Oslo.", HOME | {"value": "Oslo", "action_hint": "retract"}, False),
        ("Alice lives in Rome.", HOME | {"value": "Rome", "subject": "Tom"}, False),
        ("Alice was born in Rome.", HOME | {"value": "Rome", "key": "birthplace"}, False),
        ("*", {}, False),
        ("Alice lives in Rome.", HOME | {"value": "Rome"}, True),
        ("Alice no longer lives in Bern.", HOME | {"action_hint": "retract"}, True),
    ],
)
def test_an_import_adds_what_is_new_unresolved_beside_a_rival(
    text: str, fields: dict[str, Any], *, is_unresolved: bool
) -> None:
    event = imported(text, **fields)
    assert isinstance(event, FactAdded)
    assert (event.fact.text, event.unresolved) == (text, is_unresolved)
    assert event.decision.shown == ((KNOWN.fact_id,) if is_unresolved else ())
    assert event.fact.true_from == fields.get("true_from", CONTEXT.issued_at)


@pytest.mark.parametrize(
    "more",
    [
        {"event_time": day(1)},
        {"authority": "human"},
        {"true_from": day(-400)},
        {"value_json": {"zip": 3000}},
        {"metadata": {"source": "crm"}},
    ],
)
def test_a_known_fact_goes_on_with_what_an_import_says_more(more: dict[str, Any]) -> None:
    event = imported(KNOWN.fact.text, **more)
    assert isinstance(event, FactsMerged)
    assert event.targets == (KNOWN.fact_id,)
    assert {name: getattr(event.fact, name) for name in more} == more
    kept = KNOWN.fact.model_dump(include={*HOME, "single_valued"})
    assert {name: getattr(event.fact, name) for name in kept} == kept


def test_a_known_fact_keeps_its_term_and_its_metadata_in_an_import() -> None:
    known = stored_fact(KNOWN.fact.text, valid_until=day(90), **HOME)
    known = replace(known, metadata={"source": "form"})
    event = imported(KNOWN.fact.text, known=known, authority="human", metadata={"source": "crm", "row": 7})
    assert isinstance(event, FactsMerged)
    assert (event.fact.valid_until, event.fact.metadata) == (day(90), {"source": "crm", "row": 7})


def test_an_import_without_a_confidence_has_that_of_its_certainty() -> None:
    event = imported("Alice may have a cat.", certainty="speculation")
    assert event is not None
    assert event.fact.confidence == CONFIDENCE_OF_CERTAINTY["speculation"]


LIVES = "Alice lives in Munich."


@pytest.mark.parametrize(
    ("old", "value", "new", "expected"),
    [
        (LIVES, "Munich", "Alice lives in Bonn", "Bonn"),
        (LIVES, "munich", "Alice lives in New York City.", "New York City"),
        ("Alice lives in New York.", "New York", "Alice lives in New Orleans.", "New Orleans"),
        ("Alice lives in New York City.", "New York City", "Alice lives in New York.", "New York"),
        ("Alice pays 900 euros of rent.", "900 euros", "Alice pays 950 euros of rent.", "950 euros"),
        ("Alice is a software engineer.", "software engineer", "Alice is a nurse.", "nurse"),
        ("Alcie lives in Munich.", "Munich", LIVES, "Munich"),
        (LIVES, "Munich", LIVES, "Munich"),
        ("Alice lives in York.", "York", "Alice lives in New York.", "New York"),
        ("Alice's sister is called Eva.", "Eva", "Alice's sister is called Eva Maria.", "Eva Maria"),
        ("Alice's birthday is 3 May.", "3 May", "Alice's birthday is 3 May 1990.", "3 May 1990"),
        (LIVES, "Munich", "Alice lives in Munich, Germany.", "Munich, Germany"),
        (LIVES, "Munich", "Alice lives in Bonn, Germany.", "Bonn, Germany"),
        (LIVES, "Munich", "Alice lives in Munich since 2020.", "Munich"),
        (LIVES, "Munich", "Alice no longer lives in Munich.", None),
        ("Alice does not live in Munich.", "Munich", "Alice does live in Munich.", None),
        (LIVES, "Munich", "Alice lives in Bonn since March.", None),
        (LIVES, "Munich", "Alice lives not in Munich but Bonn.", None),
        (LIVES, "Munich", "Alice moved to Bonn.", None),
        (LIVES, "Munich", "Alice lives in.", None),
        ("Alice lives near the sea.", "Brighton", "Alice lives near the lake.", None),
        ("Ulm is home; Alice loves Ulm.", "Ulm", "Ulm is home; Alice loves Bonn.", None),
        (LIVES, None, "Alice lives in Bonn.", None),
    ],
)
def test_a_value_is_read_where_the_text_shows_it(old: str, value: str | None, new: str, expected: str | None) -> None:
    assert value_after_edit(old, value, new) == expected


WORDS = st.lists(st.sampled_from(["Alice", "lives", "in", "Rome", "Oslo", "not"]), max_size=6).map(" ".join)


@given(old=WORDS, value=st.none() | WORDS, new=WORDS)
def test_a_value_occurs_in_the_new_text(old: str, value: str | None, new: str) -> None:
    found = value_after_edit(old, value, new)
    assert found is None or found in new or found == value


@given(old=st.text(), value=st.none() | st.text(), new=st.text())
def test_any_text_can_be_edited(old: str, value: str | None, new: str) -> None:
    assert value_after_edit(old, value, new) != ""
    assert value_after_edit(old, value, old) in (value, None)
