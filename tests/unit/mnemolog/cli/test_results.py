"""What people are shown: rates without a figure are unknown, and a command that reached nobody says so."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from mnemolog.cli.output import program_name
from mnemolog.cli.show_decisions import show_diff, show_quality, show_receipts, show_results, show_status, show_why_not
from mnemolog.cli.show_facts import show_search, show_unresolved
from mnemolog.client.producer import CommandReceipt
from mnemolog.client.search import SearchResult
from mnemolog.projections.queries.diff import Change, ChangedFact, Diff
from mnemolog.projections.queries.pending import UnresolvedFact
from mnemolog.projections.queries.quality import CostFigures, DecisionQuality, HeldOverwrites, ModelCost
from mnemolog.projections.queries.results import EventResult, WriteResult
from mnemolog.projections.queries.trace import Trace, TracedCall
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.projections.search.search import LeftOutHits, LeftOutReason
from mnemolog.schemas.costs import Cost
from tests.support.builders.hits import a_fact, a_hit, a_turn_hit

AT = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_rate_without_a_figure_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    held = HeldOverwrites(held=0, confirmed=0, rejected=0, overtaken=0, open=0, oldest_seconds=0.0, median_seconds=0.0)
    show_quality(DecisionQuality(since=AT, until=AT, overwrites=(), decisions=0, held=held, unresolved=0, stale=0))
    shown = " ".join(capsys.readouterr().out.split())
    assert "rate of wrong ones unknown" in shown
    assert "resolution rate unknown" in shown


def test_money_is_shown_by_model_and_in_all_or_as_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    held = HeldOverwrites(held=0, confirmed=0, rejected=0, overtaken=0, open=0, oldest_seconds=0.0, median_seconds=0.0)
    partly = Cost(amount=None, known="1.5", unknown=("m2",))
    models = [
        ModelCost(model=model, input_tokens=7, cached_tokens=0, output_tokens=3, cost=cost)
        for model, cost in (("m1", Cost(amount="1.5", known="1.5")), ("m2", Cost(amount=None, unknown=("m2",))))
    ]
    costs = CostFigures(first=AT.date(), last=AT.date(), turns=2, total=partly, models=tuple(models))
    show_quality(
        DecisionQuality(since=AT, until=AT, overwrites=(), decisions=0, held=held, unresolved=0, stale=0, costs=costs)
    )
    lines = capsys.readouterr().out.splitlines()
    shown = " ".join(" ".join(lines).split())
    assert "2 turns published from 2026-03-01 to 2026-03-01 (UTC): at least 1.5 USD, unknown price of m2" in shown
    assert [line.split() for line in lines if line.strip().startswith(("m1", "m2"))] == [
        ["m1", "7", "0", "3", "1.5"],
        ["m2", "7", "0", "3", "unknown"],
    ]
    assert [line for line in lines if len(line) > 80] == []
    show_results([WriteResult(turn_id="t1", status="facts", success=True, cost=partly)])
    assert "at least 1.5 USD, unknown price of m2" in " ".join(capsys.readouterr().out.split())


def test_a_command_that_is_not_waited_for_names_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipts([CommandReceipt(command_id="c1")])
    assert capsys.readouterr().out.splitlines() == [
        "command c1 was sent",
        f"its result: {program_name()} status c1 --wait",
    ]


def test_a_policy_changes_no_fact(capsys: pytest.CaptureFixture[str]) -> None:
    set_policy = EventResult(fact_id=None, text=None, event="policy_set", reason="a human set the policy of the scope")
    show_results([WriteResult(turn_id="c1", status="done", order="set_policy", success=True, memories=(set_policy,))])
    assert capsys.readouterr().out.splitlines()[1:3] == ["no fact changed", "    policy_set"]


def test_a_command_without_a_scope_says_that_none_was_sent(capsys: pytest.CaptureFixture[str]) -> None:
    show_receipts([])
    show_results([])
    assert capsys.readouterr().out.count("no scope matches: no command was sent") == 2


def test_the_reason_of_a_refusal_is_wrapped_at_its_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_results([WriteResult(turn_id="t1", status="rejected", error="closed_fact: undo what closed it, " * 5)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "turn t1: rejected"
    assert lines[1].startswith("reason: closed_fact: undo what closed it")
    assert [line for line in lines if len(line) > 80] == []


def test_changes_are_shown_in_the_order_of_time_and_an_undo_with_its_fact(capsys: pytest.CaptureFixture[str]) -> None:
    fact_id, old_id = uuid4(), uuid4()

    def change(event: str, text: str | None, days: int, **fields: Any) -> Change:
        common = {"old": (), "reason": "told so", "decided_by": "human"} | fields
        return Change(at=AT + timedelta(days=days), event=event, fact_id=fact_id, text=text, **common)

    rome = ChangedFact(fact_id=old_id, text="Lives in Rome.")
    show_diff(
        Diff(
            since=AT,
            until=AT + timedelta(days=9),
            axis="believed",
            added=(change("fact_added", "Lives in Rome.", 1), change("fact_added", "Skis.", 3)),
            expired=(change("fact_expired", None, 4, old=(rome,)),),
            undone=(change("decision_undone", "Lives in Bern.", 2, old=(rome,), status="active"),),
        )
    )
    shown = " ".join(capsys.readouterr().out.split())
    places = [
        shown.index(text)
        for text in ("added: Lives in Rome.", "undone: Lives in Bern.", "added: Skis.", "expired: Lives in Rome.")
    ]
    assert places == sorted(places)
    assert f"instead of {old_id} Lives in Rome." in shown
    assert "active from then on" in shown


def test_turns_that_were_found_come_after_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    show_search(SearchResult(hits=(a_hit(),), mode="hybrid", turns=(a_turn_hit(),)))
    facts, turns = capsys.readouterr().out.split("1 turn, found by words")
    assert "1 fact, found by meaning and words" in facts
    assert "t1" in turns
    assert "I live in Bern." in turns
    assert "score 0.300" in turns
    assert "said by Alice, 2026-03-01" in turns
    assert "1 fact" in turns
    show_search(SearchResult(hits=(), mode="lexical", turns=(a_turn_hit(),)))
    assert "fact, found" not in capsys.readouterr().out


def test_the_parts_of_a_score_and_what_is_left_out_are_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    left_out: dict[LeftOutReason, LeftOutHits] = {"below_threshold": LeftOutHits(facts=3, first=())}
    found = SearchResult(
        hits=(a_hit(text_part=0.025),), mode="hybrid", turns=(a_turn_hit(),), left_out=left_out,
        left_out_turns={"over_top_k": 1},
    )  # fmt: skip
    show_search(found)
    assert "of it" not in capsys.readouterr().out
    show_search(replace(found, explained=True))
    shown = " ".join(capsys.readouterr().out.split())
    assert "of it vector 0.100, text 0.025" in shown
    assert "of it text 0.200, names 0.100" in shown
    assert "no hits: 3 facts, below threshold" in shown
    assert "no hits: 1 turn, over top k" in shown


@pytest.mark.parametrize(
    ("excerpt", "said"), [("I live in Bern.", 'said: "I live in Bern."'), ("", "imported: no turn says it")]
)
def test_what_nobody_has_said_is_shown_as_imported(capsys: pytest.CaptureFixture[str], excerpt: str, said: str) -> None:
    fact = replace(a_fact(), excerpt=excerpt, unresolved=True)
    show_unresolved(
        [UnresolvedFact(fact=fact, beside=(), reason="r", model=None, since=AT, age=timedelta(1), event_id=uuid4())]
    )
    shown = capsys.readouterr().out
    assert said in shown
    assert 'said: ""' not in shown


def test_calls_that_other_turns_shared_are_shown_with_these_turns(capsys: pytest.CaptureFixture[str]) -> None:
    calls = (
        TracedCall(stage="extract", turns=3, request="0f3a", others=("t2", "t3")),
        TracedCall(stage="extract", turns=2, request="51d2", others=("t3",)),
    )
    show_why_not(WhyNot(turn_id="t1", status="facts", facts=1, missing=(), shared_calls=calls))
    trace = Trace(decisions=(), reprompts=(), omitted=(), thresholds=None, shared_calls=calls)
    show_status(WriteResult(turn_id="t1", status="facts", success=True, trace=trace))
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("Its extraction shared a call with 2 other turns: t2, t3 (request 0f3a).") == 2
    assert shown.count("Its extraction shared a call with 1 other turn: t3 (request 51d2).") == 2
