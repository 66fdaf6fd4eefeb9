"""An end that was told before what it ends, which is older and comes late, ends it all the same."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ports import Prompt
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    home,
    numbered_conflicts,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ROME, BERN = "Mira lives in Rome.", "Mira lives in Bern."
LEAVES, LEFT, NEVER = "Mira will leave Rome on the 20th.", "Mira has left Rome.", "Mira never lived in Rome."
PLAN, OFF = "Mira moves to Rome on the 20th.", "Mira will not move to Rome."
VERDICTS = {LEAVES: "EXPIRE", LEFT: "RETRACT", NEVER: "CONTRADICT", OFF: "RETRACT"}
Told = tuple[str, int]  # a text, and the day on which it was said


def said(text: str) -> ExtractedFact:
    fields: dict[str, Any] = {}
    if text in VERDICTS:
        fields["action_hint"] = "retract"
    if text == NEVER:
        fields["certainty"] = "strong"
    if text == LEAVES:
        fields["valid_until"] = day(20)
    if text in (PLAN, OFF):
        fields["event_time"] = day(20)
    if text == PLAN:
        fields["action_hint"] = "update"
    return home(text, **fields)


def judged(prompt: Prompt) -> str:
    """What each text means for the others, whichever of them came first. What is ended once serves no other one."""
    decisions, used = [], set[int]()
    for conflict in numbered_conflicts(prompt).conflicts:
        new, known = conflict.fact.text, dict(conflict.candidates)
        ended = {LEAVES: (ROME,), LEFT: (ROME,), NEVER: (ROME,), OFF: (PLAN,), PLAN: (BERN,)}.get(new, ())
        labels = [label for label, one in known.items() if one.text in ended and label not in used]
        used.update(labels)
        action = VERDICTS.get(new, "REPLACE") if labels else "ADD"
        end = day(20) if action == "EXPIRE" else None
        decisions.append(decision_json(conflict.number, action, *labels, ended_at=end))
    return decisions_reply(*decisions)


async def tell(resolver: ResolverHarness, *told: Told, now: datetime) -> None:
    resolver.now = now
    resolver.chat_model.set_replies(judged)
    for text, at in told:
        await resolver.resolve_turn(said(text), at=day(at))


async def held(resolver: ResolverHarness) -> Sequence[tuple[Any, ...]]:
    """What is believed of where she lives, with its times."""
    return await resolver.stored.rows("""
        SELECT text, true_from, true_to FROM facts
        WHERE believed_from IS NOT NULL AND believed_to IS NULL AND action_hint <> 'retract'
        ORDER BY true_from
    """)


STORIES: dict[str, tuple[Sequence[Told], Sequence[tuple[str, int, int | None]]]] = {
    "an announced end": ([(LEAVES, 2), (ROME, 1)], [(ROME, 1, 20)]),
    "a plan that was called off": ([(OFF, 3), (PLAN, 2), (BERN, 1)], [(BERN, 1, None)]),
    "an end between two statements": ([(LEFT, 5), (BERN, 9), (ROME, 1)], [(ROME, 1, 5), (BERN, 9, None)]),
    "of two ends the first": ([(LEAVES, 2), (LEFT, 5), (ROME, 1)], [(ROME, 1, 5)]),
    "the end of another value": ([(LEFT, 5), (BERN, 1)], [(BERN, 1, None)]),
    "an end before it was said again": ([(LEFT, 5), (ROME, 9)], [(ROME, 9, None)]),
    "what had ended before it began again": ([(LEFT, 5), (ROME, 9), (ROME, 3)], [(ROME, 3, 5), (ROME, 9, None)]),
}


@pytest.mark.parametrize(("told", "expected"), STORIES.values(), ids=STORIES)
async def test_an_end_that_was_told_first_ends_what_is_older(
    resolver: ResolverHarness, told: Sequence[Told], expected: Sequence[tuple[str, int, int | None]]
) -> None:
    await tell(resolver, *told, now=day(30))
    assert await held(resolver) == [
        (text, day(begun), None if ended is None else day(ended)) for text, begun, ended in expected
    ]


async def test_a_plan_that_was_called_off_before_names_what_says_so(resolver: ResolverHarness) -> None:
    await tell(resolver, (OFF, 3), now=day(30))
    ((off,),) = await resolver.stored.rows("SELECT fact_id FROM facts")
    added, withdrawn = (await resolver.resolve_turn(said(PLAN), at=day(2))).events
    assert (added.event, added.decision.shown) == ("fact_added", (off,))
    plan = added.subject_id
    assert (withdrawn.event, withdrawn.affected_ids, withdrawn.decision.shown) == (
        "fact_retracted",
        (plan,),
        (plan, off),
    )


async def test_what_is_merged_with_what_was_said_after_the_end_goes_on(resolver: ResolverHarness) -> None:
    near = "Mira lives in Rome near Gate 5."
    await tell(resolver, (LEAVES, 2), (ROME, 21), now=day(30))

    def merges(prompt: Prompt) -> str:
        merge, expire = numbered_conflicts(prompt).conflicts
        (rome,) = (label for label, known in merge.candidates if known.text == ROME)
        ((named, _),) = expire.candidates
        return decisions_reply(
            decision_json(merge.number, "MERGE", rome, text=near),
            decision_json(expire.number, "EXPIRE", named, ended_at=day(20)),
        )

    resolver.chat_model.set_replies(merges)
    await resolver.resolve_turn(said(near), at=day(5))
    assert await resolver.active_texts() == sorted([LEAVES, near])
    rows = await resolver.stored.rows("SELECT true_to FROM facts WHERE status = 'active' AND text LIKE '%Gate 5.'")
    assert rows == [(None,)]


@pytest.mark.parametrize("text", [NEVER, LEFT])
async def test_what_no_model_decides_or_a_guard_holds_back_is_unresolved(resolver: ResolverHarness, text: str) -> None:
    await tell(resolver, (text, 5), now=day(30))
    if text == LEFT:
        resolver.chat_model.set_replies("this is no JSON")
    (event,) = (await resolver.resolve_turn(said(ROME), at=day(1))).events
    assert event.event == "fact_added"
    assert event.unresolved
    ((other,),) = await resolver.stored.rows("SELECT fact_id FROM facts WHERE action_hint = 'retract'")
    assert event.decision.shown == (other,)
    assert event.decision.guard == ("high_confidence" if text == NEVER else None)


async def test_the_model_reads_the_end_as_said_later(resolver: ResolverHarness) -> None:
    await tell(resolver, (LEFT, 5), (ROME, 1), now=day(30))
    assert resolver.chat_model.shown == [[ROME]]
    lines = resolver.chat_model.prompts[-1].messages[1].content.splitlines()
    assert any(line.startswith("N1 ") and "known, said later): Mira has left Rome." in line for line in lines)


async def test_what_a_late_turn_corrects_itself_never_held(resolver: ResolverHarness) -> None:
    oslo, chur = "Mira moved to Oslo.", "Mira moved to Chur, not to Oslo."
    verdicts = {BERN: TextVerdict("REPLACE", (ROME,)), oslo: TextVerdict("REPLACE", (BERN, ROME))}
    resolver.chat_model.set_replies(verdicts_by_text(verdicts | {chur: TextVerdict("CONTRADICT", (oslo,))}))
    resolver.now = day(12)
    for texts, at in (([ROME], 1), ([BERN], 10), ([oslo, chur], 5)):
        await resolver.resolve_turn(*(home(text, action_hint="update") for text in texts), at=day(at))
    times = sorted((since, until, text) for text, since, until in await held(resolver) if since != until)
    assert times == [(day(1), day(5), ROME), (day(5), day(10), chur), (day(10), None, BERN)]
