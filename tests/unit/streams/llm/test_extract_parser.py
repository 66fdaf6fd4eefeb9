import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY
from mnemolog.schemas.turn import Message
from mnemolog.streams.llm.ask import MAX_COMPLAINTS
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import MAX_FACTS, parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask
from tests.support.builders.model_replies import facts_reply
from tests.support.builders.prompts import extracted_json, extraction, user

SUBJECT = extraction(user("Hello. I live in Berlin, since 2019."))


def test_a_fact_is_taken_with_its_importance() -> None:
    parsed = parse_extraction(facts_reply(extracted_json(event_time="2023-05-08T10:00:00+02:00")), SUBJECT)
    assert parsed.complaints == ()
    assert parsed.value is not None
    (fact,) = parsed.value
    assert (fact.text, fact.key, fact.value) == ("Alice lives in Berlin.", "home_city", "Berlin")
    assert fact.importance == IMPORTANCE_OF_CATEGORY["biographical_milestone"]
    assert fact.event_time == datetime(2023, 5, 8, 10, tzinfo=timezone(timedelta(hours=2))).astimezone(UTC)


@pytest.mark.parametrize(
    "around", ["```json\n{}\n```", "Here it is:\n{}\nAnything else?", "  {}  ", "```\n{}```\n"], ids=repr
)
def test_fences_and_prose_around_the_object_are_overlooked(around: str) -> None:
    parsed = parse_extraction(around.replace("{}", facts_reply(extracted_json())), SUBJECT)
    assert parsed.value is not None
    assert len(parsed.value) == 1
    assert parse_extraction(around.replace("{}", facts_reply()), SUBJECT).value == ()


def test_a_blank_search_text_is_the_text_and_blank_values_are_none() -> None:
    parsed = parse_extraction(facts_reply(extracted_json(search_text=" ", value="", subject="")), SUBJECT)
    assert parsed.value is not None
    (fact,) = parsed.value
    assert (fact.search_text, fact.value, fact.subject) == ("Alice lives in Berlin.", None, None)


SCRIPT = "Alice: Where?\nCaroline: I live in Berlin"


@pytest.mark.parametrize(
    ("content", "speaker", "name", "subject", "about"),
    [
        ("I live in Berlin", "Alice", None, "the user", "the user"),
        ("I live in Berlin", "Alice", "alice", None, None),
        ("I live in Berlin", "Alice", "Bob", None, "Bob"),
        ("I live in Berlin", None, "Bob", "der Nutzer", "Bob"),
        ("I live in Berlin", "Alice", "Bob", "Tom", "Tom"),
        (SCRIPT, "Alice", None, "the user", "Caroline"),
        ("Caroline: I live in Berlin,\nsince May.\nAlice: Nice!", None, None, "the user", "Caroline"),
        ("Alice: I live in Berlin\nCaroline: Nice!", "Alice", None, "the user", "the user"),
        ("We met.\nI live in Berlin\nCaroline: Nice!\nTom Lee: Yes.", "Alice", None, "the user", "the user"),
        ("Note: I live in Berlin", "Alice", None, "the user", "the user"),
        ("Caroline: I live in Berlin\nTom: I live in Berlin", "Alice", None, "the user", "the user"),
    ],
)
def test_what_another_speaker_or_a_line_of_a_script_says_of_the_user_is_about_who_says_it(
    *, content: str, speaker: str | None, name: str | None, subject: str | None, about: str | None
) -> None:
    task = extraction(Message(role="user", content=content, name=name), speaker=speaker)
    parsed = parse_extraction(facts_reply(extracted_json(subject=subject)), task)
    assert parsed.value is not None
    assert parsed.value[0].subject == about


@pytest.mark.parametrize(
    ("messages", "excerpt", "text", "about"),
    [
        (["Alice: I like teaching.", "Bob: I like tea."], "I like tea", "The user likes tea.", "Bob"),
        (["Alice: I own a carpet.", "Bob: I own a car."], "I own a car", "The user owns a car.", "Bob"),
        (["Alice: I like tea.", "Bob: I like teaching."], "I like tea", "The user likes tea.", "the user"),
        (["Bob: Ich mag Tee.", "Alice: Ich mag Teer."], "Ich mag Tee", "Der Nutzer mag Tee.", "Bob"),
        (["Bob: Я живу в Риме.", "Alice: Я живу в Римейке."], "Я живу в Риме", "Он живет в Риме.", "Bob"),
        (["Alice: I love Rome.", "Bob: I love Rome."], "I love Rome", "The user loves Rome.", "the user"),
        (["Alice: Nothing. Do you smoke, Bob?", "Bob: Yes"], "Yes", "The user smokes.", "Bob"),
        (["assistant: Do you like jazz?", "Alice: Yes. Do you smoke, Bob?", "Bob: Yes"], "Yes", "He smokes.", "Bob"),
        (["assistant: Do you smoke?", "Alice: Yes. And jazz, Bob?", "Bob: Yes"], "Yes", "He smokes.", "the user"),
        (["None: Ann: I like teaching.\nBob: I like tea."], "I like tea", "The user likes tea.", "Bob"),
    ],
)
def test_a_fact_is_about_the_speaker_whose_whole_words_support_it(
    messages: list[str], excerpt: str, text: str, about: str
) -> None:
    said = [one.partition(": ")[::2] for one in messages]
    turn = [
        Message(role="assistant", content=content)
        if name == "assistant"
        else Message(role="user", content=content, name=None if name == "None" else name)
        for name, content in said
    ]
    reply = facts_reply(extracted_json(text=text, excerpt=excerpt, subject="the user"))
    (fact,) = parse_extraction(reply, extraction(*turn, speaker="Alice")).value or ()
    assert fact.subject == about


def test_words_within_another_word_are_no_excerpt() -> None:
    task = extraction(Message(role="user", content="I like teaching."), speaker="Alice")
    parsed = parse_extraction(facts_reply(extracted_json(text="Alice likes tea.", excerpt="I like tea")), task)
    assert not parsed.value
    assert "is only a part of a word" in parsed.complaints[0]


@pytest.mark.parametrize(
    ("key", "said", "taken"), [("gym_day", True, True), ("gym_day", False, False), (None, True, False)]
)
def test_only_a_key_can_hold_one_value_at_a_time(key: str | None, said: bool, taken: bool) -> None:
    parsed = parse_extraction(facts_reply(extracted_json(key=key, single_valued=said)), SUBJECT)
    assert parsed.value is not None
    assert parsed.value[0].single_valued is taken


def test_every_field_but_those_about_entities_is_required() -> None:
    whole = extracted_json()
    for name in whole.keys() - {"entities", "relations"}:
        parsed = parse_extraction(facts_reply({key: value for key, value in whole.items() if key != name}), SUBJECT)
        assert parsed.complaints == (f"facts.0.{name}: Field required",)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"text": " "}, "facts.0.text: Value error, must not be blank"),
        ({"excerpt": ""}, "facts.0.excerpt"),
        ({"text": "a\x00b"}, "U+0000"),
        ({"text": "x" * 2001}, "at most 2000"),
        ({"key": "homeCity"}, "facts.0.key"),
        ({"category": "weather"}, "'weather' is none of identity"),
        ({"certainty": "sure"}, "facts.0.certainty"),
        ({"action_hint": "drop"}, "facts.0.action_hint"),
        ({"event_time": "2023-05-08T10:00:00"}, "facts.0.event_time: needs date, time and zone"),
        ({"valid_until": "9999-12-31T23:59:59Z"}, "facts.0.valid_until: Value error, a time lies in the years"),
        ({"event_time": 1683540000}, "facts.0.event_time: needs date, time and zone"),
        ({"value": 3}, "facts.0.value"),
        ({"single_valued": "true"}, "facts.0.single_valued"),
        ({"mood": "glad"}, "facts.0.mood: Extra inputs"),
    ],
    ids=str,
)
def test_a_faulty_field_is_a_hard_complaint_that_names_it(fields: dict[str, Any], complaint: str) -> None:
    parsed = parse_extraction(facts_reply(extracted_json(**fields), extracted_json()), SUBJECT)
    assert parsed.is_incomplete
    assert any(complaint in said for said in parsed.complaints), parsed.complaints


@pytest.mark.parametrize(
    "text",
    [
        *("", "I found no facts.", "[]", "null", "{", "{}", "[[[[", facts_reply(extracted_json())[:-40]),
        *('{"facts": null}', '{"facts": 3}', '{"facts": [3, null, "x", {}]}', '{"facts": [{"text": 3}]}'),
        facts_reply() + facts_reply(),
    ],
)
def test_what_is_no_object_with_a_valid_fact_is_a_hard_complaint(text: str) -> None:
    parsed = parse_extraction(text, SUBJECT)
    assert parsed.value is None
    assert parsed.complaints


def test_a_reply_may_list_what_it_left_out_but_no_language_model_is_asked_to() -> None:
    reply = json.loads(facts_reply(extracted_json())) | {"omitted": [{"text": "How are you?", "reason": "question"}]}
    parsed = parse_extraction(json.dumps(reply), SUBJECT)
    assert [(one.text, one.reason) for one in parsed.dropped] == [("How are you?", "question")]
    assert len(parsed.value or ()) == 1
    prompt = extraction_prompt(SUBJECT)
    asked = json.dumps(prompt.schema) + "".join(message.content for message in prompt.messages)
    assert "omitted" not in asked
    assert parse_extraction(
        json.dumps(reply | {"omitted": [{"text": "x", "reason": "boredom"}]}), SUBJECT
    ).is_incomplete


def test_too_many_facts_are_refused() -> None:
    parsed = parse_extraction(facts_reply(*[extracted_json()] * (MAX_FACTS + 1)), SUBJECT)
    assert parsed.is_incomplete
    assert "101 facts are too many" in parsed.complaints[0]
    assert len(parsed.value or ()) == MAX_FACTS
    assert [dropped.reason for dropped in parsed.dropped] == ["invalid_fact"]


@pytest.mark.parametrize(
    ("items", "dropped"),
    [
        ([{"text": " "}, {}], ["I live in Berlin"]),
        ([{"text": "Alice has a\x00 cat.", "key": 3}, {}], ["Alice has a cat."]),
        ([{"text": "x" * 2001}, {}, {"excerpt": "I own a yacht.", "text": "A yacht."}], [f"{'x' * 1999}…", "A yacht."]),
    ],
    ids=["no text", "no readable text", "too long, and not said"],
)
def test_the_valid_facts_of_an_invalid_reply_are_kept(items: list[dict[str, Any]], dropped: list[str]) -> None:
    parsed = parse_extraction(facts_reply(*(extracted_json(**item) for item in items)), SUBJECT)
    assert parsed.value is not None
    assert [fact.text for fact in parsed.value] == ["Alice lives in Berlin."]
    assert [lost.text for lost in parsed.dropped] == dropped
    assert parsed.is_incomplete


def test_a_name_that_is_too_long_costs_no_fact() -> None:
    name = "Ana " * 2500
    entity = {"name": name, "type": "person", "role": "mention"}
    relation = {"subject": name, "predicate": "wife", "object": name, "strength": "strong"}
    parsed = parse_extraction(facts_reply(extracted_json(entities=[entity], relations=[relation])), SUBJECT)
    (fact,) = parsed.value or ()
    assert (fact.text, fact.entities, fact.relations) == ("Alice lives in Berlin.", (), ())
    assert parsed.complaints == ()
    assert [one.reason for one in fact.unlinked] == ["too_long"]


@pytest.mark.parametrize("field", ["type", "role", "aliases", "predicate", "strength"])
def test_no_long_part_of_an_entity_or_a_relation_costs_a_fact(field: str) -> None:
    long = ["x" * 10_000] if field == "aliases" else "x" * 10_000
    entity: dict[str, Any] = {"name": "Alice", "type": "person", "role": "mention"}
    relation: dict[str, Any] = {"subject": "Alice", "predicate": "friend", "object": "Berlin", "strength": "strong"}
    (relation if field in relation else entity)[field] = long
    parsed = parse_extraction(facts_reply(extracted_json(entities=[entity], relations=[relation])), SUBJECT)
    assert parsed.complaints == ()
    assert parsed.value is not None
    assert [one.name for one in parsed.value[0].entities] == ["Alice"]


def test_what_surrounds_valid_facts_does_not_cost_them() -> None:
    whole = facts_reply(*[extracted_json()] * 3)
    cut_off = parse_extraction(whole[: int(len(whole) * 0.8)], SUBJECT)
    assert (len(cut_off.value or ()), cut_off.is_incomplete) == (2, True)
    parsed = parse_extraction(facts_reply(extracted_json())[:-1] + ', "note": "done"}', SUBJECT)
    assert (len(parsed.value or ()), parsed.dropped, parsed.is_incomplete) == (1, (), True)
    assert len(parse_extraction(facts_reply(*[{}] * 50), SUBJECT).complaints) == MAX_COMPLAINTS


@pytest.mark.parametrize(
    ("said", "excerpt"),
    [
        ("I live\n  in\tBerlin", "i  LIVE in\nberlin"),
        ("I\u2019m \u201cat home\u201d \u2013 in Berlin", 'I\'m "at home" - in Berlin'),
        ("Ich wohne in Köln", "in Ko\u0308ln"),
        ("\uff21\uff22 12", "AB 12"),
        ("私はベルリンに住んでいます。", "ベルリンに住んで"),
    ],
)
def test_an_excerpt_is_compared_after_normalisation(said: str, excerpt: str) -> None:
    parsed = parse_extraction(facts_reply(extracted_json(excerpt=excerpt)), extraction(user(said)))
    assert parsed.value is not None
    assert parsed.value[0].excerpt == excerpt
    assert parsed.complaints == ()


def test_an_excerpt_that_nobody_said_is_a_soft_complaint_and_its_fact_dropped() -> None:
    parsed = parse_extraction(
        facts_reply(extracted_json(), extracted_json(text="Alice flies.", excerpt="I can fly")), SUBJECT
    )
    assert parsed.value is not None
    assert [fact.text for fact in parsed.value] == ["Alice lives in Berlin."]
    assert [(dropped.text, dropped.reason) for dropped in parsed.dropped] == [("Alice flies.", "excerpt_not_found")]
    assert parsed.complaints == (
        'facts.1.excerpt: "I can fly" occurs in no message: copy the words from one message, or leave the fact out',
    )


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        (extraction(user("I live"), user("in Berlin")), "occurs in no message"),
        (extraction(Message(role="system", content="I live in Berlin"), user("Hello.")), "occurs in no message"),
        (extraction(user("Hello."), recalled=["I live in Berlin"]), "occurs in no message"),
        (extraction(Message(role="assistant", content="I live in Berlin"), user("Hm.")), "is what the assistant says"),
    ],
    ids=["two messages", "a system message", "recalled", "the assistant"],
)
def test_what_no_message_of_the_conversation_says_is_no_evidence(task: ExtractionTask, complaint: str) -> None:
    parsed = parse_extraction(facts_reply(extracted_json()), task)
    assert (parsed.value, len(parsed.dropped)) == ((), 1)
    assert complaint in parsed.complaints[0]


@pytest.mark.parametrize("recalled", [["I live in  BERLIN."], ["in Berlin", "Memory: I live in Berlin, Mitte"]])
@pytest.mark.parametrize("injected", ["Memory: {}\nHello.", "{}"])
def test_recalled_text_inside_a_message_is_no_evidence(recalled: list[str], injected: str) -> None:
    subject = extraction(user(injected.format("\n".join(recalled))), recalled=recalled)
    parsed = parse_extraction(facts_reply(extracted_json()), subject)
    assert parsed.value == ()
    assert "is recalled memory, which is no evidence" in parsed.complaints[0]


@pytest.mark.parametrize(
    "said", ["So I live in Berlin.", "I live in Berlin no more", "I live in Berlin. And I live in Berlin!"]
)
def test_who_says_more_than_what_is_recalled_is_heard(said: str) -> None:
    subject = extraction(user(said), recalled=["in Berlin", "And I live in Berlin!"])
    assert parse_extraction(facts_reply(extracted_json()), subject).value


def test_a_message_of_a_tool_is_evidence_and_an_excerpt_of_nothing_visible_is_none() -> None:
    task = extraction(Message(role="tool", content="I live in Berlin"))
    parsed = parse_extraction(facts_reply(extracted_json()), task)
    assert (len(parsed.value or ()), parsed.dropped) == (1, ())
    assert parse_extraction(facts_reply(extracted_json(excerpt="\u00ad")), SUBJECT).value == ()


@given(st.text())
def test_no_text_can_break_the_parser(text: str) -> None:
    parsed = parse_extraction(text, SUBJECT)
    assert (parsed.value is None) == bool(parsed.complaints)
