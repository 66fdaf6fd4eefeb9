"""The stage `extract` with a scripted model: facts, refusals, commands, limits, moods, what is shown beside a turn."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Command, CommandPayload, Delete, DeleteAll, Edit, Reject, Undo, Update
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.instructions import ForbiddenTopic, Instructions
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, LimitName, Limits, WhenSpent, WhenUnread
from mnemolog.schemas.provenance import Mood, Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import Background, EarlierMessage, SharedCall, ShownFact
from mnemolog.schemas.turn import Message, Overrides
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.extract_prompt import read_mood
from mnemolog.streams.llm.ports import PromptRefusedError, TimedReply, Usage
from mnemolog.streams.stages.extract import parse_source, raw_facts
from mnemolog.streams.stages.processor import envelope_reader
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.extract_harness import (
    FACTS,
    NOON,
    ScriptedModel,
    Shown,
    extracted,
    record_of,
    replied,
    turn,
)

BERLIN = replied("Mira lives in Berlin.")
INVENTED = replied("Mira owns a yacht.", quote="I own a yacht.")
TOKEN = SecretStr("s3cret")


def command(order: CommandPayload, **fields: Any) -> Command:
    return Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=NOON, order=order, **fields)


# A turn and what a model reads out of it.


async def test_a_turn_ahead_of_the_broker_has_its_time_and_says_so() -> None:
    ahead = turn().model_copy(update={"occurred_at": NOON + timedelta(hours=2)})
    model = ScriptedModel(BERLIN)
    output = await extracted(model, ahead)
    assert output.occurred_at == output.published_at == NOON
    (step,) = output.steps
    assert step.notes == ("occurred_at 2026-03-01T14:00:00+00:00 was ahead of the broker's time: capped to that",)
    assert f"occurred_at: {NOON:%Y-%m-%d %H:%M}" in model.questions[0].messages[1].content


async def test_facts_come_with_what_they_cost() -> None:
    value = turn().to_bytes()
    output = await extracted(ScriptedModel(BERLIN), value)
    assert [each.text for each in output.facts] == ["Mira lives in Berlin."]
    (step,) = output.steps
    assert (step.llm_calls, step.input_tokens, step.output_tokens, step.milliseconds) == (1, 10, 2, 4.5)
    assert (output.owner, output.origin.position, output.end) == ("default/mira", "conversation_turns/1/2", None)
    assert (output.size, step.notes) == (len(value), ())


async def test_a_fact_that_was_not_said_is_dropped() -> None:
    output = await extracted(ScriptedModel(INVENTED), turn())
    assert output.facts == ()
    assert output.end is not None
    assert output.end.outcome == "nothing_stored"
    (step,) = output.steps
    assert (step.llm_calls, step.reprompts) == (1, 0)
    assert [(dropped.text, dropped.reason) for dropped in step.dropped] == [("Mira owns a yacht.", "excerpt_not_found")]


async def test_what_was_recalled_is_no_evidence_and_an_echo_of_it_is_dropped() -> None:
    assert (await extracted(ScriptedModel(INVENTED, INVENTED), turn(recalled=("I own a yacht.",)))).facts == ()
    said = (Message(role="user", content="I read that Mira still lives in Berlin: where is my train?"),)
    told = turn(messages=said, recalled=("Mira lives in Berlin since May.", "Mira lives in Berlin."))
    output = await extracted(ScriptedModel(replied("Mira lives in Berlin.", quote="lives in Berlin")), told)
    assert output.facts == ()
    assert [(one.text, one.reason) for one in output.steps[0].dropped] == [("Mira lives in Berlin.", "recalled")]


async def test_after_a_reprompt_the_turn_has_failed_and_its_calls_are_counted() -> None:
    with pytest.raises(SourceEndedError) as failure:
        await extracted(ScriptedModel("nonsense", '{"facts": 3}'), turn())
    assert (failure.value.reason, failure.value.end.outcome) == ("invalid_reply", "failed")
    step = failure.value.step
    assert step is not None
    assert (step.llm_calls, step.reprompts, len(step.complaints)) == (2, 1, 1)
    assert "JSON" in step.complaints[0]


async def test_what_is_valid_of_a_reply_is_kept_and_the_rest_is_told() -> None:
    valid = fact_json("Mira lives in Berlin.", excerpt="I live in Berlin.", certainty=["sure"])
    reply = facts_reply(valid, fact_json("Mira is 30.", excerpt=""))
    output = await extracted(ScriptedModel(reply), turn())
    assert [each.text for each in output.facts] == ["Mira lives in Berlin."]
    assert output.end is None
    (step,) = output.steps
    assert (step.llm_calls, step.reprompts) == (1, 0)
    assert step.notes == ("fields of the reply could not be read and were passed over: certainty",)
    assert [(dropped.text, dropped.reason) for dropped in step.dropped] == [("Mira is 30.", "invalid_fact")]


async def test_a_refused_prompt_ends_the_turn_which_tells_what_the_reply_before_took() -> None:
    refusal = PromptRefusedError("content_filter", "no")
    for replies, notes in (((refusal,), None), (("no JSON", refusal), ("asked in vain: 12 tokens",))):
        with pytest.raises(SourceEndedError, match="content_filter") as refused:
            await extracted(ScriptedModel(*replies), turn())
        step = refused.value.step
        assert (step and step.notes) == notes
    assert step is not None
    assert (step.llm_calls, step.input_tokens, step.output_tokens) == (1, 10, 2)


@pytest.mark.parametrize(("when_unread", "kept"), [("dead_letter", []), ("raw", ["I live in Berlin."])])
@pytest.mark.parametrize("replies", [("nonsense", "{"), (PromptRefusedError("content_filter", "no"),)])
async def test_a_turn_that_no_model_could_read_brings_what_was_said_if_the_policy_says_so(
    replies: Sequence[str | PromptRefusedError], when_unread: WhenUnread, kept: Sequence[str]
) -> None:
    topic = ForbiddenTopic(name="money", words=("salary",))
    rules = EffectivePolicy(when_unread=when_unread, instructions=Instructions(never_store=(topic,)))
    said = tuple(Message(role="user", content=text) for text in ("I live in Berlin.", "My salary is high."))
    with pytest.raises(SourceEndedError) as failure:
        await extracted(ScriptedModel(*replies), turn(messages=said), rules=rules)
    assert failure.value.end.outcome == "failed"
    assert [fact.text for fact in failure.value.raw_facts] == kept


async def test_facts_end_with_the_turn_unless_they_say_otherwise() -> None:
    until = NOON + timedelta(days=3)
    output = await extracted(ScriptedModel(BERLIN), turn(valid_until=until))
    assert output.facts[0].valid_until == until


async def test_a_turn_may_say_which_model_is_asked_for_how_long_and_how_often() -> None:
    model = ScriptedModel("nonsense")
    with pytest.raises(SourceEndedError, match="invalid_reply"):
        await extracted(model, turn(overrides=Overrides(chat_model="small", llm_timeout=3.5, reprompts=0)))
    assert [(question.model, question.timeout) for question in model.questions] == [("small", 3.5)]


@pytest.mark.parametrize("value", [b"nonsense", b""])
async def test_what_is_no_turn_is_refused(value: bytes) -> None:
    with pytest.raises(SourceEndedError) as refused:
        await extracted(ScriptedModel(), value)
    assert refused.value.end.outcome == "failed"


async def test_a_model_name_that_fits_into_no_key_is_refused_where_it_arrives_or_ends_its_envelope() -> None:
    own, long = Overrides(chat_model="small"), b'"%s"' % (b"x" * 201)
    with pytest.raises(SourceEndedError, match=r"overrides\.chat_model.*at most 200 characters"):
        await extracted(ScriptedModel(), turn(overrides=own).to_bytes().replace(b'"small"', long))
    origin, scope = Origin(topic="t", partition=0, offset=7), Scope(user_id="mira")
    envelope = ExtractedFacts(
        source_id="t1", scope=scope, origin=origin, occurred_at=NOON, published_at=NOON, overrides=own
    )
    old = envelope.to_bytes().replace(b'"small"', long)
    received = envelope_reader(ExtractedFacts)(
        KafkaRecord(topic="extracted_facts", partition=0, offset=9, key=b"k", value=old, timestamp=0.0)
    )
    with pytest.raises(SourceEndedError, match="not_a_record"):
        received.require_valid()


# Raw turns: no model is asked.


async def test_a_raw_store_keeps_user_messages_and_asks_nobody() -> None:
    model, document = ScriptedModel(), "A sentence of a long document. " * 3000
    output = await extracted(model, turn(infer=False))
    assert [each.text for each in output.facts] == ["I live in Berlin."]
    assert model.sources == []
    contents = (("user", " exactly  so "), ("assistant", "noted"), ("user", "  "), ("user", document))
    messages = tuple(Message.model_validate({"role": role, "content": content}) for role, content in contents)
    facts = raw_facts(turn(infer=False, messages=messages))
    assert [(each.text, each.search_text) for each in facts] == [(" exactly  so ",) * 2, (document,) * 2]


# Commands.


async def test_a_command_travels_with_its_payload_and_texts_and_calls_no_model() -> None:
    model, order = ScriptedModel(), Update(edits=tuple(Edit(fact_id=one, text=f"{one.int} cats.") for one in FACTS))
    output = await extracted(model, command(order, actor="support"))
    assert (output.source_id, output.source_kind, output.order, output.actor) == ("c1", "command", order, "support")
    assert (output.scope, output.occurred_at, output.end) == (Scope(user_id="mira"), NOON, None)
    texts = ["0 cats.", "1 cats.", "2 cats."]
    assert [(each.text, each.search_text, each.excerpt) for each in output.facts] == [(text,) * 3 for text in texts]
    output = await extracted(model, command(DeleteAll(key="home_city")))
    assert (output.facts, output.end, model.sources) == ((), None, [])


@pytest.mark.parametrize(
    ("value", "source_id"),
    [
        (b'{"kind": "command"}', "conversation_turns/1/2"),
        (b'{"kind": "command", "turn_id": "t1"}', "conversation_turns/1/2"),
        (b'{"kind": "command", "command_id": "c1", "scope": {"user_id": "mira"}}', "c1"),
    ],
)
async def test_an_invalid_command_ends_as_a_command(value: bytes, source_id: str) -> None:
    with pytest.raises(SourceEndedError) as refused:
        await extracted(ScriptedModel(), value)
    assert (refused.value.reason, refused.value.end.outcome) == ("invalid_command", "rejected")
    envelope = parse_source(record_of(value), max_bytes=10_000).envelope
    assert (envelope.source_id, envelope.source_kind, envelope.order) == (source_id, "command", None)


@pytest.mark.parametrize(
    ("headers", "is_allowed", "is_valid"),
    [
        ((("mnemolog-token", b"s3cret"),), True, True),
        ((("mnemolog-token", b"guessed"),), False, True),
        ((("mnemolog-token", "s3cr\u00e9t".encode()),), False, True),
        ((), False, True),
        ((), False, False),
    ],
)
async def test_a_command_must_have_the_token_where_one_is_set(
    headers: tuple[tuple[str, bytes], ...], *, is_allowed: bool, is_valid: bool
) -> None:
    given = command(DeleteAll())
    value = given.to_bytes() if is_valid else given.to_bytes().replace(b"delete_all", b"explode")
    record = record_of(value, headers=headers)
    source = parse_source(record, max_bytes=10_000, command_token=TOKEN)
    envelope = source.envelope
    assert (envelope.source_kind, envelope.scope) == ("command", given.scope)
    assert envelope.source_id == ("c1" if is_allowed else record.position), "a refusal would use up the command's id"
    if is_allowed:
        assert source.parsed == given
    else:
        assert isinstance(source.parsed, Refusal)
        assert (source.parsed.reason, source.parsed.outcome, envelope.order) == ("not_allowed", "rejected", None)
        assert source.parsed.detail.startswith("command c1: ")


def test_a_turn_needs_no_token() -> None:
    source = parse_source(record_of(turn().to_bytes()), max_bytes=10_000, command_token=TOKEN)
    assert source.parsed == turn()


# What an extraction is shown beside its turn, and what it remembers for the next one.


async def test_what_was_shown_is_in_the_prompt_and_in_the_step() -> None:
    known = ShownFact(fact_id=FACTS[0], text="Mira lives in Ulm.", key="home_city", value="Ulm")
    earlier = EarlierMessage(turn_id="t0", role="assistant", content="Where do you live?", at=NOON)
    shown = Background(messages=(earlier,), facts=(known,), names=("Mira",), notes=("slow",))
    model = ScriptedModel(replied("Mira lives in Berlin.", quote="Berlin."))
    answer = turn(messages=(Message(role="user", content="Berlin."),))
    output = await extracted(model, answer, Shown(shown))
    assert [fact.excerpt for fact in output.facts] == ["Berlin."]
    content = model.questions[0].messages[1].content
    assert "names of the user: Mira\nslots in use: home_city\nearlier:\n> assistant: Where" in content
    (step,) = output.steps
    assert (step.conversation, step.known, step.notes) == (("t0",), (FACTS[0],), ("slow",))


async def test_a_turn_of_the_assistant_alone_costs_no_call_and_explains_the_next_one() -> None:
    shown, model = Shown(), ScriptedModel()
    messages = (Message(role="system", content="Be kind."), Message(role="assistant", content="Where do you live?"))
    output = await extracted(model, turn(messages=messages), shown)
    assert output.end is not None
    assert output.end.outcome == "nothing_stored"
    assert model.questions == []
    assert shown.turns == [("t1", NOON, 2)]


@pytest.mark.parametrize(
    ("order", "ends"),
    [
        (Delete(fact_ids=FACTS), True),
        (DeleteAll(), True),
        (Reject(fact_ids=FACTS), True),
        (Undo(source_id="t1"), True),
        (Update(edits=(Edit(fact_id=FACTS[0], text="Mira likes tea."),)), False),
    ],
)
async def test_what_takes_something_back_ends_the_conversation(order: CommandPayload, ends: bool) -> None:
    shown = Shown()
    await extracted(ScriptedModel(), command(order), shown)
    assert shown.deletions == ([("default/mira", NOON)] if ends else [])
    assert shown.turns == []


# The mood of a turn: asked for by a setting alone, and never a reason to ask again.

JOY = {"emotion": "joy", "intensity": 0.75, "energy": "high"}


def with_mood(mood: object) -> str:
    return json.dumps(json.loads(BERLIN) | {"moods": [mood]})


async def test_a_mood_is_asked_for_and_kept_in_the_step_where_it_is_set() -> None:
    model = ScriptedModel(with_mood(JOY), with_mood(JOY))
    (step,) = (await extracted(model, turn(), detect_mood=True)).steps
    (other,) = (await extracted(model, turn())).steps
    assert (step.mood, other.mood) == (Mood(emotion="joy", intensity=0.75, energy="high"), None)
    prompt, without = model.questions
    assert "emotion: one of joy, love" in prompt.messages[0].content
    assert "moods" in prompt.schema["required"]
    assert "mood" not in other.model_dump()
    assert "mood" not in without.messages[0].content + json.dumps(without.schema)


@pytest.mark.parametrize(
    "mood",
    [
        *(None, "happy", [], {}),
        JOY | {"emotion": "bliss"},
        JOY | {"intensity": 1.5},
        JOY | {"energy": "HIGH"},
        JOY | {"more": 1},
    ],
)
async def test_an_invalid_mood_is_left_out_and_the_facts_are_kept(mood: Any) -> None:
    output = await extracted(ScriptedModel(with_mood(mood)), turn(), detect_mood=True)
    (step,) = output.steps
    assert (step.mood, step.reprompts, len(output.facts)) == (None, 0, 1)


def test_a_mood_is_read_from_any_reply() -> None:
    for text in ("", "no json", "[]", "{", "{}", '{"moods": [{"emotion": "joy"', "null", "3"):
        assert read_mood(text) is None
    assert read_mood(f"Here it is: {with_mood(JOY)} Done.") == Mood.model_validate(JOY)


# Turns over a limit: no model is asked, and the turn says what happened.

SPENT = LimitHit(name="cost_per_day", level="tenant", count=1.25, limit=1.0)
WORDS = "cost per day of the tenant: 1.25 of 1.0"


async def over(when_spent: WhenSpent, *paid: TimedReply, hit: LimitHit = SPENT, infer: bool = True) -> ExtractedFacts:
    async def precheck(_scope: Scope, _rules: EffectivePolicy, _size: int, _published_at: datetime) -> LimitHit:
        return hit

    model = ScriptedModel(unused=paid)
    output = await extracted(model, turn(infer=infer), rules=EffectivePolicy(when_spent=when_spent), precheck=precheck)
    assert model.sources == []
    return output


def over_budget(result: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_over_budget_total", {"result": result}) or 0.0


async def test_a_turn_over_the_limit_of_bytes_is_rejected_with_what_to_do() -> None:
    model, long = ScriptedModel(), turn(messages=(Message(role="user", content="x" * 1000),))
    output = await extracted(model, long, rules=EffectivePolicy(limits={"scope": Limits(bytes_per_turn=1000)}))
    assert model.sources == []
    assert output.end is not None
    assert (output.end.outcome, output.end.reason) == ("rejected", "limit")
    size = len(long.to_bytes())
    assert output.end.limit == LimitHit(name="bytes_per_turn", level="scope", count=size, limit=1000)
    assert output.end.detail.startswith(f"bytes per turn of the scope: {size} of 1000: raise the limit")
    assert output.end.detail.endswith("or publish it in smaller parts")


async def test_a_turn_over_its_budget_is_rejected_unless_told_otherwise() -> None:
    before = over_budget("reject")
    output = await over("reject")
    assert output.end is not None
    assert (output.end.outcome, output.end.reason, output.end.limit) == ("rejected", "limit", SPENT)
    assert output.end.detail.startswith(WORDS)
    assert over_budget("reject") == before + 1


async def test_a_turn_that_is_stored_raw_has_the_words_of_the_user_and_says_why() -> None:
    before = over_budget("raw")
    output = await over("raw")
    assert (output.end, output.infer) == (None, False)
    assert [fact.text for fact in output.facts] == ["I live in Berlin."]
    (step,) = output.steps
    assert (step.llm_calls, step.model) == (0, None)
    assert step.notes == (f"{WORDS}: each message of a user is stored as it is, and no model extracts facts",)
    assert over_budget("raw") == before + 1


@pytest.mark.parametrize(
    ("name", "is_budget"),
    [("active_facts", False), ("turns_per_minute", False), ("bytes_per_turn", False), ("tokens_per_day", True)],
)
async def test_limits_but_budgets_reject_whatever_is_set_for_budgets(name: LimitName, *, is_budget: bool) -> None:
    hit = LimitHit(name=name, level="scope", count=1, limit=1)
    rejected, other = await over("reject", hit=hit), await over("raw", hit=hit)
    assert rejected.end is not None
    assert rejected.end.reason == "limit"
    assert (other.end, other.infer) == ((None, False) if is_budget else (rejected.end, True))


@pytest.mark.parametrize("when_spent", ["reject", "raw"])
async def test_a_turn_over_its_budget_tells_what_was_paid_for_it_before(when_spent: WhenSpent) -> None:
    """Another turn had it asked in a call that they share, or it was delivered before."""
    shared = SharedCall(turns=3, request="0f3a", is_counted=False)
    usage = Usage(input_tokens=70, output_tokens=9, cached_tokens=20)
    part = TimedReply(text="{}", model="told", usage=usage, milliseconds=1, shared=shared)
    own = TimedReply(text="{}", model="told", usage=Usage(input_tokens=5), milliseconds=1)
    steps = (await over(when_spent, part, own)).steps
    assert (sum(one.input_tokens for one in steps), sum(one.output_tokens for one in steps)) == (75, 9)
    assert (steps[0].llm_calls, steps[0].cached_tokens, steps[0].model) == (1, 20, "told")
    assert steps[0].notes == ("asked ahead in vain: 84 tokens of a call shared with other turns",)
    assert (await over("reject", part, own, infer=False)).steps == ()
