"""What a reply asserts beyond the new fact and the known facts that it names is refused, and nothing else."""

from datetime import UTC, datetime, timedelta, timezone
from time import process_time
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.llm.ask import ParsedReply
from mnemolog.streams.llm.resolve_prompt import ParsedDecision, parse_resolution
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.builders.prompts import MONDAY, fact, known_fact
from tests.support.builders.questions import number_conflicts
from tests.support.cases.labelled_pairs import COMPATIBLE, CONTRADICTING, SAME_MEANING, UNRELATED, Pairs
from tests.support.cases.reply_cases import (
    HARMFUL,
    HONEST,
    SEEN_HARMFUL,
    SEEN_HONEST,
    THIRD_HARMFUL,
    THIRD_HONEST,
    UNSEEN_HARMFUL,
    UNSEEN_HONEST,
    ReplyCase,
)

_LONGEST_CHECK = 5.0  # seconds of CPU; 0.6 were measured
Parsed = ParsedReply[tuple[ParsedDecision, ...]]


def reply_about(
    new: ExtractedFact,
    *known: Candidate,
    action: str,
    said_at: datetime = MONDAY,
    user_names: tuple[str, ...] = (),
    **fields: Any,
) -> Parsed:
    subject = number_conflicts([(new, known)], said_at=said_at, user_names=user_names)
    labels = () if action == "ADD" else range(1, len(known) + 1)
    return parse_resolution(decisions_reply(decision_json(1, action, *labels, **fields)), subject)


def reply_of(case: ReplyCase) -> Parsed:
    new, known = fact(case.new), known_fact(1, case.known)
    return reply_about(new, known, action=case.action, text=case.merged or None, ended_at=case.ended_at or None)


def is_taken(case: ReplyCase) -> bool:
    """Whether the reply is taken as it is; of a merge in doubt both facts stay, which is an EXTEND."""
    decided = reply_of(case).value
    return decided is not None and decided[0].verdict == case.action


@pytest.mark.parametrize("case", HARMFUL, ids=str)
def test_a_harmful_reply_is_refused_with_what_is_wrong(case: ReplyCase) -> None:
    parsed = reply_of(case)
    if case.action == "MERGE" and parsed.value is not None:
        assert [(one.verdict, one.text) for one in parsed.value] == [("EXTEND", None)]
    else:
        assert any(case.complaint in complaint for complaint in parsed.complaints), parsed.complaints


@pytest.mark.parametrize("case", HONEST, ids=str)
def test_an_honest_reply_is_taken(case: ReplyCase) -> None:
    assert is_taken(case)


@pytest.mark.parametrize(
    ("harmful", "honest", "accepted", "refused"),
    [(SEEN_HARMFUL, SEEN_HONEST, 1, 6), (UNSEEN_HARMFUL, UNSEEN_HONEST, 2, 0), (THIRD_HARMFUL, THIRD_HONEST, 3, 3)],
    ids=["seen", "unseen", "third"],
)
def test_no_more_replies_are_judged_wrongly_than_the_page_says(
    harmful: list[ReplyCase], honest: list[ReplyCase], accepted: int, refused: int
) -> None:
    """The figures of docs/quality.md."""
    taken = [case for case in harmful if is_taken(case)]
    lost = [case for case in honest if not is_taken(case)]
    assert (len(taken), len(lost)) == (accepted, refused), [*taken, *lost]


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
    new = fact("Mira has a permit.", valid_until=new_end)
    parsed = reply_about(new, known, action=action, text="Mira has a permit.")
    assert (parsed.value is not None) == agree
    assert agree or "choose REPLACE if the new end counts, SIMILAR if both stand" in parsed.complaints[0]


@pytest.mark.parametrize(
    ("new", "known", "user_names", "taken"),
    [
        (("I like tea.", "Ann"), ("I like tea.", "Ann"), (), True),
        (("I like tea.", "Ann"), ("I like tea.", "Bob"), (), False),
        (("I like tea.", "the user"), ("I like tea.", "Bob"), ("Ann",), False),
        (("I like tea.", "the user"), ("I like tea.", "Ann"), ("Ann",), True),
        (("I like tea.", None), ("I like tea.", "Ann"), (), True),
        (("Bob lives in Rome.", "Bob"), ("Tom lives in Rome.", "Tom"), (), False),
        (("Bob lives in Rome.", "Bob"), ("the user lives in Rome.", "the user"), ("Tom",), False),
        (("Bob lives in Rome.", "Bob"), ("the user lives in Rome.", "the user"), (), True),
        (("Tom lives in Rome.", "Tom"), ("The user moved to Rome.", None), ("Alice",), False),
        (("Tom lives in Rome.", "Tom"), ("Lives in Rome.", None), ("Alice",), False),
        (("The user lives in Rome.", None), ("Tom lives in Rome.", "Tom"), ("Alice",), False),
        (("Tom lives in Rome.", "Tom"), ("Tom is at home in Rome.", None), ("Alice",), True),
        (("Tom lives in Rome.", "Tom"), ("Lives in Rome.", None), ("Tom",), True),
        (("Tom lives in Rome.", "Tom"), ("Lives in Rome.", None), (), True),
        (("Rex is brown.", "Rex"), ("Mira has a brown dog, Rex.", "Mira"), ("Alice",), True),
    ],
)
def test_words_are_a_repetition_of_one_subject_only(
    new: tuple[str, str | None], known: tuple[str, str | None], user_names: tuple[str, ...], *, taken: bool
) -> None:
    """A fact without a subject is the user's where their name is known."""
    old = known_fact(1, known[0], subject=known[1])
    parsed = reply_about(fact(new[0], subject=new[1]), old, action="KEEP", user_names=user_names)
    assert (parsed.value is not None) == taken, parsed.complaints


def test_the_facts_of_two_people_do_not_become_one() -> None:
    tom, known = fact("Tom lives in Rome.", subject="Tom"), known_fact(1, "Lives in Rome.", subject=None)
    parsed = reply_about(tom, known, action="MERGE", text="Tom lives in Rome.", user_names=("Alice",))
    assert "about different people or things" in parsed.complaints[0]


@pytest.mark.parametrize(
    ("new", "known", "taken"),
    [
        ("Owns a dog.", "Has a dog.", True),
        ("Is at home in Rome.", "Lives in Rome.", True),
        ("Lives in Oslo.", "Moved to Oslo.", True),
        ("Tom lives in Rome.", "Lives in Rome.", False),
        ("Will has a dog.", "Has a dog.", False),
        ("Thomas a un chien.", "A un chien.", False),
        ("Tom l'aime.", "Aime Anna.", False),
        ("Maria de Souza lives in Rome.", "Lives in Rome.", False),
        ("Lives in Oslo.", "Lives in Rome.", False),
    ],
)
def test_the_verb_that_begins_a_sentence_is_no_name(new: str, known: str, *, taken: bool) -> None:
    parsed = reply_about(fact(new, subject=None), known_fact(1, known, subject=None), action="KEEP")
    assert (parsed.value is not None) == taken, parsed.complaints


def test_another_value_of_the_key_is_no_repetition() -> None:
    known = known_fact(1, "Mira has a home in the south.", key="home_city", value="Munich")
    new = fact("Mira has a home in the north.", key="home_city", value="Kiel")
    assert 'the value "Kiel"' in reply_about(new, known, action="KEEP").complaints[0]
    same = new.model_copy(update={"value": "Munich, Germany"})
    assert reply_about(same, known.model_copy(update={"text": new.text}), action="KEEP").value is not None


@pytest.mark.parametrize(
    ("new", "known", "targets"),
    [
        ("Mira has 2 cats in Rome.", ["Mira has 2 cats.", "Mira is in Rome with Ann."], ()),
        ("Mira takes 5 mg of ramipril.", ["Mira takes ramipril.", "Mira takes 5 mg of aspirin."], ()),
        ("Mira lives in Rome.", ["Mira visits Rome.", "Mira lives in Oslo.", "Mira lives in Rome with Ann."], (1, 3)),
    ],
)
def test_a_keep_is_about_known_facts_that_say_it_all(new: str, known: list[str], targets: tuple[int, ...]) -> None:
    facts = [known_fact(number, text) for number, text in enumerate(known, start=1)]
    parsed = reply_about(fact(new), *facts, action="KEEP")
    assert (parsed.value[0].targets if parsed.value else ()) == targets, parsed.complaints


@pytest.mark.parametrize(("certainty", "taken"), [("explicit", False), ("strong", False), ("weak", True)])
def test_a_doubtful_denial_may_stand_beside_what_it_denies(certainty: str, *, taken: bool) -> None:
    new = fact("Mira is not allergic to nuts.", certainty=certainty)
    parsed = reply_about(new, known_fact(1, "Mira is allergic to nuts."), action="SIMILAR")
    assert (parsed.value is not None) == taken


@pytest.mark.parametrize(
    ("action", "ended_at", "complaint"),
    [
        ("RETRACT", "2022-12-31", "ended_at lies before K1 began"),
        ("EXPIRE", "2053-05-08", None),
        ("EXPIRE", "2054-05-08", "more than ten years ahead"),
        ("RETRACT", "2199-01-01", "more than ten years ahead"),
    ],
)
def test_an_end_is_after_the_beginning_and_not_too_far(action: str, ended_at: str, complaint: str | None) -> None:
    known = known_fact(1, "Mira pays a loan.", true_from="2023-01-01T09:00:00Z")
    parsed = reply_about(fact("Mira pays the loan until 2053."), known, action=action, ended_at=ended_at)
    assert (parsed.value is None) == (complaint is not None)
    assert complaint is None or complaint in parsed.complaints[0]


def test_a_day_is_that_of_the_zone_in_which_times_are_shown() -> None:
    tokyo = timezone(timedelta(hours=9))
    said_at = datetime(2026, 3, 2, 0, 30, tzinfo=tokyo)
    known = known_fact(1, "Mira is in Rome.", true_from="2026-03-01T20:00:00Z")  # 2 March in Tokyo
    taken, refused = (
        reply_about(fact("Mira is in Oslo."), known, action="REPLACE", ended_at=day, said_at=said_at)
        for day in ("2026-03-02", "2026-03-01")
    )
    assert refused.value is None
    assert taken.value is not None
    assert taken.value[0].ended_at == datetime(2026, 3, 1, 15, tzinfo=UTC)


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
_SPLICES = st.sampled_from(
    ["905", "17:45", "twelve", "Zoe", "Kyoto", "not", "never", "kg", "litres", "€", "Tuesday"]
) | st.sampled_from(
    ["senior", "allegedly", "always", "must", "Chefarzt", "twins", "Ⅻ", "\uff11\uff17", "3.5", "-4", "Ωmega", "Łódź"]
)


def _is_merge(parsed: Parsed) -> bool:
    return parsed.value is not None and parsed.value[0].verdict == "MERGE"


def _merge_of(parents: list[str], merged: list[str]) -> Parsed:
    new, *known = (f"Mira {said}." for said in parents)
    facts = (known_fact(number, text) for number, text in enumerate(known, start=1))
    return reply_about(fact(new), *facts, action="MERGE", text=f"Mira {', '.join(merged[:-1])} and {merged[-1]}.")


@given(_PARENTS.flatmap(lambda parents: st.tuples(st.just(parents), st.permutations(parents))))
def test_parents_in_any_order_make_an_honest_merge(drawn: tuple[list[str], list[str]]) -> None:
    """In one sentence, or one after another."""
    parents, merged = drawn
    assert _is_merge(_merge_of(parents, merged))
    new, *known = sentences = [f"Mira {said}." for said in parents]
    facts = (known_fact(number, text) for number, text in enumerate(known, start=1))
    assert _is_merge(reply_about(fact(new), *facts, action="MERGE", text=" ".join(sentences)))


@pytest.mark.parametrize(
    "sign", ["w{} ", "12 ", "not eat ", "Bob ", ",", "1 000 ", "e\u0301\u0323", "\u05d0 ", "a\u200b", "漢字ない"]
)
def test_the_checks_take_time_in_proportion_to_the_text(sign: str) -> None:
    """Of 20 000 characters; what takes the square of it takes minutes."""
    text = "".join(sign.format(number) for number in range(20_000 // len(sign)))[:20_000]
    began = process_time()
    assert reply_about(fact(text), known_fact(1, f"Mira. {text[:-9]}"), action="KEEP").complaints is not None
    assert process_time() - began < _LONGEST_CHECK


@given(_PARENTS, _SPLICES, st.data())
def test_one_word_that_nobody_said_makes_a_merge_harmful(parents: list[str], splice: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parents) - 1))
    words = parents[place].split()
    at = data.draw(st.integers(1, len(words) - 1))
    assume(splice not in ("not", "never") or "not" not in words)
    number = {"twelve": "12"}.get(splice, normalize("NFKC", splice))
    assume(number not in " ".join(parents).split())  # a number that is said twice is the same number
    merged = [*parents]
    merged[place] = " ".join([*words[:at], splice, *words[at:]])
    assert not _is_merge(_merge_of(parents, merged)), merged


@given(st.permutations(range(2, 6)), st.permutations(["morning", "afternoon", "evening", "night"]), st.data())
def test_amounts_that_change_places_are_no_merge(amounts: list[int], times: list[str], data: st.DataObject) -> None:
    pairs = [f"{amount} mg in the {time}" for amount, time in zip(amounts, times, strict=True)]
    count = data.draw(st.integers(2, 4))
    said = f"Mira takes {', '.join(pairs[: count - 1])} and {pairs[count - 1]}."
    order = data.draw(st.permutations(range(count)))
    moved = [f"{amounts[place]} mg in the {time}" for place, time in zip(order, times, strict=False)]
    merged = f"Mira takes pills, {', '.join(moved[:-1])} and {moved[-1]}."
    parsed = reply_about(fact(said), known_fact(1, "Mira takes pills."), action="MERGE", text=merged)
    assert _is_merge(parsed) == (list(order) == sorted(order))


def _taken(table: Pairs, action: str) -> int:
    """How many of the labelled pairs, both ways, may be decided so."""
    pairs = [pair for one, other in table for pair in ((one, other), (other, one))]
    return sum(reply_of(ReplyCase(action, new, known, "", "")).value is not None for known, new in pairs)


def test_few_repetitions_are_refused_and_few_others_are_taken_for_one() -> None:
    assert _taken(SAME_MEANING, "KEEP") >= 76  # of 80
    assert _taken(CONTRADICTING, "KEEP") <= 5  # of 80: "is engaged to Tom", "married Tom"
    assert _taken(COMPATIBLE, "KEEP") == 0
    assert _taken(UNRELATED, "KEEP") == 0
    for action in ("SIMILAR", "EXTEND"):
        assert _taken(COMPATIBLE, action) == 40
        assert _taken(UNRELATED, action) == 80
