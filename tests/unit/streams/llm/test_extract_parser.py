import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

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
    assert parsed.value is not None
    (fact,) = parsed.value
    assert (fact.text, fact.key, fact.value) == ("Alice lives in Berlin.", "home_city", "Berlin")
    assert fact.importance == IMPORTANCE_OF_CATEGORY["biographical_milestone"]
    assert fact.event_time == datetime(2023, 5, 8, 10, tzinfo=timezone(timedelta(hours=2))).astimezone(UTC)


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
        ("I live in Berlin with Tom", "Alice", "Bob", "Tom", "Tom"),
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
        (
            ["assistant: Do you like jazz?", "Alice: Yes. Do you smoke, Bob?", "Bob: Yes"],
            "Yes",
            "The user smokes.",
            "Bob",
        ),
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
    assert [one.detail for one in parsed.dropped] == ["is only a part of a word"]


@pytest.mark.parametrize(
    ("key", "said", "taken"), [("gym_day", True, True), ("gym_day", False, False), (None, True, False)]
)
def test_only_a_key_can_hold_one_value_at_a_time(key: str | None, said: bool, taken: bool) -> None:
    parsed = parse_extraction(facts_reply(extracted_json(key=key, single_valued=said)), SUBJECT)
    assert parsed.value is not None
    assert parsed.value[0].single_valued is taken


@pytest.mark.parametrize("how", ["missing", "null", "of another type"])
def test_what_may_be_missing_costs_no_fact(how: str) -> None:
    whole = extracted_json()
    for name in whole.keys() - {"text", "excerpt"}:
        item = {key: value for key, value in whole.items() if key != name}
        if how != "missing":
            item[name] = None if how == "null" else {"of": ["another", "type"]}
        parsed = parse_extraction(facts_reply(item), SUBJECT)
        assert [fact.text for fact in parsed.value or ()] == ["Alice lives in Berlin."], name
        noted = how == "of another type"
        assert parsed.notes == (
            (f"fields of the reply could not be read and were passed over: {name}",) if noted else ()
        )


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"key": "homeCity"}, {"key": "home_city"}),
        ({"key": " Home City "}, {"key": "home_city"}),
        ({"key": "12 !"}, {"key": None, "value": "Berlin"}),
        ({"category": "Hard Preference"}, {"category": "hard_preference"}),
        ({"category": "weather"}, {"category": "other"}),
        ({"category": ["soft_preference", "Hard Preference"]}, {"categories": ("hard_preference", "soft_preference")}),
        ({"category": ["other", "weather", "health", None, "health"]}, {"categories": ("health",)}),
        ({"category": []}, {"categories": ("other",)}),
        ({"certainty": "Weak"}, {"certainty": "weak"}),
        ({"certainty": "sure"}, {"certainty": "strong"}),
        ({"action_hint": "drop"}, {"action_hint": "new"}),
        ({"importance_category": "trivial"}, {"importance_category": "biographical_milestone"}),
        ({"event_time": "2023-05-08"}, {"event_time": datetime(2023, 5, 8, tzinfo=UTC)}),
        ({"event_time": "2023-05-08T10:00:00"}, {"event_time": datetime(2023, 5, 8, 10, tzinfo=UTC)}),
        ({"event_time": "null"}, {"event_time": None}),
        ({"event_time": 1683540000}, {"event_time": None}),
        ({"valid_until": "9999-12-31T23:59:59Z"}, {"valid_until": None}),
        ({"value": 2019}, {"value": "2019"}),
        ({"value": "null"}, {"value": None}),
        ({"key": "gym_day", "single_valued": "false"}, {"single_valued": False}),
        ({"key": "gym_day", "single_valued": "true"}, {"single_valued": True}),
        ({"confidence": 0.9, "mood": "glad"}, {"text": "Alice lives in Berlin."}),
    ],
    ids=str,
)
def test_a_field_is_read_as_models_write_it(fields: dict[str, Any], taken: dict[str, Any]) -> None:
    (fact,) = parse_extraction(facts_reply(extracted_json(**fields)), SUBJECT).value or ()
    assert {name: getattr(fact, name) for name in taken} == taken


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"text": " "}, "facts.0.text: Value error, must not be blank"),
        ({"text": "a\x00b"}, "U+0000"),
        ({"text": "x" * 2001}, "at most 2000"),
    ],
    ids=str,
)
def test_a_fact_without_its_words_is_lost_alone(fields: dict[str, Any], complaint: str) -> None:
    alone = parse_extraction(facts_reply(extracted_json(**fields)), SUBJECT)
    assert (alone.value, len(alone.dropped)) == (None, 1)
    assert complaint in alone.complaints[0]
    beside = parse_extraction(facts_reply(extracted_json(**fields), extracted_json()), SUBJECT)
    assert [fact.text for fact in beside.value or ()] == ["Alice lives in Berlin."]
    assert [dropped.reason for dropped in beside.dropped] == ["invalid_fact"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[[[[", facts_reply(extracted_json())[:-40]),
        *('{"facts": 3}', '{"facts": [3, null, "x", {}]}', '{"facts": [{"text": 3}]}'),
        '{"type": "object", "properties": {"facts": {"type": "array"}}}',
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
    assert (
        parse_extraction(json.dumps(reply | {"omitted": [{"text": "x", "reason": "boredom"}]}), SUBJECT).dropped == ()
    )


def test_of_too_many_facts_the_first_are_taken() -> None:
    parsed = parse_extraction(facts_reply(*[extracted_json()] * (MAX_FACTS + 1)), SUBJECT)
    assert len(parsed.value or ()) == MAX_FACTS
    assert [dropped.reason for dropped in parsed.dropped] == ["invalid_fact"]


@pytest.mark.parametrize(
    ("item", "dropped"),
    [
        ({"text": " "}, "I live in Berlin"),
        ({"text": "Alice has a\x00 cat.", "key": 3}, "Alice has a cat."),
        ({"text": "x" * 2001}, f"{'x' * 1999}…"),
        ({"excerpt": "I own a yacht.", "text": "A yacht."}, "A yacht."),
    ],
    ids=["no text", "no readable text", "too long", "not said"],
)
def test_what_a_dropped_fact_says_is_kept(item: dict[str, Any], dropped: str) -> None:
    parsed = parse_extraction(facts_reply(extracted_json(**item), extracted_json()), SUBJECT)
    assert [fact.text for fact in parsed.value or ()] == ["Alice lives in Berlin."]
    assert [lost.text for lost in parsed.dropped] == [dropped]


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


ONE: Final[dict[str, Any]] = {"line": 1, "text": "Alice lives in Berlin.", "about": "Alice"}
TWO: Final[dict[str, Any]] = {"line": 1, "text": "Alice moved to Berlin in 2019.", "about": "Alice"}
A, B, BOTH, NONE = (json.dumps({"facts": facts}) for facts in ([ONE], [TWO], [ONE, TWO], []))


@pytest.mark.parametrize(
    "reply",
    [
        f"{A}\n{B}",
        f"{A}\n{B}\n{NONE}",
        f"{BOTH}\n{NONE}",
        f"{BOTH}\n\nNothing else: {NONE}",
        f"{A}\n{BOTH}",
        f"```json\n{A}\n```\nand\n```json\n{B}\n```",
        f"{json.dumps(ONE)}\n{json.dumps(TWO)}",
        f"- {json.dumps(ONE)}\n- {json.dumps(TWO)}",
        f"1. {json.dumps({'fact': ONE})}\n2. {json.dumps({'fact': TWO})}",
        f"```json\n{json.dumps(ONE)}\n```\n```json\n{json.dumps(TWO)}\n```",
        f"{json.dumps([ONE])}\n{json.dumps([TWO])}",
    ],
)
def test_the_facts_of_all_json_values_of_a_reply_are_read(reply: str) -> None:
    task = extraction(user("I live in Berlin, I moved to Berlin in 2019."), speaker="Alice")
    parsed = parse_extraction(reply, task)
    assert [fact.text.partition(" (")[0].rstrip(".") for fact in parsed.value or ()] == [
        one["text"].rstrip(".") for one in (ONE, TWO)
    ]
    assert (parsed.dropped, parsed.notes) == ((), ())


@pytest.mark.parametrize(("share", "facts"), [(0.8, 2), (0.6, 1), (0.2, 0)])
def test_the_complete_facts_of_a_reply_that_was_cut_off_are_taken(share: float, facts: int) -> None:
    whole = facts_reply(*[extracted_json()] * 3)
    parsed = parse_extraction(whole[: int(len(whole) * share)], SUBJECT)
    assert len(parsed.value or ()) == facts
    assert bool(parsed.complaints) == (facts == 0)


def test_an_answer_without_words_is_named_so_and_complaints_are_bounded() -> None:
    assert parse_extraction("<think>Hm.</think>\n", SUBJECT).complaints == ("the answer is empty",)
    assert len(parse_extraction(facts_reply(*[{"key": "x"}] * 50), SUBJECT).complaints) == MAX_COMPLAINTS


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
    parsed = parse_extraction(facts_reply(extracted_json(excerpt=excerpt, text=said)), extraction(user(said)))
    assert parsed.value is not None
    assert parsed.value[0].excerpt == excerpt
    assert parsed.complaints == ()


def test_a_fact_whose_excerpt_nobody_said_is_dropped() -> None:
    parsed = parse_extraction(
        facts_reply(extracted_json(), extracted_json(text="Alice flies.", excerpt="I can fly")), SUBJECT
    )
    assert parsed.value is not None
    assert [fact.text for fact in parsed.value] == ["Alice lives in Berlin."]
    (dropped,) = parsed.dropped
    assert (dropped.text, dropped.reason, dropped.detail) == (
        "Alice flies.",
        "excerpt_not_found",
        "occurs in no message",
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
    assert parsed.value == ()
    assert [complaint in dropped.detail for dropped in parsed.dropped] == [True]


@pytest.mark.parametrize("recalled", [["I live in  BERLIN."], ["in Berlin", "Memory: I live in Berlin, Mitte"]])
@pytest.mark.parametrize("injected", ["Memory: {}\nHello.", "{}"])
def test_recalled_text_inside_a_message_is_no_evidence(recalled: list[str], injected: str) -> None:
    subject = extraction(user(injected.format("\n".join(recalled))), recalled=recalled)
    parsed = parse_extraction(facts_reply(extracted_json()), subject)
    assert parsed.value == ()
    assert parsed.dropped[0].detail == "is recalled memory, which is no evidence"


@pytest.mark.parametrize(
    "said", ["So I live in Berlin.", "I live in Berlin now", "I live in Berlin. And I live in Berlin!"]
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
