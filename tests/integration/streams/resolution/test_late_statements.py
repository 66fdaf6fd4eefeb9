"""A statement that comes late is compared with what held when it was said."""

from collections.abc import Sequence
from typing import Any

import pytest

from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict, Prompt
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact, numbered_conflicts

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
