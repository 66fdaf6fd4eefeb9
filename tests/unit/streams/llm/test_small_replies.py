"""What models are asked for: facts of seven fields, and one word about each pair of facts; the rest is worked out."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import Background, EarlierMessage
from mnemolog.streams.llm.extract_reply import lines_of, parse_extraction
from mnemolog.streams.llm.resolve_prompt import parse_resolution
from tests.support.builders.prompts import MONDAY, extraction, fact, known_fact, user
from tests.support.builders.questions import number_conflicts


def read(said: str, **fields: Any) -> ExtractedFact:
    """The one fact of a reply about what Alice said on Monday, 8 May 2023."""
    small = {"line": 1, "about": "Alice", "slot": "", "category": "other", "change": "new", "names": ""} | fields
    (found,) = parse_extraction(json.dumps({"facts": [small]}), extraction(user(said), speaker="Alice")).value or ()
    return found


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("I moved. My cat too!\nBye", ["I moved.", "My cat too!", "Bye"]),
        ("I saw Dr. Lee. She is kind.", ["I saw Dr. Lee.", "She is kind."]),
        ("我搬家了。我喜欢茶。", ["我搬家了。", "我喜欢茶。"]),
        (" \n ", []),
    ],
)
def test_lines_are_sentences(message: str, lines: list[str]) -> None:
    assert lines_of(message) == lines


SAID: Final = "Good morning. I rent a flat in Graz. My sister Eva has a boat. It costs 700."


@pytest.mark.parametrize("line", [2, 1, 0, 9, None, "2", True])
def test_a_fact_rests_on_the_line_that_has_its_words_whatever_line_it_names(line: Any) -> None:
    assert read(SAID, text="Alice rents a flat in Graz.", line=line).excerpt == "I rent a flat in Graz."


def test_a_named_line_counts_where_several_have_words_of_the_fact() -> None:
    said = "I like tea. I like tea with milk."
    assert [read(said, text="Alice likes tea.", line=line).excerpt for line in (1, 2)] == [*lines_of(said)]


OTTO: Final = "Otto (10:31): I live in Oslo now\nOtto (10:32): I am vegan"


@pytest.mark.parametrize(
    ("said", "line", "text", "is_kept"),
    [
        ('Tom said: "I live in Rome."', 1, "Rita lives in Rome.", False),
        ('Tom said: "I live in Rome. I am vegan." I like tea.', 1, "Rita lives in Rome.", False),
        ('Tom said: "I live in Rome. I am vegan." I like tea.', 2, "Rita is vegan.", False),
        ('I met Tom. He said: "I live in Rome."', 2, "Rita lives in Rome.", False),
        ('Tom told me: "I live in Rome."', 1, "Rita lives in Rome.", False),
        ('My sister wrote: "I quit my job."', 1, "Rita quit her job.", False),
        ('"I quit sugar", says the ad.', 1, "Rita quit sugar.", False),
        ('Translate "I am allergic to nuts" into French.', 1, "Rita is allergic to nuts.", False),
        (OTTO, 1, "Rita lives in Oslo now.", False),
        (OTTO, 2, "Rita is vegan.", False),
        ("Can you help me to answer this?\n> I moved to Oslo.", 2, "Rita moved to Oslo.", False),
        ("Max sagt: „Ich wohne in Bern.“", 1, "Rita wohnt in Bern.", False),
        ("Ana dijo: «Vivo en Lima.»", 1, "Rita vive en Lima.", False),
        ("老王说“我住在西安。”", 1, "Rita住在西安。", False),
        ("Ben wrote: 'I got engaged.'", 1, "Rita got engaged.", False),
        ("Tom said \u2018I don't eat meat.\u2019", 1, "Rita does not eat meat.", False),
        ("»Ich wohne in Bern«, schrieb Otto.", 1, "Rita wohnt in Bern.", False),
        ("\u2039J'habite à Lyon\u203a, écrit Paul.", 1, "Rita habite à Lyon.", False),
        ("Tom: I live in Rome", 1, "Rita lives in Rome.", False),
        ("Rita: I live in Rome", 1, "Rita lives in Rome.", True),
        ("The boys' house isn't far from Ana's; I live in Rome.", 1, "Rita lives in Rome.", True),
        ("My son is called 'Leo'.", 1, "Rita's son is called Leo.", True),
        ('I told Tom: "I moved to Rome."', 1, "Rita moved to Rome.", True),
        ('My motto is "never give up", and I live in Oslo.', 1, "Rita lives in Oslo.", True),
        ('Watched "The Wire" again.', 1, "Rita watched The Wire again.", True),
        ('My son is called "Leo".', 1, "Rita's son is called Leo.", True),
        ('Tom said: "I live in Rome. I am vegan." I like tea.', 3, "Rita likes tea.", True),
        ('Tom said "I live in Rome." I live in Rome too.', 2, "Rita lives in Rome too.", True),
        ("老王说“我住在西安。”我喜欢茶。", 2, "Rita喜欢茶。", True),
        ("Rita: I live in Oslo now\nOtto: I am vegan", 1, "Rita lives in Oslo now.", True),
        ("Note: I moved to Rome.", 1, "Rita moved to Rome.", True),
        ('Translate "I am allergic to nuts" into French.', 1, "Rita translates into French.", True),
    ],
)
def test_what_is_quoted_in_a_line_or_said_by_another_one_is_no_fact_of_the_speaker(
    said: str, line: int, text: str, is_kept: bool
) -> None:
    reply = json.dumps({"facts": [{"line": line, "text": text, "about": "Rita", "slot": "", "change": "new"}]})
    parsed = parse_extraction(reply, extraction(user(said), speaker="Rita"))
    assert bool(parsed.value) == is_kept
    assert [one.detail for one in parsed.dropped] == ["its excerpt is what somebody else said"] * (not is_kept)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"slot": "home_city: Graz"}, {"key": "home_city", "value": "Graz"}),
        ({"slot": "home city:Graz"}, {"key": "home_city", "value": "Graz"}),
        ({"slot": "employer: none"}, {"key": "employer", "value": None}),
        ({"slot": "employer"}, {"key": "employer", "value": None}),
        ({"slot": ""}, {"key": None, "value": None}),
        ({"slot": None, "key": "rent", "value": 700}, {"key": "rent", "value": "700"}),
        ({"change": "ended"}, {"action_hint": "retract", "certainty": "explicit"}),
        ({"change": "Changed"}, {"action_hint": "update"}),
        ({"change": "unsure"}, {"action_hint": "new", "certainty": "speculation"}),
        ({"change": "new", "action_hint": "retract"}, {"action_hint": "retract"}),
        ({"category": "identity"}, {"importance_category": "biographical_milestone"}),
        ({"category": "soft_preference"}, {"importance_category": "stable_preference"}),
        ({"about": "Alice's sister Eva"}, {"subject": "Alice's sister Eva"}),
    ],
    ids=str,
)
def test_the_fields_of_a_fact_come_from_the_few_that_are_asked_for(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = read(SAID, text="Alice rents a flat in Graz.", line=2, **fields)
    assert {name: getattr(found, name) for name in expected} == expected


def noted(said: str, **fields: Any) -> tuple[ExtractedFact, tuple[str, ...]]:
    """The fact of a reply about what Alice said, and what the reply's reader notes."""
    small = {"line": 1, "text": said.replace("I ", "Alice ", 1), "about": "Alice"} | fields
    parsed = parse_extraction(json.dumps({"facts": [small]}), extraction(user(said), speaker="Alice"))
    (found,) = parsed.value or ()
    return found, parsed.notes


@pytest.mark.parametrize(
    "slot",
    [
        *("home_city: not Graz", "home_city: no longer Graz", "home_city: none (was Graz)", "home_city: nicht Graz"),
        *("home_city: ended", "home_city: over", "home_city: formerly Graz", "home_city: Graz (former)"),
        *("home_city: Graz -> Linz", "home_city: Graz → Linz", "home_city = Graz => Linz"),
        *("home_city: Linz, Graz", "home_city: Linz and Graz", "home_city: Linz; Graz", "home_city: ya no Graz"),
        *("home_city: last week", "home_city: now", "home_city: yesterday evening", "home_city: home_city"),
        *("home_city: Home City", "home_city - Linz", "home_city Linz", "home_city (Linz)", "Linz", "home_city | linz"),
    ],
)
def test_a_slot_without_a_value_that_could_hold_is_left_out_and_noted(slot: str) -> None:
    found, notes = noted("I moved from Graz to Linz.", slot=slot, change="new")
    assert (found.key, found.value, found.text) == (None, None, "Alice moved from Graz to Linz.")
    assert any("slot" in note for note in notes)


@pytest.mark.parametrize(
    ("said", "slot"),
    [
        ("I live in London, Ontario.", "home_city: London, Ontario"),
        ("I like tea and milk.", "likes: tea, milk"),
        ("I eat no meat.", "diet: no meat"),
        ("I am retired.", "employment_status: retired"),
        ("I was born on 14 June.", "birthday: 14 June"),
        ("I call on Monday.", "day_off: Monday"),
        ("I am over 50.", "age: over 50"),
        ("I use Not Boring Weather.", "app: Weather"),
        ("I live in Graz.", "home_city: none"),
        ("I live in Graz.", "home_city"),
        ("I live in Graz.", ""),
    ],
)
def test_a_slot_with_a_value_stays(said: str, slot: str) -> None:
    found, notes = noted(said, slot=slot)
    key, _, value = slot.partition(": ")
    assert (found.key or "", found.value or "", notes) == (key, value.removeprefix("none"), ())


@pytest.mark.parametrize(
    ("said", "text", "slot", "key"),
    [
        ("I moved desks at work.", "Alice moved desks at work.", "home_city: Graz", None),
        ("Should I go to Linz?\nI may move to Linz.", "Alice may move to Linz.", "home_city: Graz", None),
        ("I started a diary.", "Alice started a diary.", "employer: Initech", None),
        ("I have a concert.", "Alice has a concert.", "hobby: cello", None),
        ("I moved from Graz to Linz.", "Alice moved from Graz to Linz.", "home_city: Graz", None),
        ("I moved from Graz to Linz.", "Alice moved from Graz to Linz.", "home_city: Linz", "home_city"),
        ("I moved there.", "Alice moved to Graz.", "home_city: Graz", "home_city"),
        ("I stay in Graz.", "Alice stays in Graz.", "home_city: Graz", "home_city"),
    ],
)
def test_a_value_that_only_earlier_messages_say_fills_no_slot(said: str, text: str, slot: str, key: str | None) -> None:
    earlier = EarlierMessage(turn_id="t0", role="user", content="I like Graz, Initech, and my cello.", at=MONDAY)
    task = replace(extraction(user(said), speaker="Alice"), background=Background(messages=(earlier,)))
    small = {"line": len(lines_of(said)), "text": text, "about": "Alice", "slot": slot, "change": "new"}
    found = parse_extraction(json.dumps({"facts": [small]}), task).value or ()
    assert [(one.text, one.key, one.value) for one in found] == [(text, key, key and slot.partition(": ")[2])]


@pytest.mark.parametrize(
    ("change", "hint", "certainty"),
    [
        *((word, "update", "explicit") for word in ("update", "Updated", "replaced", "moved", "switched", "corrected")),
        *((word, "retract", "explicit") for word in ("stopped", "no longer", "over", "end", "ended (sold)", "retract")),
        *((word, "new", "weak") for word in ("maybe", "guess", "possibly", "Probably", "not sure")),
        *((word, "new", "explicit") for word in ("new", "added", "", None)),
    ],
)
def test_a_word_of_change_is_read_in_its_plain_forms(change: str | None, hint: str, certainty: str) -> None:
    found, notes = noted("I sail.", change=change)
    assert (found.action_hint, found.certainty, notes) == (hint, certainty, ())


@pytest.mark.parametrize(
    ("said", "certainty"),
    [
        ("I think I might move to Rome.", "weak"),
        ("I will probably sell the boat.", "weak"),
        ("I moved to Rome in May.", "explicit"),
        ("I like May.", "explicit"),
    ],
)
def test_what_is_said_with_a_doubt_is_not_explicit(said: str, certainty: str) -> None:
    found, _ = noted(said, text=said.replace("I ", "Alice ").replace("think", "thinks"), change="new")
    assert found.certainty == certainty


@pytest.mark.parametrize("change", ["blue", "new or ended", "7"])
def test_another_word_of_change_is_noted(change: str) -> None:
    found, notes = noted("I sail.", change=change)
    assert (found.action_hint, len(notes)) == ("new", 1)
    assert "change" in notes[0]


@pytest.mark.parametrize(
    ("said", "fields", "begins", "ends"),
    [
        ("I joined a choir in March.", {}, "2023-03-01", None),
        ("I start at Initech on 1 June.", {}, "2023-06-01", None),
        ("I am flying to Rome on 1 June.", {"category": "task_context"}, None, "2023-06-02"),
        ("My lease ends on 1 June.", {"change": "ended"}, None, "2023-06-02"),
        ("I drive a rented car until 12 May.", {}, None, "2023-05-13"),
        ("I like tea.", {}, None, None),
        ("I joined a choir in March.", {"event_time": None}, None, None),
        ("I joined a choir in March.", {"event_time": "2023-03-09"}, "2023-03-09", None),
    ],
)
def test_times_are_those_of_the_words_where_the_reply_has_none(
    said: str, fields: dict[str, Any], begins: str | None, ends: str | None
) -> None:
    found = read(said, text=said.replace("I ", "Alice ", 1), **fields)
    times = [one and f"{one:%Y-%m-%d}" for one in (found.event_time, found.valid_until)]
    assert times == [begins, ends]


@pytest.mark.parametrize(
    ("said", "text", "slot", "subject"),
    [
        ("My sister Eva lives in Graz.", "Alice's sister Eva lives in Graz.", "home_city: Graz", "Alice's sister Eva"),
        ("My boss moved to Graz.", "Alice's boss moved to Graz.", "home_city: Graz", "Alice's boss"),
        ("My boss is Eva.", "Alice's boss is Eva.", "boss: Eva", "Alice"),
        ("I met my sister Eva in Graz.", "Alice met her sister Eva in Graz.", "", "Alice"),
        ("My cat is old.", "Alice's cat is old.", "pet: cat", "Alice"),
    ],
)
def test_a_fact_that_begins_with_somebody_of_the_speaker_is_about_that_person(
    said: str, text: str, slot: str, subject: str
) -> None:
    assert read(said, text=text, slot=slot).subject == subject


@pytest.mark.parametrize(("about", "is_kept"), [("Oda", True), ("oda", True), ("the user", True), ("Alice", False)])
def test_a_message_with_a_name_states_facts_of_its_sender(about: str, is_kept: bool) -> None:
    said = {"line": 1, "text": f"{about} lives in Graz.", "about": about, "slot": "", "change": "new", "names": ""}
    task = extraction(user("I live in Graz.", name="Oda"), speaker="Alice")
    assert bool(parse_extraction(json.dumps({"facts": [said]}), task).value) == is_kept


@pytest.mark.parametrize(
    ("said", "slot", "key"),
    [
        ("My sister Ida called.", "friend: Ida", None),
        ("I met Eva in Graz.", "boss: Eva", None),
        ("My sister Ida called.", "sister: Ida", "sister"),
        ("My wife is Ana.", "spouse: Ana", "spouse"),
        ("My husband is Tom.", "partner: Tom", "partner"),
        ("My manager is Eva.", "boss: Eva", "boss"),
        ("Mi hermana se llama Eva.", "sister: Eva", "sister"),
    ],
)
def test_a_slot_of_a_tie_counts_where_the_line_says_the_tie(said: str, slot: str, key: str | None) -> None:
    found = read(said, text=said, slot=slot)
    assert (found.key, bool(found.value)) == (key, key is not None)
    assert key or not found.relations


def test_a_text_gets_the_days_that_its_words_mean() -> None:
    assert read("I joined a choir in March.", text="Alice joined a choir in March.").text.endswith(
        "in March (2023-03-01 to 2023-03-31)."
    )
    assert read("I joined in March 2022.", text="Alice joined in March 2022.").text == "Alice joined in March 2022."


@pytest.mark.parametrize(
    ("said", "text", "about", "subject"),
    [
        ("My colleague Ana moved to Rome.", "Alice's colleague Ana moved to Rome.", "Ana", "Alice's colleague Ana"),
        ("My niece Ana moved to Rome.", "Ana moved to Rome.", "Ana", "Alice's niece Ana"),
        ("Ana from work moved to Rome.", "Ana from work moved to Rome.", "Ana", "Ana from work"),
        ("Tom's sister Ana moved to Rome.", "Ana moved to Rome.", "Ana", "Tom's sister Ana"),
        ("Ana's sister moved to Rome.", "Ana's sister moved to Rome.", "Ana", "Ana's sister"),
        ("A girl called Ana moved to Rome.", "A girl called Ana moved to Rome.", "Ana", "A girl called Ana"),
        ("Ana, my dentist, moved to Rome.", "Ana moved to Rome.", "Ana", "Alice's dentist Ana"),
        ("My colleague Alice moved to Rome.", "Alice's colleague Alice moved.", "Alice", "Alice's colleague Alice"),
        ("Little Alice moved to Rome.", "Little Alice moved to Rome.", "Alice", "Little Alice"),
        ("Alice from accounting moved.", "Alice from accounting moved.", "Alice", "Alice from accounting"),
        ("Tom's boss Alice moved.", "Tom's boss Alice moved.", "Alice", "Tom's boss Alice"),
        ("My parents moved to Rome.", "Alice's parents moved to Rome.", "Alice", "Alice's parents"),
        ("My ex moved to Rome.", "Alice's ex moved to Rome.", "Alice", "Alice's ex"),
        ("My company moved to Rome.", "Alice's company moved to Rome.", "Alice", "Alice's company"),
        ("My sister moved to Rome.", "The user's sister moved to Rome.", "the user", "The user's sister"),
        ("I met my sister Ana at noon.", "Alice met her sister Ana at noon.", "Ana", "Alice's sister Ana"),
        ("I moved from Graz to Rome.", "Alice moved from Graz to Rome.", "Alice", "Alice"),
        ("My home is in Rome now.", "Alice's home is in Rome now.", "Alice", "Alice"),
        ("My wife is Ana, a nurse.", "Alice's wife is Ana, a nurse.", "Alice", "Alice"),
        ("My birthday is 5 May.", "Alice's birthday is 5 May.", "Alice", "Alice"),
        ("Ana moved from Graz to Rome.", "Ana moved from Graz to Rome.", "Ana", "Ana"),
    ],
)
def test_a_bare_name_is_of_whom_its_words_describe(said: str, text: str, about: str, subject: str) -> None:
    assert read(said, text=text, about=about).subject == subject


@pytest.mark.parametrize(
    ("said", "fields", "entities", "relations"),
    [
        (
            "I live in Graz.",
            {"slot": "home_city: Graz", "names": "Graz: place"},
            [("Graz", "place")],
            [("home_city", "Graz")],
        ),
        ("I live in Graz.", {"slot": "home_city: Graz"}, [("Graz", "place")], [("home_city", "Graz")]),
        ("My sister Eva sings.", {}, [("Alice's sister Eva", "person")], []),
        (
            "I met Liz, or Elizabeth.",
            {"names": "Liz = Elizabeth: person"},
            [("Liz", "person")],
            [("same_as", "Elizabeth")],
        ),
        ("I met Bo and Ada.", {"names": "Bo; Ada: person"}, [("Bo", "other"), ("Ada", "person")], []),
        ("I met Bo.", {"names": "Bo: person; Mars: planet"}, [("Bo", "person")], []),
    ],
    ids=str,
)
def test_names_are_read_and_ties_and_values_are_names(
    said: str, fields: dict[str, Any], entities: list[tuple[str, str]], relations: list[tuple[str, str]]
) -> None:
    found = read(said, text=said.replace("I ", "Alice ").replace("My", "Alice's"), **fields)
    assert [(one.name, one.type) for one in found.entities] == entities
    assert [(one.predicate, one.object) for one in found.relations] == relations


@pytest.mark.parametrize(
    ("said", "slot", "names", "named"),
    [
        ("My sister sings.", "sister: yes", "", None),
        ("Yes, my sister sings.", "sister: Yes", "", None),
        ("I have two children.", "children: two", "", None),
        ("Two children of mine sing.", "children: Two", "", None),
        ("My 2 children sing.", "children: 2", "", None),
        ("My brother in Ireland sings.", "brother: brother in Ireland", "", None),
        ("My mother sings.", "mother: Mother", "", None),
        ("My sister sings.", "sister: a singer", "", None),
        ("My sister is Eva.", "sister: Eva", "", "Alice's sister Eva"),
        ("My sister is called Eva-Maria.", "sister: Eva-Maria", "", "Alice's sister Eva-Maria"),
        ("My dentist is Dr. Okafor.", "dentist: Dr. Okafor", "", "Alice's dentist Dr. Okafor"),
        ("my sister is lea.", "sister: lea", "lea: person", "Alice's sister lea"),
    ],
)
def test_the_value_of_a_tie_is_somebody_only_where_it_is_a_name(
    said: str, slot: str, names: str, named: str | None
) -> None:
    small = {"line": 1, "text": said, "about": "Alice", "slot": slot, "change": "new", "names": names}
    facts = parse_extraction(json.dumps({"facts": [small]}), extraction(user(said), speaker="Alice")).value or ()
    assert [fact.text for fact in facts] == [said]
    assert [one.object for one in facts[0].relations] == [named] * (named is not None)
    value = slot.partition(": ")[2]
    assert named or not any(one.name.endswith(f" {value}") for one in facts[0].entities)


@pytest.mark.parametrize(("tie", "name"), [("sister", "Maud"), ("boss", "Henrik"), ("friend", "Ana Keller")])
def test_a_fact_about_somebody_of_a_tie_has_no_tie_to_the_same_one(tie: str, name: str) -> None:
    small = {"line": 1, "text": f"{name} sings.", "about": name, "slot": f"{tie}: {name}", "change": "new"}
    task = extraction(user(f"My {tie} {name} sings."), speaker="Rita")
    facts = parse_extraction(json.dumps({"facts": [small]}), task).value or ()
    whole = f"Rita's {tie} {name}"
    assert [(fact.text, fact.subject, fact.relations) for fact in facts] == [(f"{name} sings.", whole, ())]
    assert [one.name for one in facts[0].entities] == [whole]


def test_nothing_is_added_to_the_facts_of_rules() -> None:
    said = "Meine Schwester Eva singt."
    reply = json.dumps({"facts": [{"excerpt": said, "text": said, "subject": "Alice", "relations": []}]})
    (found,) = parse_extraction(reply, extraction(user(said), speaker="Alice")).value or ()
    assert (found.entities, found.relations, found.subject) == ((), (), "Alice")


# What a new fact means for a known one

TURN: Final = MONDAY


def decided(new: dict[str, Any], known: dict[str, Any], answer: str) -> tuple[str, tuple[int, ...]]:
    pair = (fact(**new), (known_fact(1, **known),))
    parsed = parse_resolution(json.dumps({"N1 K1": answer}), number_conflicts([pair], said_at=TURN))
    (one,) = parsed.value or ()
    assert parsed.complaints == ()
    return one.verdict, one.targets


FLAT: Final = {"text": "Alice rents a flat.", "subject": "Alice"}
ENDED: Final = {"text": "Alice no longer rents a flat.", "subject": "Alice", "action_hint": "retract"}
HOUSE: Final = {"text": "Alice owns a house now.", "subject": "Alice", "action_hint": "update"}
BERN: Final = {"text": "Alice lives in Bern.", "key": "home_city", "value": "Bern"}
OSLO: Final = {"text": "Alice's flat is in Oslo.", "key": "home_city", "value": "Oslo"}
ROCHE: Final = {"text": "Alice works at Roche now.", "key": "employer", "value": "Roche", "subject": "Alice"}
RENT: Final = {"text": "Alice pays 870 euros rent.", "key": "rent"}
JUNE: Final = datetime(2023, 6, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("new", "known", "answer", "expected"),
    [
        (HOUSE, FLAT, "ended", ("REPLACE", (1,))),
        (HOUSE, FLAT, "mistake", ("REPLACE", (1,))),  # it says "now"
        ({"text": "Alice owns a house."}, FLAT, "ended", ("SIMILAR", (1,))),  # no word tells a change
        ({"text": "Alice lives in Bern."}, {"text": "Alice loves hiking."}, "ended", ("SIMILAR", (1,))),
        (ROCHE, BERN | {"subject": "Alice"}, "ended", ("SIMILAR", (1,))),  # another slot, and no word in common
        (
            ROCHE | {"text": "Alice left Nestle.", "action_hint": "retract"},
            BERN | {"subject": "Alice"},
            "ended",
            ("SIMILAR", (1,)),
        ),
        (ROCHE | {"text": "Alice moved from Bern to Roche."}, BERN | {"subject": "Alice"}, "ended", ("REPLACE", (1,))),
        ({"text": "Alice never rented a flat."}, FLAT, "mistake", ("CONTRADICT", (1,))),
        ({"text": "Alice likes tea."}, {"text": "Alice likes coffee."}, "mistake", ("SIMILAR", (1,))),
        ({"text": "Alice takes 3 pills."}, {"text": "Alice takes 5 pills."}, "mistake", ("CONTRADICT", (1,))),
        (OSLO, BERN, "mistake", ("CONTRADICT", (1,))),
        (OSLO, BERN, "both", ("SIMILAR", (1,))),
        (OSLO, BERN, "detail", ("EXTEND", (1,))),
        (OSLO | {"action_hint": "update"}, BERN, "detail", ("REPLACE", (1,))),
        (OSLO | {"action_hint": "update"}, BERN, "both", ("REPLACE", (1,))),
        (OSLO | {"text": "Alice moved to Oslo."}, BERN, "both", ("REPLACE", (1,))),
        (OSLO | {"text": "Alice moved to Oslo.", "valid_until": JUNE}, BERN, "both", ("SIMILAR", (1,))),
        (OSLO | {"text": "Alice also lives in Oslo now."}, BERN, "both", ("SIMILAR", (1,))),
        (OSLO | {"text": "Alice might have moved to Oslo."}, BERN, "both", ("SIMILAR", (1,))),
        (OSLO | {"event_time": JUNE}, BERN, "both", ("SIMILAR", (1,))),
        (OSLO | {"event_time": JUNE}, BERN, "detail", ("REPLACE", (1,))),
        ({"text": "Alice pays 920 euros rent now.", "key": "rent"}, RENT, "detail", ("REPLACE", (1,))),
        ({"text": "Alice pays 920 euros rent.", "key": "rent"}, RENT, "both", ("SIMILAR", (1,))),
        (
            {"text": "Alice pays 870 euros rent and 50 for water.", "key": "bill"},
            RENT,
            "detail",
            ("MERGE", (1,)),
        ),
        ({"text": "Suppose Alice paid 920 euros rent.", "key": "rent"}, RENT, "detail", ("EXTEND", (1,))),
        (OSLO | {"action_hint": "update", "key": "hobby"}, BERN | {"key": "hobby"}, "detail", ("EXTEND", (1,))),
        (OSLO | {"action_hint": "update", "certainty": "speculation"}, BERN, "detail", ("EXTEND", (1,))),
        ({"text": "Alice loves running these days."}, {"text": "Alice hates running."}, "detail", ("REPLACE", (1,))),
        ({"text": "Alice eats meat."}, {"text": "Alice does not eat meat."}, "detail", ("REPLACE", (1,))),
        ({"text": "Alice eats meat."}, {"text": "Alice does not eat meat at home."}, "detail", ("EXTEND", (1,))),
        (
            {"text": "Alice loves tea.", "valid_until": JUNE},
            {"text": "Alice hates tea."},
            "detail",
            ("EXTEND", (1,)),
        ),
        ({"text": "Suppose Alice loves tea."}, {"text": "Alice hates tea."}, "detail", ("EXTEND", (1,))),
        (ENDED, FLAT, "ended", ("RETRACT", (1,))),
        (ENDED, FLAT, "mistake", ("RETRACT", (1,))),
        (ENDED | {"valid_until": JUNE}, FLAT, "ended", ("EXPIRE", (1,))),
        (ENDED, FLAT, "detail", ("RETRACT", (1,))),  # it denies just what is known
        (FLAT, FLAT, "ended", ("KEEP", (1,))),  # the same words
        (FLAT, FLAT, "same", ("KEEP", (1,))),
        ({"text": "Alice rents a flat for 900 euros."}, FLAT, "same", ("EXTEND", (1,))),
        ({"text": "Alice rents a flat in Graz."}, FLAT, "detail", ("MERGE", (1,))),
        ({"text": "The flat of Alice is in Graz."}, FLAT, "detail", ("EXTEND", (1,))),
        ({"text": "Alice has a garden."}, FLAT, "both", ("SIMILAR", (1,))),
        ({"text": "Tom owns a house.", "subject": "Tom"}, FLAT, "ended", ("SIMILAR", (1,))),
        ({"text": "Tom owns a house.", "subject": "Tom"}, FLAT, "same", ("SIMILAR", (1,))),
        (
            {"text": "Alice does not like plums."},
            {"text": "Alice likes fruit.", "value": "fruit"},
            "ended",
            ("SIMILAR", (1,)),
        ),
    ],
    ids=str,
)
def test_a_verdict_comes_from_a_plain_answer_and_from_the_words(
    new: dict[str, Any], known: dict[str, Any], answer: str, expected: tuple[str, tuple[int, ...]]
) -> None:
    assert decided(new, known, answer) == expected


def said_of(key: str, old: str, new: str, said: str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A new value of a slot, as it was said, and the known one."""
    values = {"key": key, "value": new, "subject": "Alice", "excerpt": said} | fields
    return {"text": said} | values, {"text": f"Alice's {key} is {old}.", "key": key, "value": old, "subject": "Alice"}


@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        ("home_city", "Bern", "Graz", "I'm in Graz again for the trade show."),
        ("home_city", "Bern", "Graz", "We are now in Graz, the kids love it."),
        ("home_city", "Bern", "Graz", "Ich bin jetzt für drei Tage in Graz."),
        ("home_city", "Bern", "Graz", "Estoy ahora en Graz por una semana."),
        ("home_city", "Bern", "Graz", "I moved to Graz for two months."),
        ("home_city", "Bern", "Graz", "I moved to a second flat in Graz."),
        ("employer", "Acme", "Initech", "I joined Initech on weekends."),
        ("employer", "Acme", "Initech", "I started a side gig at Initech."),
        ("employer", "Acme", "Initech", "I switched to Initech on Saturdays."),
        ("employer", "Acme", "Initech", "I work at Initech now, still at Acme in the mornings."),
        ("boss", "Kim", "Noa", "At the choir my boss is Noa now."),
        ("browser", "Chrome", "Firefox", "I switched to Firefox at home, but I still use Chrome at work."),
        ("diet", "vegan", "keto", "I'm on keto again, also vegan."),
        ("team", "Red", "Blue", "I left my bag with the Blue team."),
    ],
)
@pytest.mark.parametrize("hint", ["new", "update"])
def test_what_holds_beside_a_value_or_for_a_term_ends_it_not(
    key: str, old: str, new: str, said: str, hint: str
) -> None:
    is_limited = not said.startswith(("We are", "I'm in", "At the", "I left"))
    if hint == "new" or is_limited:
        assert decided(*said_of(key, old, new, said, action_hint=hint), "both") == ("SIMILAR", (1,))


@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        ("home_city", "Bern", "Graz", "I moved to Graz last month."),
        ("home_city", "Bern", "Graz", "Ich bin nach Graz gezogen."),
        ("home_city", "Bern", "Graz", "Me mudé a Graz."),
        ("employer", "Acme", "Initech", "I left Acme, and I am at Initech."),
        ("employer", "Acme", "Initech", "I no longer work at Acme but at Initech."),
        ("browser", "Chrome", "Firefox", "I switched from Chrome to Firefox."),
    ],
)
def test_plain_words_of_a_change_end_the_value_that_they_name(key: str, old: str, new: str, said: str) -> None:
    assert decided(*said_of(key, old, new, said), "both") == ("REPLACE", (1,))
    of_another = said_of(key, old, new, said, subject="Alice's sister Eva")
    assert decided(*of_another, "both") == ("SIMILAR", (1,))


@pytest.mark.parametrize("answer", ["ended", "mistake", "detail", "both"])
@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        ("home_city", "Berlin", "Neukölln", "I moved from Wedding to Neukölln."),
        ("home_city", "Bern", "Graz", "We moved the shop from Linz to Graz."),
        ("home_city", "Wien", "Neubau", "Ich bin von Favoriten nach Neubau gezogen."),
        ("employer", "Acme", "support", "I switched from sales to support."),
    ],
)
def test_who_says_what_was_left_ends_nothing_else(key: str, old: str, new: str, said: str, answer: str) -> None:
    verdict, _ = decided(*said_of(key, old, new, said, action_hint="update"), answer)
    assert verdict in ("SIMILAR", "EXTEND")


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Ida moved desks at work.", "SIMILAR"),
        ("Ida started a diary.", "SIMILAR"),
        ("Ida changed her hair now.", "SIMILAR"),
        ("Ida left Bern for good.", "REPLACE"),
    ],
)
def test_a_fact_without_a_slot_ends_the_value_of_one_only_in_words_of_it(said: str, verdict: str) -> None:
    bern = {"text": "Ida lives in Bern.", "key": "home_city", "value": "Bern", "subject": "Ida"}
    assert decided({"text": said, "subject": "Ida"}, bern, "ended")[0] == verdict


@pytest.mark.parametrize(
    ("new", "known", "is_end"),
    [
        ("Ida ist nach Graz gezogen.", "Ida wohnt in Bern.", True),
        ("Ida a déménagé à Lyon.", "Ida habite à Nice.", True),
        ("Ida switched to a bicycle.", "Ida drives a car.", True),
        ("Ida finished her thesis.", "Ida is writing a thesis.", True),
        ("Ida gave birth to a girl.", "Ida is pregnant.", True),
        ("Ida sold the boat.", "Ida sails every summer.", True),
        ("Ida lives in Bern.", "Ida loves hiking.", False),
        ("Ida likes tea.", "Ida likes coffee.", False),
        ("Ida has a cat.", "Ida is pregnant.", False),
    ],
)
def test_an_end_is_believed_of_what_has_happened(new: str, known: str, *, is_end: bool) -> None:
    expected = "REPLACE" if is_end else "SIMILAR"
    assert decided({"text": new, "subject": "Ida"}, {"text": known, "subject": "Ida"}, "ended")[0] == expected
    event = {"text": new, "subject": "Ida", "key": "event", "value": "x"}
    mood = {"text": known, "subject": "Ida", "key": "mood", "value": "y"}
    assert decided(event, mood, "ended")[0] == ("REPLACE" if "thesis" in new else "SIMILAR")


HOMES: Final = number_conflicts(
    [
        (fact("Alice no longer lives in Bonn.", action_hint="retract"), (known_fact(1, "Alice lives in Bonn."),)),
        (
            fact("Alice moved to Ulm.", action_hint="update", event_time="2023-05-01T00:00:00Z"),
            (known_fact(1, "Alice lives in Bonn."), known_fact(2, "Alice likes Bonn.")),
        ),
    ],
    said_at=MONDAY,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"N1 K1": "ended", "N2 K1": "ended", "N2 K2": "both"}',
        '{"N1K1": "Ended", "n2 k1": "ended"}',
        'Here: {"answer": {"N1 K1": "ended", "N2 K1": "mistake", "N2 K2": "nonsense"}}',
    ],
)
def test_a_fact_may_be_ended_and_replaced_in_one_turn_and_a_pair_without_an_answer_is_both(text: str) -> None:
    parsed = parse_resolution(text, HOMES)
    assert [(one.verdict, one.targets) for one in parsed.value or ()] == [("RETRACT", (1,)), ("REPLACE", (1,))]


@pytest.mark.parametrize(
    ("text", "note"),
    [('{"N1 K1": "ended"}', "N2 has no"), ('{"N2 K1": "ended", "N1 K1": "perhaps"}', "N1 has no")],
)
def test_a_new_fact_without_any_answer_is_judged_by_its_words(text: str, note: str) -> None:
    parsed = parse_resolution(text, HOMES)
    assert parsed.value is not None
    assert [note in one for one in parsed.notes] == [True]
