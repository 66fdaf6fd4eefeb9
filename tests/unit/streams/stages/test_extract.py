from datetime import timedelta

import pytest
from pydantic import SecretStr

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Command, CommandPayload, DeleteAll, Edit, Update
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Overrides
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import PromptRefusedError
from mnemolog.streams.stages.extract import parse_source, raw_facts
from mnemolog.streams.stages.processor import envelope_reader
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.extract_harness import FACTS, NOON, ScriptedModel, extracted, record_of, replied, turn


async def test_a_turn_ahead_of_the_broker_has_its_time_and_says_so() -> None:
    ahead = turn().model_copy(update={"occurred_at": NOON + timedelta(hours=2)})
    model = ScriptedModel(replied("Mira lives in Berlin."))
    output = await extracted(model, ahead.to_bytes())
    assert output.occurred_at == output.published_at == NOON
    (step,) = output.steps
    assert step.notes == ("occurred_at 2026-03-01T14:00:00+00:00 was ahead of the broker's time: capped to that",)
    assert f"occurred_at: {NOON.isoformat()}" in model.questions[0].messages[1].content
    (on_time,) = (await extracted(ScriptedModel(replied("Mira lives in Berlin.")), turn().to_bytes())).steps
    assert on_time.notes == ()


async def command_record(order: CommandPayload, key: str = "mira") -> ExtractedFacts:
    command = Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=NOON, order=order, actor="support")
    model = ScriptedModel()
    output = await extracted(model, command.to_bytes(), key)
    assert model.sources == []
    return output


async def test_facts_come_with_what_they_cost() -> None:
    output = await extracted(ScriptedModel(replied("Mira lives in Berlin.")), turn().to_bytes())
    assert [each.text for each in output.facts] == ["Mira lives in Berlin."]
    (step,) = output.steps
    assert (step.llm_calls, step.input_tokens, step.output_tokens, step.milliseconds) == (1, 10, 2, 4.5)
    assert (output.owner, output.origin.position, output.end) == ("default/mira", "conversation_turns/1/2", None)


async def test_a_fact_that_was_not_said_is_asked_about_once_then_dropped() -> None:
    invented = replied("Mira owns a yacht.", quote="I own a yacht.")
    output = await extracted(ScriptedModel(invented, invented), turn().to_bytes())
    assert output.facts == ()
    assert output.end is not None
    assert output.end.outcome == "no_facts"
    (step,) = output.steps
    assert (step.llm_calls, step.reprompts) == (2, 1)
    assert [(dropped.text, dropped.reason) for dropped in step.dropped] == [("Mira owns a yacht.", "excerpt_not_found")]


async def test_what_was_recalled_is_no_evidence() -> None:
    recalled = turn(recalled=("Mira owns a yacht.",)).to_bytes()
    invented = replied("Mira owns a yacht.", quote="Mira owns a yacht.")
    assert (await extracted(ScriptedModel(invented, invented), recalled)).facts == ()


async def test_after_two_reprompts_the_turn_has_failed_and_its_calls_are_counted() -> None:
    with pytest.raises(SourceEndedError) as failure:
        await extracted(ScriptedModel("nonsense", "{}", '{"facts": 3}'), turn().to_bytes())
    assert (failure.value.reason, failure.value.end.outcome) == ("invalid_reply", "failed")
    assert failure.value.step is not None
    assert (failure.value.step.llm_calls, failure.value.step.reprompts) == (3, 2)
    assert len(failure.value.step.complaints) == 2


async def test_after_two_reprompts_what_was_valid_is_kept_and_the_rest_is_told() -> None:
    valid = fact_json("Mira lives in Berlin.", excerpt="I live in Berlin.")
    reply = facts_reply(valid, fact_json("Mira is 30.", excerpt="30", key=3))
    output = await extracted(ScriptedModel(reply, reply, reply), turn().to_bytes())
    assert [each.text for each in output.facts] == ["Mira lives in Berlin."]
    assert output.end is None
    (step,) = output.steps
    assert (step.llm_calls, step.reprompts, len(step.complaints)) == (3, 2, 2)
    assert [(dropped.text, dropped.reason) for dropped in step.dropped] == [("Mira is 30.", "invalid_fact")]


async def test_what_a_model_was_told_of_its_faulty_reply_is_kept() -> None:
    output = await extracted(ScriptedModel("nonsense", replied("Mira lives in Berlin.")), turn().to_bytes())
    (complaint,) = output.steps[0].complaints
    assert "JSON" in complaint


async def test_a_refused_prompt_ends_the_turn() -> None:
    with pytest.raises(SourceEndedError, match="content_filter"):
        await extracted(ScriptedModel(PromptRefusedError("content_filter", "no")), turn().to_bytes())


async def test_a_turn_that_is_refused_when_it_is_asked_about_again_tells_what_the_reply_before_took() -> None:
    with pytest.raises(SourceEndedError) as refused:
        await extracted(ScriptedModel("no JSON", PromptRefusedError("content_filter", "no")), turn().to_bytes())
    step = refused.value.step
    assert step is not None
    assert (step.llm_calls, step.input_tokens, step.output_tokens) == (1, 10, 2)
    assert step.notes == ("asked in vain: 12 tokens",)


async def test_a_raw_store_asks_nobody() -> None:
    model = ScriptedModel()
    output = await extracted(model, turn(infer=False).to_bytes())
    assert [each.text for each in output.facts] == ["I live in Berlin."]
    assert model.sources == []


def test_a_raw_store_keeps_user_messages_and_ignores_the_assistant() -> None:
    messages = (
        Message(role="user", content=" exactly  so "),
        Message(role="assistant", content="noted"),
        Message(role="user", content="  "),
    )
    assert [each.text for each in raw_facts(turn(infer=False, messages=messages))] == [" exactly  so "]


def test_a_raw_store_keeps_a_long_message_whole() -> None:
    document = "A sentence of a long document. " * 3000
    (fact,) = raw_facts(turn(infer=False, messages=(Message(role="user", content=document),)))
    assert fact.text == fact.search_text == document


async def test_facts_end_with_the_turn_unless_they_say_otherwise() -> None:
    until = NOON + timedelta(days=3)
    output = await extracted(ScriptedModel(replied("Mira lives in Berlin.")), turn(valid_until=until).to_bytes())
    assert output.facts[0].valid_until == until


@pytest.mark.parametrize(("value", "outcome"), [(b"nonsense", "failed"), (b"", "failed")])
async def test_what_is_no_turn_is_refused(value: bytes, outcome: str) -> None:
    with pytest.raises(SourceEndedError) as refused:
        await extracted(ScriptedModel(), value)
    assert refused.value.end.outcome == outcome


async def test_a_command_travels_with_its_payload_and_texts_and_calls_no_model() -> None:
    order = Update(edits=tuple(Edit(fact_id=fact, text=f"Mira has {fact.int} cats.") for fact in FACTS))
    output = await command_record(order)
    assert (output.source_id, output.source_kind, output.order, output.actor) == ("c1", "command", order, "support")
    assert (output.scope, output.occurred_at, output.end) == (Scope(user_id="mira"), NOON, None)
    texts = ["Mira has 0 cats.", "Mira has 1 cats.", "Mira has 2 cats."]
    assert [(each.text, each.search_text, each.excerpt) for each in output.facts] == [(text,) * 3 for text in texts]


async def test_a_command_without_a_text_goes_on_without_facts() -> None:
    output = await command_record(DeleteAll(key="home_city"))
    assert (output.facts, output.end) == ((), None)


@pytest.mark.parametrize(
    ("value", "reason", "outcome", "source_id"),
    [
        (b'{"kind": "command"}', "invalid_command", "rejected", "conversation_turns/1/2"),
        (b'{"kind": "command", "turn_id": "t1"}', "invalid_command", "rejected", "conversation_turns/1/2"),
        (
            b'{"kind": "command", "command_id": "c1", "scope": {"user_id": "mira"}}',
            "invalid_command",
            "rejected",
            "c1",
        ),
    ],
)
async def test_an_invalid_command_ends_as_a_command(value: bytes, reason: str, outcome: str, source_id: str) -> None:
    with pytest.raises(SourceEndedError) as refused:
        await extracted(ScriptedModel(), value)
    assert (refused.value.reason, refused.value.end.outcome) == (reason, outcome)
    envelope = parse_source(record_of(value), max_bytes=10_000).envelope
    assert (envelope.source_id, envelope.source_kind, envelope.order) == (source_id, "command", None)


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ((("mnemolog-token", b"s3cret"),), True),
        ((("mnemolog-token", b"guessed"),), False),
        ((("mnemolog-token", "s3cr\u00e9t".encode()),), False),
        ((), False),
    ],
)
async def test_a_command_must_have_the_token_where_one_is_set(
    headers: tuple[tuple[str, bytes], ...], *, allowed: bool
) -> None:
    command = Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=NOON, order=DeleteAll())
    record = record_of(command.to_bytes(), headers=headers)
    source = parse_source(record, max_bytes=10_000, command_token=SecretStr("s3cret"))
    envelope = source.envelope
    assert (envelope.source_kind, envelope.scope) == ("command", command.scope)
    assert envelope.source_id == ("c1" if allowed else record.position), "a refusal would use up the command's id"
    if allowed:
        assert source.parsed == command
    else:
        assert isinstance(source.parsed, Refusal)
        assert (source.parsed.reason, source.parsed.outcome) == ("not_allowed", "rejected")
        assert source.parsed.detail.startswith("command c1: ")
        assert envelope.order is None


def test_an_invalid_command_without_the_token_does_not_use_up_an_id_either() -> None:
    command = Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=NOON, order=DeleteAll())
    record = record_of(command.to_bytes().replace(b"delete_all", b"explode"))
    source = parse_source(record, max_bytes=10_000, command_token=SecretStr("s3cret"))
    assert isinstance(source.parsed, Refusal)
    assert (source.parsed.reason, source.envelope.source_id) == ("not_allowed", record.position)


def test_a_turn_needs_no_token() -> None:
    source = parse_source(record_of(turn().to_bytes()), max_bytes=10_000, command_token=SecretStr("s3cret"))
    assert source.parsed == turn()


async def test_a_turn_is_no_larger_than_its_record() -> None:
    value = turn(infer=False).to_bytes()
    assert (await extracted(ScriptedModel(), value)).size == len(value)


async def test_what_only_echoes_recalled_memory_is_dropped_and_told() -> None:
    said = (Message(role="user", content="I read that Mira still lives in Berlin: where is my train?"),)
    told = turn(messages=said, recalled=("Mira lives in Berlin since May.", "Mira lives in Berlin.")).to_bytes()
    output = await extracted(ScriptedModel(replied("Mira lives in Berlin.", quote="lives in Berlin")), told)
    assert output.facts == ()
    assert [(dropped.text, dropped.reason) for dropped in output.steps[0].dropped] == [
        ("Mira lives in Berlin.", "recalled")
    ]


async def test_a_turn_may_say_which_model_is_asked_for_how_long_and_how_often() -> None:
    model = ScriptedModel("nonsense")
    own = turn(overrides=Overrides(chat_model="small", llm_timeout=3.5, reprompts=0)).to_bytes()
    with pytest.raises(SourceEndedError, match="invalid_reply"):
        await extracted(model, own)
    assert [(question.model, question.timeout) for question in model.questions] == [("small", 3.5)]


async def test_a_model_name_that_fits_into_no_key_is_refused_where_it_arrives() -> None:
    own = turn(overrides=Overrides(chat_model="small")).to_bytes().replace(b'"small"', b'"%s"' % (b"x" * 201))
    model = ScriptedModel()
    with pytest.raises(SourceEndedError, match=r"overrides\.chat_model.*at most 200 characters"):
        await extracted(model, own)
    assert model.questions == []


async def test_an_envelope_from_before_model_names_had_a_limit_ends_instead_of_stopping_a_stage() -> None:
    envelope = ExtractedFacts(
        source_id="t1",
        scope=Scope(user_id="mira"),
        origin=Origin(topic="t", partition=0, offset=7),
        occurred_at=NOON,
        published_at=NOON,
        overrides=Overrides(chat_model="small"),
    )
    old = envelope.to_bytes().replace(b'"small"', b'"%s"' % (b"x" * 5000))
    record = KafkaRecord(topic="extracted_facts", partition=0, offset=9, key=b"k", value=old, timestamp=0.0)
    received = envelope_reader(ExtractedFacts)(record)
    with pytest.raises(SourceEndedError, match="not_a_record"):
        received.require_valid()


async def test_a_turn_over_a_limit_is_refused_before_anybody_is_asked() -> None:
    model = ScriptedModel()
    long = turn(scope=Scope(user_id="jonas"), messages=(Message(role="user", content="x" * 1000),)).to_bytes()
    output = await extracted(model, long, key="jonas")
    assert model.sources == []
    assert output.end is not None
    assert (output.end.outcome, output.end.reason) == ("rejected", "limit")
    assert output.end.limit == LimitHit(name="bytes_per_turn", level="scope", count=len(long), limit=1000)
    assert output.end.detail.startswith(f"bytes per turn of the scope: {len(long)} of 1000: raise the limit")
    assert output.end.detail.endswith("or publish it in smaller parts")
