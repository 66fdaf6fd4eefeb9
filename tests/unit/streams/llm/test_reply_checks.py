"""What a reply asserts beyond the new fact and the known facts that it names is read as the safe decision."""

from datetime import UTC, datetime, timedelta, timezone
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.llm.reply_checks import ParsedDecision
from mnemolog.streams.llm.resolve_prompt import parse_resolution
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.builders.prompts import MONDAY, fact, known_fact
from tests.support.builders.questions import number_conflicts

_LONGEST_CHECK = 5.0  # seconds of CPU; 0.6 were measured


def decided(
    new: ExtractedFact,
    *known: Candidate,
    action: str,
    said_at: datetime = MONDAY,
    user_names: tuple[str, ...] = (),
    **fields: Any,
) -> ParsedDecision:
    subject = number_conflicts([(new, known)], said_at=said_at, user_names=user_names)
    labels = () if action == "ADD" else range(1, len(known) + 1)
    parsed = parse_resolution(decisions_reply(decision_json(1, action, *labels, **fields)), subject)
    assert parsed.value is not None, parsed.complaints
    return parsed.value[0]


@pytest.mark.parametrize("action", ["KEEP", "MERGE"])
@pytest.mark.parametrize(
    ("new_end", "known_end", "announced", "agree"),
    [
        (None, None, "2024-03-01T00:00:00Z", True),
        ("2024-03-01T00:00:00Z", "2024-03-01T01:00:00+01:00", None, True),
        ("2024-03-01T00:00:00Z", None, "2024-03-01T00:00:00Z", True),
        ("2024-03-01T00:00:00Z", "2024-06-01T00:00:00Z", None, False),
        ("2024-03-01T00:00:00Z", None, None, False),
        (None, "2024-03-01T00:00:00Z", None, False),
    ],
)
def test_what_ends_at_another_time_is_another_fact(
    action: str, new_end: str | None, known_end: str | None, announced: str | None, *, agree: bool
) -> None:
    known = known_fact(1, "Mira has a permit.", valid_until=known_end, true_to=announced)
    found = decided(fact("Mira has a permit.", valid_until=new_end), known, action=action, text="Mira has a permit.")
    assert found.verdict == (action if agree else "EXTEND")


@pytest.mark.parametrize(
    ("new", "known", "user_names", "verdict"),
    [
        (("I like tea.", "Ann"), ("I like tea.", "Ann"), (), "KEEP"),
        (("I like tea.", "Ann"), ("I like tea.", "Bob"), (), "ADD"),
        (("I like tea.", "the user"), ("I like tea.", "Bob"), ("Ann",), "ADD"),
        (("I like tea.", "the user"), ("I like tea.", "Ann"), ("Ann",), "KEEP"),
        (("I like tea.", None), ("I like tea.", "Ann"), (), "KEEP"),
        (("Bob lives in Rome.", "Bob"), ("Tom lives in Rome.", "Tom"), (), "ADD"),
        (("Bob lives in Rome.", "Bob"), ("the user lives in Rome.", "the user"), ("Tom",), "ADD"),
        (("Bob lives in Rome.", "Bob"), ("the user lives in Rome.", "the user"), (), "KEEP"),
        (("Tom lives in Rome.", "Tom"), ("The user moved to Rome.", None), ("Alice",), "ADD"),
        (("The user lives in Rome.", None), ("Tom lives in Rome.", "Tom"), ("Alice",), "ADD"),
        (("Tom lives in Rome.", "Tom"), ("Tom is at home in Rome.", None), ("Alice",), "KEEP"),
        (("Tom lives in Rome.", "Tom"), ("Lives in Rome.", None), ("Tom",), "KEEP"),
        (("Rex is brown.", "Rex"), ("Mira has a brown dog, Rex.", "Mira"), ("Alice",), "KEEP"),
    ],
)
def test_words_are_a_repetition_of_one_subject_only(
    new: tuple[str, str | None], known: tuple[str, str | None], user_names: tuple[str, ...], verdict: str
) -> None:
    """A fact without a subject is the user's where their name is known."""
    old = known_fact(1, known[0], subject=known[1])
    found = decided(fact(new[0], subject=new[1]), old, action="KEEP", user_names=user_names)
    assert (found.verdict, found.targets) == (verdict, () if verdict == "ADD" else (1,))


def test_the_facts_of_two_people_do_not_become_one() -> None:
    tom, known = fact("Tom lives in Rome.", subject="Tom"), known_fact(1, "Lives in Rome.", subject=None)
    found = decided(tom, known, action="MERGE", text="Tom lives in Rome.", user_names=("Alice",))
    assert (found.verdict, found.targets, found.text) == ("ADD", (), None)
    twin = known_fact(1, "Tom lives in Rome.", subject="Tom", subject_relation="twin")
    assert decided(tom, twin, action="KEEP").verdict == "ADD"


@pytest.mark.parametrize(
    ("new", "known", "verdict"),
    [
        ("Prefers TypeScript for backends.", "Uses TypeScript.", "EXTEND"),
        ("Drinks coffee with oat milk.", "Likes coffee.", "EXTEND"),
        ("Works as a nurse.", "Is a nurse.", "KEEP"),
        ("Comes from Oslo.", "Is from Oslo.", "KEEP"),
        ("Owns a dog.", "Has a dog.", "KEEP"),
        ("Is at home in Rome.", "Lives in Rome.", "KEEP"),
        ("Prefers dark mode", "Likes dark themes better", "KEEP"),
        ("The user likes Turkey.", "The user enjoys Turkey.", "KEEP"),
        ("Tom lives in Rome.", "Lives in Rome.", "EXTEND"),
        ("Will has a dog.", "Has a dog.", "EXTEND"),
        ("Lives in Oslo.", "Lives in Rome.", "EXTEND"),
    ],
)
def test_a_verb_that_begins_a_sentence_is_no_name_and_a_phrase_more_is_lost_by_no_repetition(
    new: str, known: str, verdict: str
) -> None:
    assert decided(fact(new, subject=None), known_fact(1, known, subject=None), action="KEEP").verdict == verdict


def test_another_value_of_the_key_is_no_repetition() -> None:
    known = known_fact(1, "Mira has a home in the south.", key="home_city", value="Munich")
    new = fact("Mira has a home in the south.", key="home_city", value="Kiel")
    assert decided(new, known, action="KEEP").verdict == "EXTEND"
    assert decided(new.model_copy(update={"value": "Munich, Germany"}), known, action="KEEP").verdict == "KEEP"


@pytest.mark.parametrize(
    ("new", "known", "verdict", "targets"),
    [
        ("Mira has 2 cats in Rome.", ["Mira has 2 cats.", "Mira is in Rome with Ann."], "EXTEND", (1, 2)),
        ("Mira takes 5 mg of ramipril.", ["Mira takes ramipril.", "Mira takes 5 mg of aspirin."], "EXTEND", (1, 2)),
        ("Mira lives in Rome.", ["Mira lives in Oslo.", "Mira lives in Rome with Ann."], "KEEP", (2,)),
    ],
)
def test_a_keep_is_about_known_facts_that_say_it_all(
    new: str, known: list[str], verdict: str, targets: tuple[int, ...]
) -> None:
    facts = [known_fact(number, text) for number, text in enumerate(known, start=1)]
    found = decided(fact(new), *facts, action="KEEP")
    assert (found.verdict, found.targets) == (verdict, targets)


@pytest.mark.parametrize("action", ["KEEP", "MERGE", "EXTEND", "SIMILAR"])
@pytest.mark.parametrize(
    ("new", "known"),
    [
        ("Mira is not allergic to nuts.", "Mira is allergic to nuts."),
        ("Mira no longer eats meat.", "Mira eats meat."),
        ("Mira drinks coffee.", "Mira never drinks coffee."),
        ("Mira wohnt nicht mehr in Bonn.", "Mira wohnt in Bonn."),
        ("Mira ne fume plus.", "Mira fume."),
        ("Анна не ест мясо", "Анна ест мясо"),
        ("美拉对花生不过敏", "美拉对花生过敏"),
    ],
)
def test_a_denial_of_just_what_is_known_takes_its_place(action: str, new: str, known: str) -> None:
    """A doubtful one may stand beside it."""
    found = decided(fact(new), known_fact(1, known), action=action, text=known)
    assert (found.verdict, found.targets) == ("REPLACE", (1,))
    weak = decided(fact(new, certainty="weak"), known_fact(1, known), action=action, text=known)
    assert weak.verdict in ("EXTEND", "SIMILAR")


@pytest.mark.parametrize(
    ("new", "known"),
    [
        ("Mira does not like green tea.", "Mira likes tea."),
        ("Tom is not allergic to nuts.", "Mira is allergic to nuts."),
        ("Mira doesn't drink coffee this week.", "Mira drinks coffee."),
        ("Mira does not smoke at home.", "Mira smokes."),
        ("Mira mag keinen grünen Tee.", "Mira mag Tee."),
    ],
)
def test_a_denial_of_a_part_stands_beside_what_is_known(new: str, known: str) -> None:
    assert decided(fact(new), known_fact(1, known), action="SIMILAR").verdict == "SIMILAR"


@pytest.mark.parametrize(
    ("action", "ended_at", "taken"),
    [
        ("RETRACT", "2023-06-30", True),
        ("RETRACT", "2022-12-31", False),
        ("RETRACT", "2199-01-01", False),
        ("EXPIRE", "2053-05-08", True),
        ("EXPIRE", "2054-05-08", False),
        ("EXPIRE", None, False),
    ],
)
def test_an_end_that_nobody_can_mean_is_left_out(action: str, ended_at: str | None, *, taken: bool) -> None:
    """It lies before the beginning, or more than ten years ahead without a word of it."""
    known = known_fact(1, "Mira pays a loan.", true_from="2023-01-01T09:00:00Z")
    found = decided(fact("Mira pays the loan until 2053."), known, action=action, ended_at=ended_at)
    assert (found.ended_at is not None) == taken
    assert found.verdict == ("EXTEND" if action == "EXPIRE" and not taken else action)


def test_a_day_is_that_of_the_zone_in_which_times_are_shown() -> None:
    tokyo = timezone(timedelta(hours=9))
    said_at = datetime(2026, 3, 2, 0, 30, tzinfo=tokyo)
    known = known_fact(1, "Mira is in Rome.", true_from="2026-03-01T20:00:00Z")  # 2 March in Tokyo
    taken, left_out = (
        decided(fact("Mira is in Oslo."), known, action="REPLACE", ended_at=day, said_at=said_at)
        for day in ("2026-03-02", "2026-03-01")
    )
    assert left_out.ended_at is None
    assert taken.ended_at == datetime(2026, 3, 1, 15, tzinfo=UTC)


_PARENTS = st.lists(
    st.one_of(
        st.builds("has {} {}".format, st.integers(2, 900), st.sampled_from(["cats", "dogs"])),
        st.builds("works with {}".format, st.sampled_from(["Bob", "Anna", "Kofi", "Yuki"])),
        st.builds("takes {} mg of {}".format, st.integers(2, 900), st.sampled_from(["ramipril", "simvastatin"])),
        st.builds("does not like {}".format, st.sampled_from(["tea", "jazz", "chess", "cheese", "puzzles"])),
        st.builds("was in {} in {}".format, st.sampled_from(["Rome", "Oslo"]), st.integers(1950, 2020)),
        st.builds("swims on {}".format, st.sampled_from(["Mondays", "Fridays"])),
    ),
    min_size=2,
    max_size=5,
    unique_by=lambda said: said.split()[0] + said.split()[-1],
)
_SPLICES = st.sampled_from(["905", "17:45", "Zoe", "Kyoto", "kg", "litres", "€", "Tuesday", "must", "3.5", "Łódź"])


def _merge_of(parents: list[str], merged: list[str]) -> ParsedDecision:
    new, *known = (f"Mira {said}." for said in parents)
    facts = (known_fact(number, text) for number, text in enumerate(known, start=1))
    return decided(fact(new), *facts, action="MERGE", text=f"Mira {', '.join(merged[:-1])} and {merged[-1]}.")


@given(_PARENTS.flatmap(lambda parents: st.tuples(st.just(parents), st.permutations(parents))))
def test_parents_in_any_order_make_an_honest_merge(drawn: tuple[list[str], list[str]]) -> None:
    parents, merged = drawn
    assert _merge_of(parents, merged).verdict == "MERGE"


@given(_PARENTS, _SPLICES, st.data())
def test_a_detail_that_nobody_said_makes_no_merge(parents: list[str], splice: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parents) - 1))
    words = parents[place].split()
    at = data.draw(st.integers(1, len(words) - 1))
    merged = [*parents]
    merged[place] = " ".join([*words[:at], splice, *words[at:]])
    assert splice in " ".join(parents) or _merge_of(parents, merged).verdict == "EXTEND", merged


@given(st.permutations(range(2, 6)), st.permutations(["morning", "afternoon", "evening", "night"]), st.data())
def test_amounts_that_change_places_are_no_merge(amounts: list[int], times: list[str], data: st.DataObject) -> None:
    pairs = [f"{amount} mg in the {time}" for amount, time in zip(amounts, times, strict=True)]
    count = data.draw(st.integers(2, 4))
    said = f"Mira takes {', '.join(pairs[: count - 1])} and {pairs[count - 1]}."
    order = data.draw(st.permutations(range(count)))
    moved = [f"{amounts[place]} mg in the {time}" for place, time in zip(order, times, strict=False)]
    merged = f"Mira takes pills, {', '.join(moved[:-1])} and {moved[-1]}."
    found = decided(fact(said), known_fact(1, "Mira takes pills."), action="MERGE", text=merged)
    assert (found.verdict == "MERGE") == (list(order) == sorted(order))


@pytest.mark.parametrize(
    "sign", ["w{} ", "12 ", "not eat ", "Bob ", ",", "1 000 ", "e\u0301\u0323", "\u05d0 ", "a\u200b", "漢字ない"]
)
def test_the_checks_take_time_in_proportion_to_the_text(sign: str) -> None:
    """Of 20 000 characters; what takes the square of it takes minutes."""
    text = "".join(sign.format(number) for number in range(20_000 // len(sign)))[:20_000]
    began = process_time()
    decided(fact(text), known_fact(1, f"Mira. {text[:-9]}"), action="KEEP")
    assert process_time() - began < _LONGEST_CHECK
