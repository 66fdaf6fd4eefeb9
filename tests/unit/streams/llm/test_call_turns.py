"""Which of the turns that wait behind one share its call."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemolog.schemas.policy import EffectivePolicy, Limits
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.llm.shared_prompt import CallTurn, message_tokens, most_turns, turns_together

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES = EffectivePolicy()


def placed(number: int, said: str = "I live in Berlin.", **fields: Any) -> CallTurn:
    given: dict[str, Any] = {
        "turn_id": f"t{number}",
        "scope": Scope(user_id="mira"),
        "messages": (Message(role="user", content=said),),
        "occurred_at": NOON + timedelta(minutes=number),
    }
    return CallTurn(
        turn=Turn(**(given | fields)), published_at=NOON, position=f"turns/0/{number}", offset=number, size=100
    )


def together(*waiting: CallTurn | None, rules: EffectivePolicy = RULES) -> list[str]:
    first, *others = turns_together(placed(0), waiting, rules)
    assert first == placed(0)
    return [one.turn.turn_id for one in others]


ASSISTANT: dict[str, Any] = {"messages": (Message(role="assistant", content="Where do you live?"),)}


def test_turns_of_the_conversation_that_wait_go_together_up_to_a_command() -> None:
    assert together(placed(1), placed(2)) == ["t1", "t2"]
    assert together(placed(1), None, placed(2)) == ["t1"]


@pytest.mark.parametrize(
    "other",
    [
        placed(1, infer=False),
        placed(1, overrides=Overrides(chat_model="other")),
        placed(1, overrides=Overrides(reprompts=0)),
        placed(1, **ASSISTANT),
        placed(1, scope=Scope(user_id="mira", run_id="r1")),
        replace(placed(1), size=5000),
    ],
    ids=["raw", "another model", "other overrides", "the assistant alone", "another run", "too large"],
)
def test_a_turn_that_is_asked_about_otherwise_is_passed_over(other: CallTurn) -> None:
    rules = EffectivePolicy(limits={"scope": Limits(bytes_per_turn=1000)})
    assert together(other, placed(2), rules=rules) == ["t2"]


@pytest.mark.parametrize(
    "other",
    [
        placed(1, turn_id="t0"),
        placed(1, occurred_at=NOON - timedelta(seconds=1)),
        placed(1, occurred_at=NOON + timedelta(seconds=RULES.conversation_age + 1)),
        placed(1, said="word " * RULES.call_tokens),
    ],
    ids=["published again", "said earlier", "said much later", "too many tokens"],
)
def test_a_turn_that_does_not_follow_ends_the_call(other: CallTurn) -> None:
    assert together(other, placed(2)) == []


def test_the_number_of_turns_and_their_tokens_are_bounded() -> None:
    many = [placed(number) for number in range(1, 60)]
    assert len(together(*many)) == RULES.call_turns - 1
    assert len(together(*many, rules=EffectivePolicy(call_turns=5))) == 4
    tokens = message_tokens(many[0].turn)
    assert len(together(*many, rules=EffectivePolicy(call_tokens=7 * tokens))) == 6
    assert together(*many, rules=EffectivePolicy(call_tokens=0)) == []


def test_a_system_message_takes_no_tokens_as_no_prompt_shows_it() -> None:
    told = (Message(role="system", content="word " * 50), *placed(1).turn.messages)
    assert message_tokens(placed(1, messages=told).turn) == message_tokens(placed(1).turn)


def test_no_more_turns_than_a_minute_allows() -> None:
    limits = {"tenant": Limits(turns_per_minute=8), "scope": Limits(turns_per_minute=3)}
    assert most_turns(EffectivePolicy(limits={"tenant": limits["tenant"], "scope": limits["scope"]})) == 3
    assert most_turns(EffectivePolicy(limits={"scope": Limits(turns_per_minute=0)})) == 1


@pytest.mark.parametrize("rules", [EffectivePolicy(conversation_messages=0), EffectivePolicy(conversation_tokens=0)])
def test_where_no_conversation_is_shown_no_turn_is_shown_to_another(rules: EffectivePolicy) -> None:
    assert together(placed(1), rules=rules) == []
