"""A statement that comes late is compared with what held when it was said."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.events import FactSkipped
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
        return decision_json(conflict.number, "MERGE", *labels, text=MERGED)
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
