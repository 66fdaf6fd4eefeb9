"""What becomes of a turn when a budget of its day is spent: no model is asked, and the turn says what happened."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY

from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, LimitName, WhenSpent
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import SharedCall
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import Prompt, RequestSource, TimedReply, Usage
from mnemolog.streams.stages.extract import ExtractStage, parse_source
from tests.support.harnesses.extract_harness import Shown

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPENT = LimitHit(name="cost_per_day", level="tenant", count=1.25, limit=1.0)
WORDS = "cost per day of the tenant: 1.25 of 1.0"


class NoModel:
    """Fails the test where it is asked; `paid` are the replies that were paid for before."""

    model = "none"

    def __init__(self, *paid: TimedReply) -> None:
        self.paid = paid

    async def unused_replies(self, source: RequestSource, question: Prompt | None) -> tuple[TimedReply, ...]:
        assert (source.stage, source.position, question) == ("extract", "conversation_turns/1/2", None)
        return self.paid


def over(name: LimitName = "cost_per_day") -> Callable[..., Awaitable[LimitHit]]:
    async def precheck(*_: object) -> LimitHit:
        return SPENT if name == "cost_per_day" else LimitHit(name=name, level="scope", count=1, limit=1)

    return precheck


async def extracted(
    when_spent: WhenSpent, precheck: Callable[..., Awaitable[LimitHit]], *paid: TimedReply, **turn: Any
) -> ExtractedFacts:
    async def rules_for(_: Scope, __: Overrides) -> EffectivePolicy:
        return EffectivePolicy(when_spent=when_spent)

    said = (Message(role="user", content="I live in Berlin."), Message(role="assistant", content="Nice!"))
    value = Turn(turn_id="t1", scope=Scope(user_id="mira"), messages=said, occurred_at=NOON, **turn).to_bytes()
    record = KafkaRecord(
        topic="conversation_turns", partition=1, offset=2, key=b"default/mira", value=value, timestamp=NOON.timestamp()
    )
    model: Any = NoModel(*paid)
    stage = ExtractStage(model, categories=CATEGORIES, rules_for=rules_for, precheck=precheck, backgrounds=Shown())
    return await stage(parse_source(record, max_bytes=10_000), record)


def counted(result: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_over_budget_total", {"result": result}) or 0.0


async def test_a_turn_over_its_budget_is_rejected_unless_told_otherwise() -> None:
    before = counted("reject")
    output = await extracted("reject", over())
    assert output.end is not None
    assert (output.end.outcome, output.end.reason, output.end.limit) == ("rejected", "limit", SPENT)
    assert output.end.detail.startswith(WORDS)
    assert counted("reject") == before + 1


async def test_a_turn_that_is_stored_raw_has_the_words_of_the_user_and_says_why() -> None:
    before = counted("raw")
    output = await extracted("raw", over())
    assert (output.end, output.infer) == (None, False)
    assert [fact.text for fact in output.facts] == ["I live in Berlin."]
    (step,) = output.steps
    assert (step.llm_calls, step.model) == (0, None)
    assert step.notes == (f"{WORDS}: each message of a user is stored as it is, and no model extracts facts",)
    assert counted("raw") == before + 1


@pytest.mark.parametrize("name", ["active_facts", "turns_per_minute", "bytes_per_turn"])
@pytest.mark.parametrize("when_spent", ["reject", "raw"])
async def test_other_limits_reject_whatever_is_set_for_budgets(when_spent: WhenSpent, name: LimitName) -> None:
    output = await extracted(when_spent, over(name))
    assert output.end is not None
    assert output.end.reason == "limit"


async def test_tokens_of_a_day_are_a_budget_too() -> None:
    output = await extracted("raw", over("tokens_per_day"))
    assert (output.end, output.infer) == (None, False)


@pytest.mark.parametrize("when_spent", ["reject", "raw"])
async def test_a_turn_over_its_budget_tells_what_was_paid_for_it_before(when_spent: WhenSpent) -> None:
    """Another turn had it asked in a call that they share, or it was delivered before."""
    shared = SharedCall(turns=3, request="0f3a", is_counted=False)
    usage = Usage(input_tokens=70, output_tokens=9, cached_tokens=20)
    part = TimedReply(text="{}", model="told", usage=usage, milliseconds=1, shared=shared)
    own = TimedReply(text="{}", model="told", usage=Usage(input_tokens=5), milliseconds=1)
    output = await extracted(when_spent, over(), part, own)
    steps = output.steps
    assert (sum(one.input_tokens for one in steps), sum(one.output_tokens for one in steps)) == (75, 9)
    assert (steps[0].llm_calls, steps[0].cached_tokens, steps[0].model) == (1, 20, "told")
    assert steps[0].notes == ("asked ahead in vain: 84 tokens of a call shared with other turns",)
    assert (await extracted("reject", over(), infer=False)).steps == ()
