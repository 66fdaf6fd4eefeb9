"""A statement that comes late is compared with what held when it was said."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.events import FactAdded, FactSkipped
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict, Prompt
from tests.support.builders.commits import day, fact_id_at
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    extracted_fact,
    numbered_conflicts,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

EDITORS: dict[int, tuple[str, dict[str, Any]]] = {
    5: ("Mira uses Neovim with gruvbox.", {}),
    7: ("Mira switched to VS Code.", {"action_hint": "update"}),
    10: ("Mira uses Neovim.", {}),
}
MERGED = "Mira uses Neovim, with gruvbox."


def editor_decision(conflict: NumberedConflict) -> dict[str, Any]:
    """Another editor replaces, the same one merges, and what says no more than is known keeps."""
    is_neovim = "Neovim" in conflict.fact.text
    others = [label for label, known in conflict.candidates if ("Neovim" in known.text) != is_neovim]
    same = [(label, known) for label, known in conflict.candidates if ("Neovim" in known.text) == is_neovim]
    if others:
        return decision_json(conflict.number, "REPLACE", *others)
    labels = [label for label, _ in same]
    if is_neovim and any(known.text != MERGED for _, known in same):
        return decision_json(conflict.number, "MERGE", *labels, text=MERGED, search_text=MERGED)
    return decision_json(conflict.number, "KEEP", *labels)


def decide_editors(prompt: Prompt) -> str:
    return decisions_reply(*map(editor_decision, numbered_conflicts(prompt).conflicts))


@pytest.mark.parametrize("days", [(5, 7, 10), (10, 5, 7), (10, 7, 5), (5, 10, 7), (7, 5, 10), (7, 10, 5)])
async def test_a_merged_fact_was_said_when_the_latest_of_its_parents_was(
    resolver: ResolverHarness, days: Sequence[int]
) -> None:
    """Neovim with gruvbox, VS Code, Neovim: whatever comes when, Neovim is what was said last."""
    scope = Scope(user_id="mira")
    resolver.chat_model.set_replies(decide_editors)
    for number in days:
        text, fields = EDITORS[number]
        fact = extracted_fact(text, key="editor", subject="Mira", single_valued=True, **fields)
        await resolver.resolve_turn(fact, at=day(number), scope=scope)
    (active,) = await resolver.active_texts(scope)
    assert "Neovim" in active


DOG, REX_DIED, REX = "Mira has a dog.", "Mira's dog Rex has died.", "Mira owns a dog."


def pet(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, key="pet", subject="Mira", **fields)


async def dog_that_died(resolver: ResolverHarness) -> UUID:
    """A dog since day 1, which died on day 10."""
    known = await resolver.resolve_turn(pet(DOG), at=day(1))
    resolver.chat_model.set_replies(verdicts_by_text({REX_DIED: TextVerdict("RETRACT", (DOG,))}))
    await resolver.resolve_turn(pet(REX_DIED, action_hint="retract"), at=day(10))
    return fact_id_at(known)


async def test_equal_words_told_late_repeat_what_has_ended_and_do_not_revive_it(resolver: ResolverHarness) -> None:
    dog = await dog_that_died(resolver)
    asked = len(resolver.chat_model.prompts)
    (event,) = (await resolver.resolve_turn(pet(DOG), at=day(5))).events
    assert isinstance(event, FactSkipped)
    assert (event.target, event.of_ended, event.true_from) == (dog, True, None)
    assert len(resolver.chat_model.prompts) == asked
    assert await resolver.active_texts() == [REX_DIED]
    assert await resolver.stored.rows("SELECT count(*) FROM rejections") == [(0,)]
    ((mentions,),) = await resolver.stored.rows("SELECT mention_count FROM facts WHERE status = 'retracted'")
    assert mentions == 2


async def test_they_may_say_that_it_began_earlier(resolver: ResolverHarness) -> None:
    dog = await dog_that_died(resolver)
    (event,) = (await resolver.resolve_turn(pet(DOG), at=day(0))).events
    assert isinstance(event, FactSkipped)
    assert (event.target, event.true_from) == (dog, day(0))
    ((began, ended),) = await resolver.stored.rows("SELECT true_from, true_to FROM facts WHERE status = 'retracted'")
    assert (began, ended) == (day(0), day(10))


async def test_who_says_it_after_the_end_says_something_new(resolver: ResolverHarness) -> None:
    await dog_that_died(resolver)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    (event,) = (await resolver.resolve_turn(pet(DOG), at=day(11))).events
    assert isinstance(event, FactAdded)
    assert event.ended_at is None
    assert await resolver.active_texts() == [DOG, REX_DIED]


@pytest.mark.parametrize("at", [5, 0])
@pytest.mark.parametrize(
    ("verdict", "kind", "is_active"),
    [
        ("KEEP", "fact_skipped", False),
        ("MERGE", "fact_added", False),
        ("EXTEND", "fact_added", False),
        ("ADD", "fact_added", True),
        ("SIMILAR", "fact_added", True),
    ],
)
async def test_other_words_are_judged_by_a_model_that_is_shown_what_has_ended(
    resolver: ResolverHarness, verdict: str, kind: str, at: int, *, is_active: bool
) -> None:
    await dog_that_died(resolver)
    merged = "Mira has, and owns, a dog." if verdict == "MERGE" else None
    resolver.chat_model.set_replies(verdicts_by_text({REX: TextVerdict(verdict, (DOG,), merged)}))
    (event,) = (await resolver.resolve_turn(pet(REX), at=day(at))).events
    assert event.event == kind
    assert DOG in resolver.chat_model.shown[0]
    assert re.search(r"ended [^)]*\): Mira has a dog\.", resolver.chat_model.prompts[-1].messages[1].content)
    assert (REX in await resolver.active_texts()) == is_active
    if kind == "fact_added" and not is_active:
        assert (event.end_time, event.decision.guard) == (day(10), "late_news")


async def test_what_is_said_of_somebody_else_did_not_end_with_it(resolver: ResolverHarness) -> None:
    """Whatever a model says of Tom's dog: what ended was Mira's."""
    toms = "Tom has a dog too."
    await dog_that_died(resolver)
    resolver.chat_model.set_replies(verdicts_by_text({toms: TextVerdict("EXTEND", (DOG,))}))
    (event,) = (await resolver.resolve_turn(extracted_fact(toms, key="pet", subject="Tom"), at=day(5))).events
    assert isinstance(event, FactAdded)
    assert event.end_time is None
    assert toms in await resolver.active_texts()


@pytest.mark.parametrize(("at", "is_history"), [(0, True), (5, False)])
async def test_what_is_older_than_an_ended_fact_that_it_would_end_is_history(
    resolver: ResolverHarness, at: int, *, is_history: bool
) -> None:
    await dog_that_died(resolver)
    no_pets = "Mira has no pets."
    resolver.chat_model.set_replies(verdicts_by_text({no_pets: TextVerdict("RETRACT", (DOG,))}))
    (event,) = (await resolver.resolve_turn(pet(no_pets), at=day(at))).events
    assert isinstance(event, FactAdded)
    assert (event.ended_at == day(1), no_pets in await resolver.active_texts()) == (is_history, not is_history)


async def test_a_doubtful_subject_is_a_question_also_about_what_has_ended(resolver: ResolverHarness) -> None:
    home: dict[str, Any] = {"key": "home_city", "single_valued": True}
    rome = extracted_fact("The user lives in Rome.", subject="the user", **home)
    oslo = extracted_fact("The user moved to Oslo.", subject="the user", action_hint="update", **home)
    bern = extracted_fact("The user's brother Tom lives in Bern.", subject="Tom", **home)
    await resolver.resolve_turn(rome, at=day(10))
    resolver.chat_model.set_replies(verdicts_by_text({oslo.text: TextVerdict("REPLACE", (rome.text,))}))
    await resolver.resolve_turn(oslo, at=day(20))
    (event,) = (await resolver.resolve_turn(bern, at=day(5))).events
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.decision.by) == (None, "model")
    assert sorted(resolver.chat_model.shown[0]) == sorted([rome.text, oslo.text])
    assert await resolver.active_texts() == sorted([oslo.text, bern.text])


ROME, OSLO, AT_HOME = "Mira lives in Rome.", "Mira moved to Oslo.", "Mira is at home in Rome."


@pytest.mark.parametrize("verdict", ["KEEP", "MERGE", "EXTEND"])
async def test_a_late_turn_that_says_the_same_twice_is_history_with_both(
    resolver: ResolverHarness, verdict: str
) -> None:
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    await resolver.resolve_turn(extracted_fact(OSLO, **home), at=day(10))
    merged = "Mira lives, and is at home, in Rome." if verdict == "MERGE" else None
    told = {ROME: TextVerdict("REPLACE", (OSLO,)), AT_HOME: TextVerdict(verdict, (ROME,), merged)}
    resolver.chat_model.set_replies(verdicts_by_text(told))
    said = [extracted_fact(text, **home) for text in told]
    history, again = (await resolver.resolve_turn(*said, at=day(5))).events
    assert (history.event, history.end_time) == ("fact_added", day(10))
    assert again.event == ("fact_skipped" if verdict == "KEEP" else "fact_added")
    assert await resolver.active_texts() == [OSLO]
    ended = await resolver.stored.rows("SELECT true_to FROM facts WHERE status = 'superseded'")
    assert ended == [(day(10),)] * (1 if verdict == "KEEP" else 2)


@pytest.mark.parametrize(("text", "verdict"), [("Mira no longer lives in Rome.", "RETRACT"), (OSLO, "REPLACE")])
async def test_an_end_told_late_comes_before_the_end_that_was_known(
    resolver: ResolverHarness, text: str, verdict: str
) -> None:
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    left = "Mira is gone from Rome."
    await resolver.resolve_turn(extracted_fact(ROME, **home), at=day(1))
    told = {left: TextVerdict("RETRACT", (ROME,)), text: TextVerdict(verdict, (ROME,))}
    resolver.chat_model.set_replies(verdicts_by_text(told))
    await resolver.resolve_turn(extracted_fact(left, action_hint="retract", **home), at=day(10))
    hint = "retract" if verdict == "RETRACT" else "update"
    (event,) = (await resolver.resolve_turn(extracted_fact(text, action_hint=hint, **home), at=day(5))).events
    assert [one.ended_at for one in event.moved_ends] == [day(5)]
    assert await resolver.stored.rows("SELECT text, true_to FROM facts WHERE true_to IS NOT NULL") == [(ROME, day(5))]
    assert await resolver.active_texts() == sorted([left, text])


async def test_an_end_told_late_of_a_human_word_leaves_the_later_end(resolver: ResolverHarness) -> None:
    await dog_that_died(resolver)
    await resolver.stored.rows("UPDATE facts SET authority = 'human' RETURNING 1")
    given = "Mira gave the dog away."
    resolver.chat_model.set_replies(verdicts_by_text({given: TextVerdict("RETRACT", (DOG,))}))
    (event,) = (await resolver.resolve_turn(pet(given, action_hint="retract"), at=day(5))).events
    assert event.moved_ends == ()


async def test_what_adds_to_an_ended_fact_opens_with_it(resolver: ResolverHarness) -> None:
    """The plan that ended Rome is called off: then the detail, which came after that end, holds on as well."""
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    plan, off, gate = "Mira moves to Oslo on the 10th.", "Mira stays where she is.", "Mira lives in Rome, at Gate 5."
    await resolver.resolve_turn(extracted_fact(ROME, **home), at=day(1))
    told = {
        plan: TextVerdict("REPLACE", (ROME,)),
        gate: TextVerdict("EXTEND", (ROME,)),
        off: TextVerdict("RETRACT", (plan,)),
    }
    resolver.chat_model.set_replies(verdicts_by_text(told))
    resolver.now = day(20)
    announced = extracted_fact(plan, action_hint="update", event_time=day(10), **home)
    await resolver.resolve_turn(announced, at=day(2))
    (detail,) = (await resolver.resolve_turn(extracted_fact(gate, **home), at=day(3))).events
    assert detail.end_time == day(10)
    await resolver.resolve_turn(extracted_fact(off, action_hint="retract", **home), at=day(4))
    assert gate in await resolver.active_texts()


async def test_an_announced_end_that_is_told_late_ends_what_was_said_again_since(resolver: ResolverHarness) -> None:
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    leaves = "Mira will leave Rome on the 20th."
    for at in (1, 5):
        await resolver.resolve_turn(extracted_fact(ROME, **home), at=day(at))
    expire = decision_json(1, "EXPIRE", 1, ended_at=day(20))
    resolver.chat_model.set_replies(decisions_reply(expire))
    announced = extracted_fact(leaves, action_hint="retract", valid_until=day(20), **home)
    (event,) = (await resolver.resolve_turn(announced, at=day(3))).events
    assert (event.event, event.end_time) == ("fact_expired", day(20))


async def test_what_holds_for_a_term_is_no_value_of_the_time_before_another(resolver: ResolverHarness) -> None:
    """Bern for a week, told late: neither it nor Rome, which it stands beside, is history because of Oslo."""
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    bern = extracted_fact("Mira lives in Bern for a week.", valid_until=day(8), **home)
    await resolver.resolve_turn(extracted_fact(ROME, **home), at=day(4))
    resolver.chat_model.set_replies(verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME,))}))
    await resolver.resolve_turn(extracted_fact(OSLO, **home), at=day(5))
    resolver.chat_model.set_replies(verdicts_by_text({bern.text: TextVerdict("SIMILAR", (OSLO, ROME))}))
    (event,) = (await resolver.resolve_turn(bern, at=day(3))).events
    assert event.decision.by == "model"
    assert event.end_time is None


async def test_what_held_for_a_term_makes_no_older_value_history(resolver: ResolverHarness) -> None:
    home: dict[str, Any] = {"key": "home_city", "subject": "Mira", "single_valued": True}
    bern = extracted_fact("Mira lives in Bern for a week.", valid_until=day(8), **home)
    await resolver.resolve_turn(bern, at=day(3))
    await resolver.stored.rows("UPDATE facts SET status = 'expired', true_to = valid_until RETURNING 1")
    resolver.chat_model.set_replies(verdicts_by_text({ROME: TextVerdict("SIMILAR", (bern.text,))}))
    (event,) = (await resolver.resolve_turn(extracted_fact(ROME, **home), at=day(1))).events
    assert event.decision.by == "model"
    assert event.end_time is None


async def test_a_late_end_ends_what_is_older_and_not_what_is_newer(resolver: ResolverHarness) -> None:
    """A dog, which died, and then one for some days: the end, told last, is of the first."""
    later = "Mira has a dog for some days."
    for text, at in ((DOG, 1), (later, 10)):
        resolver.chat_model.set_replies(verdicts_by_text({later: TextVerdict("SIMILAR", (DOG,))}))
        await resolver.resolve_turn(pet(text), at=day(at))
    resolver.chat_model.set_replies(verdicts_by_text({REX_DIED: TextVerdict("RETRACT", (DOG, later))}))
    (event,) = (await resolver.resolve_turn(pet(REX_DIED, action_hint="retract"), at=day(5))).events
    assert (event.event, event.end_time) == ("fact_retracted", day(5))
    assert await resolver.active_texts() == [later]
    rows = await resolver.stored.rows("SELECT text, true_to FROM facts WHERE true_to IS NOT NULL ORDER BY true_to")
    assert rows == [(DOG, day(5)), (REX_DIED, day(10))]


async def test_what_waited_and_was_never_confirmed_ends_no_late_statement(resolver: ResolverHarness) -> None:
    berlin, rome, oslo, ulm = (f"Mira lives in {city}." for city in ("Berlin", "Rome", "Oslo", "Ulm"))
    verdicts = {
        rome: TextVerdict("REPLACE", (berlin,)),
        oslo: TextVerdict("REPLACE", (berlin, rome)),
        ulm: TextVerdict("REPLACE", (oslo,)),
    }
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    for number, text, certainty in ((1, berlin, "explicit"), (4, rome, "speculation"), (8, oslo, "explicit")):
        fact = extracted_fact(text, key="home_city", subject="Mira", single_valued=True, certainty=certainty)
        await resolver.resolve_turn(fact, at=day(number))
    late = extracted_fact(ulm, key="home_city", subject="Mira", single_valued=True)
    (event,) = (await resolver.resolve_turn(late, at=day(2))).events
    assert isinstance(event, FactAdded)
    assert event.ended_at == day(8)
