"""What a commit did and cost, for every event; its trace; and why statements became no facts."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args
from uuid import UUID

import orjson
import pytest

from mnemolog.projections.queries.results import Result, Tokens
from mnemolog.projections.queries.trace import TracedCall, fact_ids_of_commit
from mnemolog.projections.queries.write_result import missing_statements, write_result
from mnemolog.schemas.command import Delete
from mnemolog.schemas.costs import Cost, ModelPrice, PriceTable
from mnemolog.schemas.events import EVENT_CLASSES
from mnemolog.schemas.policy import LimitHit, Policy
from mnemolog.schemas.provenance import DroppedStatement, DropReason, FactSnapshot, Provenance, Step, Thresholds
from mnemolog.texts import missing_sentence
from tests.support.builders.commits import (
    Draft,
    added,
    command_commit,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    policy_set,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
    subjects_changed,
    undone,
    with_decision,
)
from tests.support.builders.entity_events import entity_id_at, linked, registered, with_entities
from tests.support.builders.sample_logs import ACTIVE_STATE, reversal

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)


def counts(result: Result) -> dict[str, int]:
    """What is counted of facts, without the zeros."""
    names = ("added", "updated", "unchanged", "deleted", "pending")
    return {name: count for name in names if (count := getattr(result, f"facts_{name}"))}


TAKEN_BACK = (reversal(A, "superseded", ACTIVE_STATE), reversal(B, "active", None))
EVENTS: list[tuple[Draft, str, tuple[UUID, ...], Mapping[str, int]]] = [
    (added("New."), "fact_added", (), {"added": 1}),
    (skipped(A), "fact_skipped", (A,), {"unchanged": 1}),
    (confirmed(A), "fact_confirmed", (A,), {"unchanged": 1}),
    (merged("Richer.", A, B), "facts_merged", (A, B), {"added": 1, "updated": 2}),
    (replaced("Now.", A), "fact_replaced", (A,), {"added": 1, "updated": 1}),
    (contradicted("Indeed.", A), "fact_contradicted", (A,), {"added": 1, "deleted": 1}),
    (extended("More.", A), "fact_extended", (A,), {"added": 1}),
    (related("Else.", A), "facts_related", (A,), {"added": 1}),
    (expired(A, B), "fact_expired", (A, B), {"deleted": 2}),
    (expired(A, text="Ends in May."), "fact_expired", (A,), {"added": 1, "deleted": 1}),
    (retracted(A), "fact_retracted", (A,), {"deleted": 1}),
    (retracted(A, text="No longer.", ended_at=day(1)), "fact_retracted", (A,), {"added": 1, "deleted": 1}),
    (pending("Maybe.", A), "fact_pending", (A,), {"pending": 1}),
    (pending_confirmed(A, B, action="replace"), "pending_confirmed", (B,), {"added": 1, "updated": 1}),
    (pending_confirmed(A, B, action="contradict"), "pending_confirmed", (B,), {"added": 1, "deleted": 1}),
    (pending_rejected(A, confirmed=B), "pending_rejected", (B,), {"unchanged": 1, "deleted": 1}),
    (corrected("Rather.", A), "fact_corrected", (A,), {"added": 1, "updated": 1}),
    (resolved(A, B, action="replace"), "conflict_resolved", (B,), {"updated": 1}),
    (resolved(A, B, action="contradict"), "conflict_resolved", (B,), {"deleted": 1}),
    (resolved(A, B, action="keep_both"), "conflict_resolved", (B,), {"unchanged": 1}),
    (resolved(A, B, action="keep_old"), "conflict_resolved", (B,), {"deleted": 1}),
    (undone(C, *TAKEN_BACK), "decision_undone", (A, B), {"updated": 1, "deleted": 1}),
    (subjects_changed(reversal(A, "archived", ACTIVE_STATE), entities=(C,)), "subjects_changed", (A,), {"updated": 1}),
    (policy_set(Policy(add_only=True)), "policy_set", (), {}),
]


@pytest.mark.parametrize(("draft", "word", "targets", "expected"), EVENTS)
def test_every_event_has_its_word_its_targets_and_its_counts(
    draft: Draft, word: str, targets: tuple[UUID, ...], expected: Mapping[str, int]
) -> None:
    result = write_result(commit("1", draft))
    (memory,) = result.changes
    assert (memory.event, memory.targets) == (word, targets)
    assert counts(result) == expected
    assert orjson.loads(orjson.dumps(result))["changes"][0]["event"] == word


def test_every_event_is_among_them() -> None:
    assert {word for _, word, *_ in EVENTS} == EVENT_CLASSES.keys()


def test_what_a_wordless_event_is_about_is_told_by_what_stood_before() -> None:
    before = FactSnapshot(fact_id=A, text="Lives in Bern.", confidence=0.9, true_from=day(0))
    deleted = command_commit("c1", Delete(fact_ids=(A,)), with_decision(retracted(A), before=(before,)), actor="Bob")
    result = write_result(deleted)
    assert [(one.fact_id, one.text) for one in result.changes] == [(A, "Lives in Bern.")]
    assert (result.status, result.success, result.source_kind) == ("done", True, "command")
    assert (result.order, result.actor) == ("delete", "Bob")


def test_flags_and_actions_are_told() -> None:
    made = commit(
        "1",
        added("Beside.", unresolved=True),
        pending("Maybe.", A, action="replace", needs_human=True, guard="human_word"),
        undone(C, undone_event="fact_replaced"),
    )
    first, second, third = write_result(made).changes
    flags = (first.unresolved, second.action, second.needs_human, third.action)
    assert flags == (True, "replace", True, "fact_replaced")
    assert (second.fact_id, third.fact_id) == (fact_id_at(made, 1), None)
    several = write_result(commit("1", added("New."), skipped(A), skipped(A), merged("Richer.", B, C)))
    assert (several.skipped, counts(several)) == (2, {"added": 2, "updated": 2, "unchanged": 1})


def test_entities_count_once_and_new_ones_apart() -> None:
    told = with_entities(
        commit("1", added("Ana and Rex live in Bern."), added("Ana sings.")),
        registered("Rex", kind="animal"),
        linked(0, A, entity_id_at(commit("1"))),
        linked(1, A),
    )
    assert (write_result(told).entities_resolved, write_result(told).entities_added) == (2, 1)
    assert write_result(commit("2", added("It rains."))).entities_resolved == 0


def test_costs_are_told_by_stage_and_in_all() -> None:
    asked: dict[str, Any] = {"llm_calls": 2, "input_tokens": 500, "output_tokens": 60, "cached_tokens": 384}
    steps = (
        Step(stage="extract", milliseconds=300, reprompts=1, model="m1", **asked),
        Step(stage="embed", milliseconds=20, embedding_calls=0.25, input_tokens=30, model="e1"),
        Step(stage="resolve", milliseconds=10, llm_calls=1, input_tokens=7, output_tokens=3, model="m1"),
        Step(stage="resolve", milliseconds=5, model="m2", prompt_version="resolve-2"),
    )
    result = write_result(commit("1", added("A."), steps=steps))
    assert [stage.stage for stage in result.stages] == ["extract", "embed", "resolve"]
    resolve = result.stages[2]
    assert (resolve.milliseconds, resolve.models, resolve.prompt_versions) == (15, ("m1", "m2"), ("resolve-2",))
    assert resolve.tokens == Tokens(input=7, output=3)
    assert (result.tokens.total, result.llm_calls, result.stages[0].reprompts) == (600, 3, 1)
    assert (result.milliseconds, result.embedding_calls) == ({"extract": 300, "embed": 20, "resolve": 15}, 0.25)
    assert result.duration_ms == 2000  # from the turn's publication to the decision
    assert orjson.loads(orjson.dumps(result))["tokens"] == {"input": 537, "output": 63, "cached": 384, "total": 600}
    assert result.stages[1].tokens.cached is None


def test_money_is_told_by_stage_and_in_all_or_that_it_is_unknown() -> None:
    steps = (
        Step(stage="extract", milliseconds=1, llm_calls=1, input_tokens=1000, output_tokens=200, model="m1"),
        Step(stage="embed", milliseconds=1, embedding_calls=0.5, input_tokens=40, model="e1"),
    )
    made = commit("1", added("A."), steps=steps)
    chat = ModelPrice(model="m*", input=Decimal("0.4"), output=Decimal("1.6"))
    partly = write_result(made, prices=PriceTable((chat,), "EUR"))
    assert partly.cost == Cost(amount=None, known="0.00072", currency="EUR", unknown=("e1",))
    assert [stage.cost.amount for stage in partly.stages] == ["0.00072", None]
    whole = write_result(made, prices=PriceTable((chat, ModelPrice(model="e1", input=Decimal("0.02"))), "EUR"))
    assert str(whole.cost) == "0.0007208 EUR"
    assert orjson.loads(orjson.dumps(whole))["cost"]["amount"] == "0.0007208"
    assert write_result(made).cost.amount is None


def test_what_a_model_weighed_counts_as_a_conflict_even_where_a_guard_held_it() -> None:
    made = commit(
        "1",
        with_decision(added("A."), by="rule"),
        with_decision(replaced("B.", A), by="model", verdict="REPLACE"),
        with_decision(pending("C.", B), by="rule", verdict="CONTRADICT", guard="high_confidence"),
        with_decision(added("D.", unresolved=True), by="rule", shown=(A,)),
    )
    assert write_result(made).conflicts == 3


def test_a_limit_tells_count_and_limit() -> None:
    hit = LimitHit(name="active_facts", level="scope", count=100, limit=100)
    refused = commit("1", outcome="rejected", reason="limit", detail=str(hit), limit=hit, attempt=2)
    result = write_result(refused)
    assert (result.success, result.attempt) == (False, 2)
    assert result.limit == LimitHit(name="active_facts", level="scope", count=100, limit=100)
    assert result.error == "limit: active facts of the scope: 100 of 100"


def traced() -> tuple[Any, dict[UUID, str]]:
    """A commit with something of everything that a trace tells, and the texts of its candidates."""
    near = DroppedStatement(text="Y.", reason="near_duplicate", similarity=0.99)
    before = FactSnapshot(fact_id=A, text="Lives in Bern.", confidence=0.9, true_from=day(0))
    steps = (
        Step(
            stage="extract",
            milliseconds=1,
            complaints=("no JSON",),
            conversation=("t0",),
            known=(B, C),
            notes=("slow",),
            dropped=(DroppedStatement(text="X.", reason="recalled"),),
        ),
        Step(stage="embed", milliseconds=1, dropped=(near,)),
        Step(stage="resolve", milliseconds=1, call_turns=3, request="0f3a", shared_with=("t1", "t2")),
    )
    thresholds = Thresholds(embedding_model="e1", duplicate=0.9, raw_duplicate=0.9, conflict=0.6, near_duplicate=0.9)
    event = with_decision(
        pending("Lives in Rome.", A, action="replace"),
        by="rule",
        verdict="REPLACE",
        guard="high_risk",
        model="m1",
        prompt_version="resolve-2",
        before=(before,),
    )
    made = commit("1", event, skipped(B, "Has a cat."), provenance=Provenance(steps=steps, thresholds=thresholds))
    return made, {A: "Lives in Bern.", B: "Has one cat."}


def test_the_trace_tells_what_was_retrieved_decided_reprompted_and_left_out() -> None:
    made, texts = traced()
    assert write_result(made).trace is None
    trace = write_result(made, texts).trace
    assert trace is not None
    first, second = trace.decisions
    assert (first.event, first.by, first.verdict, first.guard) == ("fact_pending", "rule", "REPLACE", "high_risk")
    assert (first.statement, first.model, first.prompt_version) == ("Lives in Rome.", "m1", "resolve-2")
    assert [(one.fact_id, one.similarity, one.text) for one in first.retrieved] == [(A, 0.8, "Lives in Bern.")]
    assert [(one.text, one.confidence) for one in first.before] == [("Lives in Bern.", 0.9)]
    assert (second.event, second.statement, second.retrieved[0].text) == ("fact_skipped", "Has a cat.", "Has one cat.")
    assert [(one.stage, one.complaint) for one in trace.reprompts] == [("extract", "no JSON")]
    assert [(one.text, one.reason, one.similarity) for one in trace.omitted] == [
        ("X.", "recalled", None),
        ("Y.", "near_duplicate", 0.99),
    ]
    assert trace.thresholds is not None
    assert trace.thresholds["conflict"] == 0.6
    assert set(fact_ids_of_commit(made)) == {A, B, C, fact_id_at(made)}
    assert (trace.background.turn_ids, trace.background.notes) == (("t0",), ("slow",))
    assert missing_statements(made, texts).shared_calls == trace.shared_calls
    assert trace.shared_calls == (TracedCall(stage="resolve", turns=3, request="0f3a", others=("t1", "t2")),)
    assert [(fact.fact_id, fact.text) for fact in trace.background.facts] == [(B, "Has one cat."), (C, None)]


def test_a_quotation_covers_only_sentences_that_have_its_words() -> None:
    made = commit("1", added("Likes tea.", excerpt="tea"), added("Has cats.", excerpt="\u732b"))
    said = ["I like Tea. I work on a steamboat.", "\u732b\u304c\u597d\u304d\u3002\u72ac\u3082\u3002"]
    missing = missing_statements(made, {}, said).missing
    assert [one.text for one in missing] == ["I work on a steamboat.", "\u72ac\u3082\u3002"]


def test_why_not_tells_of_each_statement_that_became_no_fact() -> None:
    made, texts = traced()
    answer = missing_statements(made, texts)
    assert (answer.facts, answer.status) == (0, "stored")
    assert [(one.text, one.reason) for one in answer.missing] == [
        ("X.", "recalled"),
        ("Y.", "near_duplicate"),
        ("Lives in Rome.", "pending_confirmation"),
        ("Has a cat.", "duplicate"),
    ]
    duplicate = answer.missing[3]
    assert missing_sentence(duplicate) == 'skipped as a duplicate of "Has one cat." (equal words)'
    assert (duplicate.fact_id, duplicate.similarity) == (B, 0.8)
    assert "similarity 0.990" in missing_sentence(answer.missing[1])


@pytest.mark.parametrize("reason", [reason for union in get_args(DropReason) for reason in get_args(union)])
def test_every_reason_to_leave_out_has_words(reason: Any) -> None:
    step = Step(stage="extract", milliseconds=0, dropped=(DroppedStatement(text="X.", reason=reason),))
    (one,) = missing_statements(commit("1", steps=(step,)), {}).missing
    assert (one.reason, missing_sentence(one)[:10]) == (reason, "left out: ")


def test_what_the_model_took_nothing_from_is_told_sentence_by_sentence() -> None:
    said = [
        "I have a cat. Where do I live? My sister's cat is old.\nIt's \u201cold\u201d, 15.5 years.",
        "\u732b\u3002 ... ",
    ]
    recalled = DroppedStatement(text="Has an old sister.", reason="recalled", excerpt="my SISTER'S cat is old")
    step = Step(stage="extract", milliseconds=0, dropped=(recalled,))
    made = commit("1", added("Has a cat.", excerpt="I have a cat"), steps=(step,))
    missing = missing_statements(made, {}, said).missing
    assert [(one.text, one.reason) for one in missing] == [
        ("Has an old sister.", "recalled"),
        ("Where do I live?", "not_taken"),
        ("It's \u201cold\u201d, 15.5 years.", "not_taken"),
        ("\u732b\u3002", "not_taken"),
    ]
    assert missing_sentence(missing[1]) == "the model took nothing from it"


def test_what_was_not_read_for_its_length_is_a_note_on_the_result() -> None:
    cases: list[tuple[list[DropReason], str]] = [
        (["too_long", "question", "too_long"], "2 parts of the text left unread"),
        (["question"], ""),
    ]
    for reasons, words in cases:
        dropped = tuple(DroppedStatement(text="x", reason=reason) for reason in reasons)
        notes = write_result(commit("1", steps=(Step(stage="extract", milliseconds=0, dropped=dropped),))).notes
        assert words in " ".join(notes)
        assert bool(notes) == bool(words)


def test_what_an_extraction_lists_as_left_out_is_not_told_twice() -> None:
    step = Step(stage="extract", milliseconds=0, dropped=(DroppedStatement(text="Why?", reason="question"),))
    missing = missing_statements(commit("1", steps=(step,)), {}, ["Why? And more."]).missing
    assert [(one.text, one.reason) for one in missing] == [("Why?", "question")]
    failed = missing_statements(commit("1", outcome="failed", reason="invalid_reply"), {}, ["Why?"]).missing
    assert [one.reason for one in failed] == ["failed"]


def test_a_turn_that_came_to_nothing_as_a_whole_says_so() -> None:
    hit = LimitHit(name="turns_per_minute", level="tenant", count=61, limit=60)
    for fields, reason, words in (
        ({"outcome": "rejected", "reason": "limit", "limit": hit}, "limit", "turns per minute of the tenant: 61 of 60"),
        ({"outcome": "rejected", "reason": "empty"}, "rejected", "refused: empty"),
        ({"outcome": "failed", "reason": "invalid_reply", "detail": "no JSON"}, "failed", "invalid_reply: no JSON"),
        ({}, "nothing_to_remember", "nothing to remember"),
    ):
        (one,) = missing_statements(commit("1", **fields), {}).missing
        assert (one.text, one.reason) == (None, reason)
        assert words in missing_sentence(one)


def test_a_turn_whose_every_statement_became_a_fact_misses_nothing() -> None:
    answer = missing_statements(commit("1", added("A."), replaced("B.", A)), {})
    assert (answer.facts, answer.missing) == (2, ())
