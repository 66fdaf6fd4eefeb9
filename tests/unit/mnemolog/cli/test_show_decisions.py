"""How ends of turns and commands, changes, figures and policies are shown: what is unknown or not done is said."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer

from mnemolog.cli.commands import _read_instructions, _show_policies
from mnemolog.cli.output import program_name
from mnemolog.cli.show import show_diff, show_quality, show_results, show_status, show_why_not
from mnemolog.cli.tables import WHOLE_IDS
from mnemolog.projections.queries.diff import Change, ChangedFact, Diff
from mnemolog.projections.queries.quality import CostFigures, DecisionQuality, HeldOverwrites, ModelCost
from mnemolog.projections.queries.results import FactChange, Result
from mnemolog.projections.queries.trace import Trace, TracedCall
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.schemas.costs import Cost
from mnemolog.schemas.instructions import DescribedCategory, ForbiddenTopic, Instructions
from mnemolog.schemas.policy import Limits, Policy, StoredPolicies

AT = datetime(2026, 3, 1, tzinfo=UTC)
PARTLY = Cost(amount=None, known="1.5", unknown=("m2",))


def quality(**fields: Any) -> DecisionQuality:
    held = HeldOverwrites(held=0, confirmed=0, rejected=0, overtaken=0, open=0, oldest_seconds=0.0, median_seconds=0.0)
    return DecisionQuality(
        since=AT, until=AT, overwrites=(), decisions=0, held=held, unresolved=0, stale=0, **fields
    )  # fmt: skip


def test_rates_and_money_by_model_and_in_all_are_shown_or_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shown: Callable[..., str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "overwrite rate unknown, rate of wrong ones unknown" in shown(show_quality, quality())
    assert "resolution rate unknown" in shown(show_quality, quality())
    costs = (Cost(amount="1.5", known="1.5"), Cost(amount=None, unknown=("m2",)))
    models = tuple(
        ModelCost(model=model, input_tokens=7, cached_tokens=0, output_tokens=3, cost=cost)
        for model, cost in zip(("m1", "m2"), costs, strict=True)
    )
    show_quality(quality(costs=CostFigures(first=AT.date(), last=AT.date(), turns=2, total=PARTLY, models=models)))
    lines = capsys.readouterr().out.splitlines()
    total = "2 turns published from 2026-03-01 to 2026-03-01 (UTC): at least 1.5 USD, unknown price of m2"
    assert total in " ".join(" ".join(lines).split())
    assert [line.split() for line in lines if line.strip().startswith(("m1", "m2"))] == [
        ["m1", "7", "0", "3", "1.5"],
        ["m2", "7", "0", "3", "unknown"],
    ]
    assert [line for line in lines if len(line) > 80] == []
    turn = Result(turn_id="t1", status="stored", cost=PARTLY)
    assert "at least 1.5 USD, unknown price of m2" in shown(show_results, [turn])


def test_a_command_names_the_next_step_or_that_nothing_was_sent_or_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_results([Result(turn_id="c1", order="delete")])
    next_step = f"its result: {program_name()} status c1 --wait"
    assert capsys.readouterr().out.splitlines() == ["command c1 (delete): pending", next_step]
    set_policy = FactChange(fact_id=None, text=None, event="policy_set", reason="a person set the policy of the scope")
    show_results([Result(turn_id="c1", status="done", order="set_policy", changes=(set_policy,))])
    assert capsys.readouterr().out.splitlines()[1:3] == ["no fact changed", "    policy_set"]


def test_the_reason_of_a_refusal_is_wrapped_at_its_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_results([Result(turn_id="t1", status="rejected", error="closed_fact: undo what closed it, " * 5)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "turn t1: rejected"
    assert lines[1].startswith("reason: closed_fact: undo what closed it")
    assert [line for line in lines if len(line) > 80] == []


def test_changes_are_shown_in_the_order_of_time_and_an_undo_with_its_fact(shown: Callable[..., str]) -> None:
    fact_id, old_id = uuid4(), uuid4()

    def change(event: str, text: str | None, days: int, **fields: Any) -> Change:
        common = {"old": (), "reason": "told so", "decided_by": "person"} | fields
        return Change(at=AT + timedelta(days=days), event=event, fact_id=fact_id, text=text, **common)

    rome = ChangedFact(fact_id=old_id, text="Lives in Rome.")
    diff = Diff(
        since=AT,
        until=AT + timedelta(days=9),
        axis="believed",
        added=(change("fact_added", "Lives in Rome.", 1), change("fact_added", "Skis.", 3)),
        expired=(change("fact_expired", None, 4, old=(rome,)),),
        undone=(change("decision_undone", "Lives in Bern.", 2, old=(rome,), status="active"),),
    )
    text = shown(show_diff, diff)
    changes = ("added: Lives in Rome.", "undone: Lives in Bern.", "added: Skis.", "expired: Lives in Rome.")
    places = [text.index(words) for words in changes]
    assert places == sorted(places)
    assert f"instead of {old_id} Lives in Rome." in text
    assert "active from then on" in text
    assert "so since 2026-03-02 00:00 UTC" in shown(show_diff, replace(diff, axis="true"))


def test_calls_that_other_turns_shared_are_shown_with_these_turns(shown: Callable[..., str]) -> None:
    calls = (
        TracedCall(stage="extract", turns=3, request="0f3a", others=("t2", "t3")),
        TracedCall(stage="extract", turns=2, request="51d2", others=("t3",)),
    )
    sentences = (
        "Its extraction shared a call with 2 other turns: t2, t3 (request 0f3a). "
        "Its extraction shared a call with 1 other turn: t3 (request 51d2)."
    )
    why_not = WhyNot(turn_id="t1", status="stored", facts=1, missing=(), shared_calls=calls)
    assert f"{sentences} every statement became a fact" in shown(show_why_not, why_not)
    trace = Trace(decisions=(), reprompts=(), omitted=(), thresholds=None, shared_calls=calls)
    assert sentences in shown(show_status, Result(turn_id="t1", status="stored", trace=trace))


def test_budgets_and_instructions_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    told = Instructions(
        text="Look for pets.",
        categories=(DescribedCategory(name="pet", description="animals"),),
        never_store=(ForbiddenTopic(name="salary"),),
        languages=("de",),
    )
    policy = Policy(limits=Limits(cost_per_day=Decimal("2.50")), when_spent="raw", instructions=told)
    _show_policies(StoredPolicies(tenant=policy), WHOLE_IDS)
    shown = " ".join(capsys.readouterr().out.split())
    assert "when_spent raw" in shown
    assert "cost_per_day 2.50" in shown
    assert f"instructions {told.version}; 14 characters; 1 category; never stored: salary; in de" in shown


def test_a_file_of_instructions_has_to_be_json(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    file.write_text('{"text": "Look for pets."}')
    assert _read_instructions(file) == {"text": "Look for pets."}
    file.write_text("Look for pets.")
    with pytest.raises(typer.BadParameter, match="is not JSON"):
        _read_instructions(file)
