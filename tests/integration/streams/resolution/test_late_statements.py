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
    home,
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
    (event,) = (await resolver.resolve_turn(pet(DOG), at=day(0))).events
    assert isinstance(event, FactSkipped)
    assert (event.target, event.true_from) == (dog, day(0))
    ((began, ended),) = await resolver.stored.rows("SELECT true_from, true_to FROM facts WHERE status = 'retracted'")
    assert (began, ended) == (day(0), day(10))


@pytest.mark.parametrize(
    ("verdict", "kind", "at", "is_active"),
    [
        ("KEEP", "fact_skipped", 5, False),
        ("KEEP", "fact_skipped", 0, False),
        ("MERGE", "fact_added", 5, False),
        ("EXTEND", "fact_added", 0, False),
        ("ADD", "fact_added", 5, True),
        ("SIMILAR", "fact_added", 5, True),
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


@pytest.mark.parametrize("authority", ["extracted", "human"])
async def test_an_end_told_late_comes_before_the_known_end_but_for_a_human(
    resolver: ResolverHarness, authority: str
) -> None:
    await dog_that_died(resolver)
    await resolver.stored.rows(f"UPDATE facts SET authority = '{authority}' RETURNING 1")  # noqa: S608 - no input
    given = "Mira gave the dog away."
    resolver.chat_model.set_replies(verdicts_by_text({given: TextVerdict("RETRACT", (DOG,))}))
    (event,) = (await resolver.resolve_turn(pet(given, action_hint="retract"), at=day(5))).events
    ended_at = day(5 if authority == "extracted" else 10)
    assert [one.ended_at for one in event.moved_ends] == ([ended_at] if authority == "extracted" else [])
    assert await resolver.stored.rows("SELECT text, true_to FROM facts WHERE true_to IS NOT NULL") == [(DOG, ended_at)]
    assert await resolver.active_texts() == sorted([given, REX_DIED])


async def test_what_waited_and_was_never_confirmed_ends_no_late_statement(resolver: ResolverHarness) -> None:
    berlin, rome, oslo, ulm = (f"Mira lives in {city}." for city in ("Berlin", "Rome", "Oslo", "Ulm"))
    verdicts = {
        rome: TextVerdict("REPLACE", (berlin,)),
        oslo: TextVerdict("REPLACE", (berlin, rome)),
        ulm: TextVerdict("REPLACE", (oslo,)),
    }
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    for number, text, certainty in ((1, berlin, "explicit"), (4, rome, "speculation"), (8, oslo, "explicit")):
        await resolver.resolve_turn(home(text, certainty=certainty), at=day(number))
    (event,) = (await resolver.resolve_turn(home(ulm), at=day(2))).events
    assert isinstance(event, FactAdded)
    assert event.ended_at == day(8)
