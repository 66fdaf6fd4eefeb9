"""Replies as models of all strengths write them, in any form: each is read, or its loss is named."""

import json
from typing import Any, Final

import pytest

from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import CUT_OFF
from mnemolog.streams.llm.resolve_prompt import parse_resolution
from tests.support.builders.prompts import MONDAY, extraction, fact, known_fact, user
from tests.support.builders.questions import number_conflicts

SAID: Final = "Hey! I moved to Porto in March. My sister Eva is a nurse. I don't eat meat any more."
TASK: Final = extraction(user(SAID), speaker="Rita")
MOVED: Final[dict[str, Any]] = {
    "line": 2,
    "text": "Rita moved to Porto in March.",
    "about": "Rita",
    "slot": "home_city: Porto",
    "category": "identity",
    "change": "changed",
    "names": "Porto: place",
}
EVA: Final[dict[str, Any]] = {
    "line": 3,
    "text": "Rita's sister Eva is a nurse.",
    "about": "Rita's sister Eva",
    "slot": "job: nurse",
    "category": "relationship",
    "change": "new",
    "names": "Eva: person",
}
MEAT: Final[dict[str, Any]] = {
    "line": 4,
    "text": "Rita no longer eats meat.",
    "about": "Rita",
    "slot": "diet: none",
    "category": "health",
    "change": "ended",
    "names": "",
}
TEXTS: Final = ["Rita moved to Porto in March", "Rita's sister Eva is a nurse", "Rita no longer eats meat"]
ALL: Final = json.dumps({"facts": [MOVED, EVA, MEAT]})
DRAFT: Final = json.dumps({"facts": [MOVED | {"text": "Rita moved to Oslo"}]})


def read(text: str) -> list[str]:
    """The texts of the facts that are read, without the days of "in March"."""
    parsed = parse_extraction(text, TASK)
    assert parsed.complaints == ()
    assert parsed.dropped == ()
    return [fact.text.partition(" (2")[0].rstrip(".") for fact in parsed.value or ()]


ALL_READ: Final[dict[str, str]] = {
    "as asked": ALL,
    "sentences": json.dumps({"facts": [f"{text}." for text in TEXTS]}),
    "sentences by number": json.dumps({"facts": {"1": TEXTS[0], "2": TEXTS[1], "3": TEXTS[2]}}),
    "grouped by what they change": json.dumps({"facts": {"changed": [MOVED], "new": [EVA], "ended": [MEAT]}}),
    "a list for each line": json.dumps({"2": [MOVED], "3": [EVA], "4": [MEAT]}),
    "another name for the text": json.dumps(
        {
            "facts": [
                {"statement" if name == "text" else name: part for name, part in one.items()}
                for one in (MOVED, EVA, MEAT)
            ]
        }
    ),
    "capitals": json.dumps(
        {"Facts": [{name.title(): part for name, part in one.items()} for one in (MOVED, EVA, MEAT)]}
    ),
    "reasoning as a field": json.dumps(
        {"reasoning": "Three statements.", "facts": [MOVED, EVA, MEAT], "confidence": 0.9}
    ),
    "a tool call in words": f'<tool_call>\n{{"name": "note", "parameters": {ALL}}}\n</tool_call>',
    "a draft in the thoughts": f"<think>First {DRAFT}, no: {{{{[ more.</think>\n{ALL}",
    "thoughts around": f"<think>\n{ALL}\n</think>",
    "thoughts without an end": f"<think>She moved {{to Porto}}.\nAnswer:\n{ALL}",
    "thoughts without a beginning": f"Hm, {DRAFT}?</think>{ALL}",
    "thoughts behind": f"{ALL}\n<think>Or {DRAFT}?</think>",
    "thoughts twice": f"<think>a {{</think><think>{DRAFT}</think>{ALL}",
    "a tag in a fact": f'<think>a</think>{ALL[:-1]}, "note": "</think>"}}',
    "thoughts in a channel": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|channel|>final<|message|>{ALL}",
    "thoughts in brackets": f"[THINK]{DRAFT}[/THINK]{ALL}",
    "thoughts in a fence": f"<think>\nShe moved {{to Porto}}.\n</think>\n```json\n{ALL}\n```\nDone!",
    "an object each": "\n".join(json.dumps({"facts": [one]}) for one in (MOVED, EVA, MEAT)),
    "numbers as text": ALL.replace('"line": 2', '"line": "2"').replace('"line": 3', '"line": "3."'),
    "bullets": "Here is what I noted:\n" + "\n".join(f"* {text}." for text in TEXTS),
    "a numbered list": "\n".join(f'{number}. "{text}."' for number, text in enumerate(TEXTS, 1)),
    "YAML": "facts:\n" + "".join(f'  - text: "{text}."\n    about: Rita\n    change: new\n' for text in TEXTS),
    "more than was asked": json.dumps(
        {"facts": [one | {"confidence": "high", "source": {"line": 1}} for one in (MOVED, EVA, MEAT)]}
    ),
}


@pytest.mark.parametrize("text", ALL_READ.values(), ids=ALL_READ)
def test_all_facts_are_read_whatever_their_form(text: str) -> None:
    assert read(text) == TEXTS


@pytest.mark.parametrize(
    "slot",
    [
        "home_city: Porto",
        "home_city:Porto",
        "home_city = Porto",
        "Home City: Porto",
        ["home_city", "Porto"],
        ["home_city: Porto"],
        {"home_city": "Porto"},
        {"key": "home_city", "value": "Porto"},
        {"slot": "home_city", "value": "Porto"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "names",
    [
        "Porto: place",
        "Porto (place)",
        "Porto: place, Eva: person",
        ["Porto: place"],
        ["Porto (place)", "Eva (person)"],
        [{"name": "Porto", "type": "place"}],
        {"Porto": "place"},
        {"Porto": "place", "Eva": "person"},
        {"name": "Porto", "type": "place"},
    ],
    ids=str,
)
def test_slots_and_names_are_read_in_any_form(slot: Any, names: Any) -> None:
    (found,) = parse_extraction(json.dumps({"facts": [MOVED | {"slot": slot, "names": names}]}), TASK).value or ()
    assert (found.key, found.value) == ("home_city", "Porto")
    assert {(one.name, one.type) for one in found.entities} >= {("Porto", "place")}


@pytest.mark.parametrize("names", ["Acme, Inc.: organisation", ["Acme, Inc."], {"Acme, Inc.": "organisation"}], ids=str)
def test_a_name_may_have_a_comma(names: Any) -> None:
    item = {"line": 1, "text": "Rita works at Acme, Inc.", "slot": "", "change": "new", "names": names}
    task = extraction(user("I work at Acme, Inc. now."), speaker="Rita")
    (found,) = parse_extraction(json.dumps({"facts": [item]}), task).value or ()
    assert [one.name for one in found.entities] == ["Acme, Inc."]


ENDED: Final[list[Any]] = ["ended", "Ended", ["ended"], {"type": "ended"}]
UNCHANGED: Final[list[Any]] = [None, "null", "N/A", "unknown", True, 7, [], {}, "other"]


@pytest.mark.parametrize(
    ("change", "hint"), [(one, "retract" if one in ENDED else "new") for one in (*ENDED, *UNCHANGED)], ids=str
)
def test_a_change_is_read_in_any_form(change: Any, hint: str) -> None:
    (found,) = parse_extraction(json.dumps({"facts": [MEAT | {"change": change}]}), TASK).value or ()
    assert found.action_hint == hint


@pytest.mark.parametrize("none", [None, "null", "NULL", "None", "none", "N/A", "unknown", "", [], {}, False], ids=str)
def test_words_for_none_are_none_in_every_field(none: Any) -> None:
    bare = {"line": none, "about": none, "slot": none, "category": none, "change": none, "names": none}
    (found,) = parse_extraction(json.dumps({"facts": [{"text": MEAT["text"]} | bare]}), TASK).value or ()
    assert (found.subject, found.key, found.value, found.entities) == (None, None, None, ())


NO_FACTS: Final[list[Any]] = [None, [], {}, "", "none", "No facts.", ["none"], [{}], [None], [[]], False]
NO_ANSWERS: Final[list[Any]] = [{"result": []}, {"message": "No facts to note."}, {"response": {"facts": None}}]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[]",
            "{}",
            "null",
            "none",
            "None.",
            "No facts",
            "No facts to note.",
            "There are no facts to note.",
            "Facts: none",
        ),
        *(
            "I found no facts.",
            "Nothing to note here.",
            "I didn't find any new information.",
            "The user states no facts.",
            "```json\n[]\n```",
        ),
        *("```\nnone\n```", "<think>Only a greeting.</think>\nNothing to remember.", '"none"'),
        *(json.dumps({"facts": none}) for none in NO_FACTS),
        json.dumps({"facts": [dict.fromkeys(MOVED, "")]}),
        json.dumps({"facts": [dict.fromkeys(MOVED)]}),
        *map(json.dumps, NO_ANSWERS),
    ],
)
def test_nothing_is_said_in_many_ways_and_asked_for_once(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "I can't help with that.",
            "I'm sorry, I cannot note facts about people.",
            "Sure, I can do that!",
            '{"error": "none"',
        ),
        *('{"error": "overloaded"}', "Error: no facts", f"| line | text |\n|---|---|\n| 2 | {TEXTS[0]} |", "{" * 9000),
        *("- I can't do that\n- It is private", f"<fact>{TEXTS[0]}</fact>", f'{{"facts": ["{TEXTS[0]}'),
    ],
)
def test_what_is_no_answer_is_named(text: str) -> None:
    parsed = parse_extraction(text, TASK)
    assert parsed.value is None
    assert parsed.complaints


def test_a_sentence_without_evidence_is_dropped_with_its_reason() -> None:
    parsed = parse_extraction(json.dumps({"facts": [TEXTS[0], "Rita moved to Lisbon in March."]}), TASK)
    assert len(parsed.value or ()) == 1
    assert [one.reason for one in parsed.dropped] == ["unfounded"]


# What new facts mean for known ones

NEW: Final = number_conflicts(
    [
        (fact("Rita moved to Porto."), (known_fact(1, "Rita lives in Bern."), known_fact(2, "Rita works in Bern."))),
        (fact("Rita's cat is called Tom."), (known_fact(3, "Rita has a cat."),)),
    ],
    said_at=MONDAY,
)
ONE: Final = number_conflicts([(fact("Rita moved to Porto."), (known_fact(1, "Rita lives in Bern."),))], said_at=MONDAY)
PAIRS: Final = {"N1 K1": "ended", "N1 K2": "both", "N2 K3": "detail"}
NEW_READ: Final[dict[str, str]] = {
    "as asked": json.dumps(PAIRS),
    "a fence": f"```json\n{json.dumps(PAIRS, indent=2)}\n```",
    "prose": f"Here are my judgements:\n{json.dumps(PAIRS)}\nThe new facts speak of a move; K2 may stay the same.",
    "thoughts": f"<think>N1 K1: both? No: {{}}</think>{json.dumps(PAIRS)}",
    "a draft before": f"{json.dumps(dict.fromkeys(PAIRS, 'both'))}\nOn second thought:\n{json.dumps(PAIRS)}",
    "a wrapper": json.dumps({"answers": PAIRS}),
    "JSON in JSON": json.dumps({"arguments": json.dumps(PAIRS)}).replace("\\", ""),
    "other marks": '{"N1_K1": "Ended", "n1-k2": "BOTH", "N2,K3": "detail."}',
    "together": '{"N1K1": "ended", "N1K2": "both", "N2K3": "detail"}',
    "the known one first": '{"K1 N1": "ended", "K2 N1": "both", "K3 N2": "detail"}',
    "nested": '{"N1": {"K1": "ended", "K2": "both"}, "N2": {"K3": "detail"}}',
    "of a lone candidate": '{"N1 K1": "ended", "N1 K2": "both", "N2": "detail"}',
    "a list": '[{"new": "N1", "known": "K1", "answer": "ended"}, {"new": "N1", "known": "K2", "answer": "both"}, '
    '{"new": "N2", "known": "K3", "answer": "detail"}]',
    "a list of pairs": '{"result": [["N1 K1", "ended"], ["N1 K2", "both"], ["N2 K3", "detail"]]}',
    "with reasons": '{"N1 K1": {"reason": "She moved, so K1 is over: both cannot be.", "answer": "ended"}, '
    '"N1 K2": {"answer": "both", "reason": "a job may be elsewhere"}, "N2 K3": {"answer": "detail"}}',
    "with reasons in the answer": '{"N1 K1": "ended - she moved", "N1 K2": "both: work", "N2 K3": "detail, named"}',
    "grouped": '{"ended": ["N1 K1"], "both": ["N1 K2"], "detail": ["N2 K3"]}',
    "truths": '{"N1 K1": {"same": false, "ended": true}, "N1 K2": {"both": true}, "N2 K3": {"same": 0, "detail": 1}}',
    "lines": "N1 K1: ended\nN1 K2: both\nN2 K3: detail",
    "bullets": "- **N1 K1**: ended\n- **N1 K2**: both\n- **N2 K3**: detail",
    "a table": "| new | known | answer |\n|---|---|---|\n| N1 | K1 | ended |\n| N1 | K2 | both |\n| N2 | K3 | detail |",
    "single quotes": str(PAIRS),
    "a trailing comma": '{"N1 K1": "ended", "N1 K2": "both", "N2 K3": "detail",}',
    "no bracket in the end": '{"N1 K1": "ended", "N1 K2": "both", "N2 K3": "detail"',
    "an object each": '{"N1 K1": "ended"}\n{"N1 K2": "both"}\n{"N2 K3": "detail"}',
    "another pair beside": json.dumps(PAIRS | {"N3 K1": "ended", "N1 K9": "same"}),
    "null for both": '{"N1 K1": "ended", "N1 K2": null, "N2 K3": "detail"}',
    "a list of one": '{"N1 K1": ["ended"], "N1 K2": ["both"], "N2 K3": ["detail"]}',
    "cut off behind them": json.dumps(PAIRS)[:-1] + ', "N3 K' + CUT_OFF,
}


@pytest.mark.parametrize("text", NEW_READ.values(), ids=NEW_READ)
def test_each_pair_has_its_answer_whatever_the_form(text: str) -> None:
    parsed = parse_resolution(text, NEW)
    assert [one.reason for one in parsed.value or ()] == ["ended: K1; both: K2", "detail: K3"]


@pytest.mark.parametrize(
    "text",
    ["ended", "Ended.", '"ended"', '{"answer": "ended"}', "The answer is: ended", '{"N1": "ended"}', '{"K1": "ended"}'],
)
def test_the_answer_about_a_lone_pair_needs_no_label(text: str) -> None:
    assert [one.reason for one in parse_resolution(text, ONE).value or ()] == ["ended: K1"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the answer is empty"),
        ("I can't judge that.", '{"N1 K1": ...}'),
        ('{"N1 K1": "replaced", "N2 K3": "unclear"}', '{"N1 K1": ...}'),
        ("[]", '{"N1 K1": ...}'),
        ('{"N1 K' + CUT_OFF, "cut off"),
    ],
)
def test_a_complaint_names_the_form_that_is_asked_for(text: str, complaint: str) -> None:
    parsed = parse_resolution(text, NEW)
    assert parsed.value is None
    assert complaint in parsed.complaints[0]
    assert "decisions" not in " ".join(parsed.complaints)
