"""Equal words are a repetition only of the same event, and a repetition brings all that it says beyond the words."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactConfirmed,
    FactExtended,
    FactSkipped,
    FactsMerged,
    FactsRelated,
    MemoryEvent,
    PendingRejected,
)
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.ids import fact_id
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.resolution.classify import Conflict, Duplicate, New, classify
from mnemolog.streams.resolution.decide import decide
from tests.support.builders.decisions import (
    LAST_YEAR,
    NEXT_YEAR,
    OWNER,
    SOURCE,
    TODAY,
    PendingOverwrite,
    decide_one,
    decision_context,
    judged,
    judgement,
    known_fact,
    llm_decision,
    matched_fact,
    turn_rules,
)

DAY = timedelta(days=1)
RULES = EffectivePolicy()
LEFT = "Mira has left Acme."
HOME: dict[str, Any] = {"key": "home_city", "single_valued": True, "subject": "Mira"}


def again(*known: Candidate, text: str, **fields: Any) -> type:
    return type(classify(matched_fact(*known, text=text, **fields), turn_rules()))


@pytest.mark.parametrize(
    ("known", "said", "kind"),
    [
        pytest.param({"event_time": LAST_YEAR}, {"event_time": LAST_YEAR}, Duplicate, id="the same day"),
        pytest.param({"event_time": LAST_YEAR}, {"event_time": TODAY}, Conflict, id="another day"),
        pytest.param({"event_time": LAST_YEAR}, {}, Duplicate, id="no day"),
        pytest.param({}, {"event_time": LAST_YEAR - DAY}, Duplicate, id="a day that was not known"),
        pytest.param({}, {"event_time": TODAY}, Conflict, id="a day since it was said"),
        pytest.param({"said_at": TODAY}, {"event_time": TODAY - DAY}, Duplicate, id="a day before it was said last"),
        pytest.param(
            {"event_time": LAST_YEAR, "value": "Berlin", **HOME},
            {"event_time": TODAY, "value": "Berlin", **HOME},
            Duplicate,
            id="the value of a slot goes on",
        ),
        *(
            pytest.param(
                {"true_from": TODAY, "event_time": TODAY, "said_at": LAST_YEAR, "value": "Berlin", **HOME},
                {"event_time": day, "value": "Berlin", **HOME},
                kind,
                id=f"a plan that is {change}",
            )
            for change, day, kind in (("postponed", NEXT_YEAR, Conflict), ("brought forward", TODAY - DAY, Duplicate))
        ),
    ],
)
def test_words_that_name_another_time_tell_another_event(
    known: dict[str, Any], said: dict[str, Any], kind: type
) -> None:
    text = "Mira lives in Berlin." if "key" in said else "Mira had a migraine."
    assert again(known_fact(1.0, text, **known), text=text, **said) is kind


@pytest.mark.parametrize("hint", ["retract", "update", "new"])
@pytest.mark.parametrize(
    ("other", "kind"),
    [
        pytest.param({"true_from": TODAY - DAY}, Conflict, id="something began since"),
        pytest.param({"true_from": LAST_YEAR - DAY}, Duplicate, id="it began before"),
        pytest.param({"true_from": LAST_YEAR - DAY, "said_at": TODAY - DAY}, Conflict, id="it was said since"),
        pytest.param({"true_from": LAST_YEAR - DAY, "said_at": LAST_YEAR - DAY}, Duplicate, id="it was said before"),
        pytest.param({"true_from": TODAY - DAY, "similarity": 0.1}, Duplicate, id="it is about something else"),
        pytest.param({"true_from": TODAY - DAY, "status": "ended"}, Duplicate, id="it has ended"),
    ],
)
def test_an_end_that_is_told_again_may_end_what_has_begun_since(hint: str, other: dict[str, Any], kind: type) -> None:
    end = known_fact(1.0, LEFT, action_hint=hint, said_at=LAST_YEAR)
    began = known_fact(**{"similarity": 0.7, "text": "Mira works at Acme.", **other})
    matched = matched_fact(end, began, text=LEFT, action_hint=hint)
    found = classify(matched, turn_rules())
    assert type(found) is kind
    assert not isinstance(found, Conflict) or found.candidates == (began,), "and not the end of what was before"


@pytest.mark.parametrize(
    ("end", "beginning"),
    [
        ("I sold my car.", "I bought a car."),
        ("My dog died.", "I have a dog called Max."),
        ("I'm no longer on a diet.", "I'm on a diet."),
        ("We cancelled the gym.", "We joined the gym."),
        ("Ich habe mein Auto verkauft.", "Ich habe ein Auto gekauft."),
    ],
)
def test_an_end_by_its_words_alone_is_told_anew_once_something_began_and_a_beginning_once_it_ended(
    end: str, beginning: str
) -> None:
    known, other = known_fact(1.0, end), known_fact(0.7, beginning, true_from=TODAY - DAY)
    assert again(known, other, text=end) is Conflict
    assert again(known, text=end) is Duplicate
    assert again(other, known, text=beginning) is Duplicate
    assert again(other, known.model_copy(update={"said_at": TODAY}), text=beginning) is Conflict


def test_a_model_and_one_that_is_asked_again_repeat_by_the_rule_of_equal_words() -> None:
    known, since = known_fact(0.9, "Mira sold the car."), known_fact(0.7, "Mira has a car.", true_from=TODAY - DAY)
    for others, kind in (((), FactConfirmed), ((since,), FactsRelated)):
        said = matched_fact(known, *others, text="Mira sold her car.")
        assert isinstance(decide_one(said, llm_decision("KEEP", known)), kind)
        unresolved = known_fact(text="Mira sold her car.", unresolved=True)
        asked = judgement(
            llm_decision("KEEP", known),
            place=None,
            fact=said.fact,
            candidates=(known, *others),
            known=unresolved,
            known_as="unresolved",
        )
        (settled,) = decide([], [asked], decision_context())
        assert isinstance(settled, ConflictResolved)
        assert settled.action == ("keep_both" if others else "keep_old")


DIET: dict[str, Any] = {"key": "diet", "value": "vegan", "subject": "Mira"}
NEWS = {
    "no key": {"text": "Mira likes tea."},
    "another key": {"text": "Mira eats at Noma.", "key": "favourite", "value": "Noma"},
    "the same value": {"text": "Mira is vegan like Tom.", **DIET},
    "somebody else": {"text": "Tom eats meat.", "key": "diet", "value": "meat", "subject": "Tom"},
}


@pytest.mark.parametrize("began", NEWS)
@pytest.mark.parametrize("hint", ["update", "new"])
@pytest.mark.parametrize("single_valued", [True, False])
@pytest.mark.parametrize("text", ["Mira is vegan.", "Mira is vegan now."])
def test_a_value_is_repeated_until_there_is_news_of_its_key(
    text: str, hint: str, began: str, *, single_valued: bool
) -> None:
    slot = DIET | {"single_valued": single_valued}
    value = known_fact(0.9, text, said_at=LAST_YEAR, action_hint=hint, **slot)
    other = known_fact(**{"similarity": 0.7, "true_from": TODAY - DAY, **NEWS[began]})
    found = classify(matched_fact(value, other, text=text, action_hint="update", **slot), turn_rules())
    assert isinstance(found, Duplicate)
    assert found.candidate == value
    in_other_words = matched_fact(value, other, text="Mira has become vegan.", action_hint="update", **slot)
    found = classify(in_other_words, turn_rules())
    assert isinstance(found, Conflict)
    assert value in found.candidates


@pytest.mark.parametrize(
    ("said", "news"),
    [
        ({}, {"text": "Mira eats meat.", "key": "diet", "value": "meat"}),
        ({}, {"text": "Mira is no longer vegan.", **DIET, "action_hint": "retract"}),
        ({"action_hint": "retract"}, {"text": "Mira likes tea."}),
        ({"key": None}, {"text": "Mira likes tea."}),
    ],
)
def test_news_of_a_value_and_what_is_no_value_are_told_anew(said: dict[str, Any], news: dict[str, Any]) -> None:
    told = DIET | {"action_hint": "update"} | said
    known = known_fact(1.0, "Mira is vegan now.", said_at=LAST_YEAR, **told)
    began = known_fact(**{"similarity": 0.7, "true_from": TODAY - DAY, **news})
    assert again(known, began, text="Mira is vegan now.", **told) is Conflict


@pytest.mark.parametrize(
    ("text", "since", "kind"),
    [
        ("Mira likes tea.", "Mira lives in Rome.", Duplicate),
        ("Mira likes tea.", "Mira likes coffee.", Duplicate),
        ("Mira likes drinking tea.", "Mira stopped drinking coffee.", Duplicate),
        ("Mira likes tea.", "Mira does not like tea.", Conflict),
        ("Mira likes turkey.", "Mira no longer likes Turkey.", Duplicate),
        ("Mira married Tom.", "Tom and Mira are divorced.", Conflict),
        ("Mira works at Acme.", "Mira was laid off by Acme.", Conflict),
        ("Mira works at Acme.", "Mira was laid off by Bosch.", Duplicate),
        ("Mira's dog is ill.", "Mira's dog is well.", Conflict),
        ("Mira's dog is ill.", "Mira's dog recovered.", Conflict),
        ("Mira's dog is ill.", "Mira's cat is well.", Duplicate),
        ("Mira's dog is ill.", "Tom's dog recovered.", Duplicate),
        ("Mira is ill.", "Mira is fine again.", Conflict),
        ("Mira is ill.", "Mira likes tea.", Duplicate),
        ("Mira is ill.", "Mira is very ill.", Conflict),
        ("Mira is a nurse.", "Mira is a mother.", Duplicate),
        ("Mira is in Rome.", "Mira is in love.", Duplicate),
        ("Miras Auto ist kaputt.", "Miras Auto ist wieder heil.", Conflict),
    ],
)
def test_other_words_are_told_anew_once_they_were_denied_ended_or_told_otherwise(
    text: str, since: str, kind: type
) -> None:
    known, other = known_fact(1.0, text), known_fact(0.9, since, said_at=TODAY - DAY)
    assert again(known, other, text=text, subject="Mira") is kind
    before = other.model_copy(update={"true_from": LAST_YEAR - DAY, "said_at": None})
    assert again(known, before, text=text, subject="Mira") is Duplicate


def repeated(
    known: Candidate, *, by: str, authority: str = "extracted", metadata: Mapping[str, Any] | None = None, **fields: Any
) -> MemoryEvent:
    """The event of a statement in the words of a known fact, as a duplicate or as what a model calls the same."""
    matched = matched_fact(known, text=known.text, **fields)
    found = Duplicate(matched, known) if by == "hash" else Conflict(matched, (known,))
    decisions = {} if by == "hash" else {0: llm_decision("KEEP", known)}
    (event,) = decide([found], judged(decisions), decision_context(authority=authority, metadata=metadata or {}))
    return event


@pytest.mark.parametrize("by", ["hash", "model"])
def test_a_human_word_vouches_for_the_known_fact(by: str) -> None:
    known = known_fact(key="home_city", value="Berlin", subject="Mira", confidence=0.6)
    event = repeated(known, by=by, authority="human")
    assert isinstance(event, FactsMerged)
    assert event.targets == (known.fact_id,)
    merged = event.fact
    assert (merged.authority, merged.key, merged.value, merged.subject) == ("human", "home_city", "Berlin", "Mira")
    assert (merged.text, merged.true_from) == (known.text, known.true_from)


@pytest.mark.parametrize("by", ["hash", "model"])
@pytest.mark.parametrize(
    ("known", "said", "source"),
    [
        pytest.param({}, {"value": "Berlin", **HOME}, {}, id="a key"),
        pytest.param(HOME, {"value": "Berlin", **HOME}, {}, id="a value"),
        pytest.param(HOME | {"value": "Berlin"}, {"value_json": [52.5, 13.4]}, {}, id="a value as JSON"),
        pytest.param(HOME | {"value": "Berlin"}, {}, {"metadata": {"channel": "phone"}}, id="metadata"),
        pytest.param(HOME | {"value": "Berlin"}, {"key": "residence"}, {"authority": "human"}, id="a human's word"),
    ],
)
def test_a_known_fact_goes_on_with_what_a_repetition_says_more(
    by: str, known: dict[str, Any], said: dict[str, Any], source: dict[str, Any]
) -> None:
    kept: dict[str, Any] = {"metadata": {"shop": 1}, "importance": 0.9, "more_categories": ("travel",)}
    event = repeated(known_fact(**kept, **known), by=by, **said, **source)
    assert isinstance(event, FactsMerged)
    fact = event.fact
    assert (fact.key, fact.value, fact.single_valued) == ("home_city", "Berlin", True)
    assert fact.metadata == {"shop": 1} | source.get("metadata", {})
    assert (fact.importance, fact.value_json) == (0.9, said.get("value_json"))
    assert (fact.authority, fact.categories) == (source.get("authority", "extracted"), ("travel",))


@pytest.mark.parametrize(
    ("known", "said", "source"),
    [
        pytest.param({"key": "home_city"}, {"key": "residence", "value": "Berlin"}, {}, id="another key"),
        pytest.param({"metadata": {"day": 1}}, {}, {"metadata": {"day": 2}}, id="metadata of a name that it has"),
        pytest.param({"authority": "human"}, {}, {"metadata": {"day": 2}}, id="metadata beside a human's word"),
        pytest.param({"value_json": 1}, {"value_json": 2}, {}, id="another value as JSON"),
    ],
)
def test_a_repetition_without_more_is_a_mention(
    known: dict[str, Any], said: dict[str, Any], source: dict[str, Any]
) -> None:
    assert isinstance(repeated(known_fact(**known), by="hash", **said, **source), FactSkipped)


PLAN: dict[str, Any] = {"true_from": TODAY + DAY, "event_time": TODAY + DAY, "said_at": LAST_YEAR}


@pytest.mark.parametrize(
    ("known", "text", "said", "is_kept"),
    [
        pytest.param({"text": "Mira likes turkey."}, "Mira likes Turkey.", {}, True, id="capitals of a name"),
        pytest.param({"text": "Mira likes turkey."}, "Mira likes turkey!", {}, False, id="signs"),
        pytest.param({"text": "Mira lives in bonn.", **HOME}, "Mira lives in Bonn.", HOME, False, id="one value"),
        pytest.param(PLAN, "Mira moves there.", {"event_time": NEXT_YEAR}, True, id="a plan is postponed"),
        pytest.param(PLAN, "Mira moves there.", {"event_time": TODAY}, True, id="another day than that of a plan"),
    ],
)
def test_a_model_calls_nothing_the_same_that_is_not(
    known: dict[str, Any], text: str, said: dict[str, Any], *, is_kept: bool
) -> None:
    fact = known_fact(**known)
    event = decide_one(matched_fact(fact, text=text, **said), llm_decision("KEEP", fact))
    assert (event.event == "facts_related") == is_kept


def test_a_human_word_that_confirms_a_pending_fact_vouches_for_it() -> None:
    pending, target = known_fact(status="pending_confirmation"), known_fact(text="Mira lives in Bonn.")
    held = PendingOverwrite(fact_id=pending.fact_id, targets=(target.fact_id,))
    stated = matched_fact(pending, target, text=pending.text)
    context = decision_context(held, authority="human")
    confirmed, merged = decide([Duplicate(stated, pending)], [], context)
    assert (confirmed.event, confirmed.ended_ids) == ("pending_confirmed", (target.fact_id,))
    assert isinstance(merged, FactsMerged)
    assert (merged.targets, merged.fact.authority, merged.ordinal) == ((pending.fact_id,), "human", 1)


REX = {"key": "pet", "value": "Rex"}


@pytest.mark.parametrize(
    ("known", "slot", "said", "more", "kept"),
    [
        pytest.param("Mira owns a cat named Rex.", {}, "Mira has a cat.", {}, {}, id="a human vouches"),
        pytest.param(
            "Mira owns a cat named Rex.", REX, "Mira has a cat.", {"key": "pet", "value": "cat"}, REX, id="slot"
        ),
        pytest.param(
            "Mira likes tea with Ann.", {}, "Mira likes tea.", {"key": "drink", "value": "tea"}, None, id="key"
        ),
        pytest.param("Mira likes tea.", {}, "Mira likes green tea.", REX, None, id="the statement has all words"),
    ],
)
def test_a_repetition_takes_no_words_from_what_it_adds_to(
    known: str, slot: dict[str, Any], said: str, more: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    fact = known_fact(text=known, **slot)
    context = decision_context(authority="human" if kept is not None else "extracted")
    event = decide_one(matched_fact(fact, text=said, **more), llm_decision("KEEP", fact), context)
    assert isinstance(event, FactsMerged)
    assert event.fact.text == max(known, said, key=len)
    assert (event.fact.key, event.fact.value) == tuple(
        (more if kept is None else kept).get(name) for name in ("key", "value")
    )


def test_a_key_that_has_another_value_is_decided_on() -> None:
    known, rival = known_fact(1.0), known_fact(0.9, "Mira lives in Rome.", value="Rome", **HOME)
    stated = matched_fact(known, rival, text=known.text, value="Berlin", **HOME)
    assert isinstance(classify(stated, turn_rules()), Conflict)
    event = decide_one(stated, llm_decision("KEEP", known))
    assert isinstance(event, FactAdded)
    assert event.unresolved


def test_a_repetition_that_says_more_rejects_pending_overwrites_too() -> None:
    held = PendingOverwrite(fact_id=uuid4(), targets=())
    known = known_fact(challenged_by=(held.fact_id,))
    found = Duplicate(matched_fact(known, text=known.text), known)
    rejected, merged = decide([found], (), decision_context(held, authority="human"))
    assert isinstance(rejected, PendingRejected)
    assert (rejected.target, rejected.confirmed, rejected.statement) == (held.fact_id, None, None)
    assert isinstance(merged, FactsMerged)
    assert (merged.ordinal, merged.fact.fact_id) == (1, fact_id(OWNER, SOURCE, 1))


def test_a_key_beside_a_human_word_is_a_fact_of_its_own() -> None:
    assert isinstance(repeated(known_fact(authority="human"), by="hash", value="Berlin", **HOME), FactAdded)


@pytest.mark.parametrize(
    "known", [known_fact(authority="human"), known_fact(key="home_city", value="Berlin", authority="human")]
)
def test_a_repetition_that_says_no_more_adds_nothing(known: Candidate) -> None:
    assert isinstance(repeated(known, by="hash", authority="human"), FactSkipped)


def test_of_two_facts_in_the_same_words_the_one_with_the_key_is_repeated() -> None:
    bare, keyed = known_fact(), known_fact(value="Berlin", **HOME)
    found = classify(matched_fact(bare, keyed, text=bare.text, value="Berlin", **HOME), turn_rules())
    assert isinstance(found, Duplicate)
    assert found.candidate == keyed


@pytest.mark.parametrize(
    ("parent", "said", "kind"),
    [
        pytest.param({"key": "home_city", "value": "Berlin"}, {}, FactsMerged, id="one slot"),
        pytest.param({}, {"key": "home_city", "value": "Berlin"}, FactsMerged, id="the slot of the statement"),
        pytest.param(
            {"key": "home_city", "value": "Berlin"}, {"key": "home_city", "value": "berlin"}, FactsMerged, id="both"
        ),
        pytest.param(
            {"key": "home_city", "value": "Berlin"}, {"key": "partner", "value": "Tom"}, FactAdded, id="two slots"
        ),
        pytest.param(
            {"key": "allergy", "value": "nuts"}, {"key": "allergy", "value": "milk"}, FactAdded, id="two values"
        ),
        pytest.param({"key": "allergy"}, {"key": "allergy", "value": "milk"}, FactsMerged, id="a value of one"),
        pytest.param({"value_json": 1}, {"value_json": True}, FactAdded, id="two values as JSON"),
    ],
)
def test_a_merged_fact_fills_every_slot_of_its_parents(
    parent: dict[str, Any], said: dict[str, Any], kind: type
) -> None:
    known = known_fact(**parent)
    event = decide_one(matched_fact(known, **said), llm_decision("MERGE", known))
    assert (event.event == "facts_merged") == (kind is FactsMerged)
    assert event.decision.guard == (None if kind is FactsMerged else "lost_slot")


@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT"])
def test_a_term_ends_no_lasting_value(verdict: Verdict) -> None:
    lasting, other = known_fact(value="Berlin", **HOME), known_fact(valid_until=NEXT_YEAR, value="Ulm", **HOME)
    stay: dict[str, Any] = {"valid_until": NEXT_YEAR, "value": "Rome", **HOME}
    event = decide_one(matched_fact(lasting, **stay), llm_decision(verdict, lasting))
    assert isinstance(event, FactAdded)
    assert (event.decision.guard, event.fact.valid_until) == ("lasting_value", NEXT_YEAR)
    assert decide_one(matched_fact(other, **stay), llm_decision(verdict, other)).ended_ids == (other.fact_id,)


@pytest.mark.parametrize("verdict", ["REPLACE", "CONTRADICT"])
@pytest.mark.parametrize("hint", ["retract", "update"])
@pytest.mark.parametrize("day", [NEXT_YEAR, NEXT_YEAR - timedelta(hours=3)])
def test_what_is_called_off_on_its_day_is_ended_whatever_term_is_read(
    verdict: Verdict, hint: Any, day: datetime
) -> None:
    """Of "My exam on 20 March is cancelled" the day may be read as the end of the statement."""
    exam = known_fact(text="Mira has an exam.", event_time=NEXT_YEAR, true_from=NEXT_YEAR, said_at=LAST_YEAR)
    called_off = {"text": "The exam is cancelled.", "action_hint": hint, "valid_until": day}
    event = decide_one(matched_fact(exam, **called_off), llm_decision(verdict, exam))
    assert (event.event, event.disbelieved_ids) == ("fact_contradicted", (exam.fact_id,))
    until = decide_one(matched_fact(exam, **called_off | {"valid_until": TODAY}), llm_decision(verdict, exam))
    assert until.decision.guard == "lasting_value"


def test_details_of_a_stay_and_an_announced_end_are_no_stay() -> None:
    lasting = known_fact(value="Berlin", **HOME)
    leaves = matched_fact(lasting, valid_until=NEXT_YEAR, text="Mira leaves Berlin next year.")
    assert decide_one(leaves, llm_decision("EXPIRE", lasting, ended_at=NEXT_YEAR)).ended_ids == (lasting.fact_id,)
    assert isinstance(
        decide_one(matched_fact(lasting, valid_until=NEXT_YEAR), llm_decision("EXTEND", lasting)), FactExtended
    )


def test_a_new_statement_is_new() -> None:
    assert again(known_fact(0.1), text="Mira likes tea.") is New


@pytest.mark.parametrize("verdict", ["KEEP", "MERGE"])
@pytest.mark.parametrize(
    ("text", "hint", "has_begun"),
    [
        ("Mira is starting at Acme.", "new", False),
        ("Mira will start at Acme.", "update", False),
        ("Mira has a new job starting soon at Acme, where she is going to work.", "new", False),
        ("Mira works at Acme.", "new", True),
        ("Mira started at Acme.", "update", True),
    ],
)
def test_a_plan_keeps_its_time_where_it_is_told_without_one(
    text: str, hint: str, verdict: Verdict, *, has_begun: bool
) -> None:
    plan = known_fact(text="Mira starts at Acme.", true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    event = decide_one(matched_fact(plan, text=text, action_hint=hint), llm_decision(verdict, plan))
    begins = event.true_from if verdict == "KEEP" else event.fact.true_from
    kept = None if verdict == "KEEP" else NEXT_YEAR
    assert begins == (TODAY if has_begun else kept)


@pytest.mark.parametrize("hint", ["new", "update"])
def test_a_value_until_then_is_no_news_of_a_plan(hint: str) -> None:
    text = "Mira works at Bosch."
    slot: dict[str, Any] = {"key": "employer", "single_valued": True, "subject": "Mira"}
    plan = known_fact(text=text, **slot, value="Bosch", true_from=NEXT_YEAR, event_time=NEXT_YEAR, said_at=LAST_YEAR)
    acme = known_fact(text="Mira is with Acme.", **slot, value="Acme", true_from=TODAY - DAY)
    assert again(plan, acme, text=text, **slot, value="Bosch", event_time=NEXT_YEAR, action_hint=hint) is Duplicate
