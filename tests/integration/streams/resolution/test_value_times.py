"""The values of a key that holds one at a time follow each other in the same way, in whatever order they are told."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ports import Prompt
from tests.support.builders.commits import day
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    extracted_fact,
    numbered_conflicts,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
Told = tuple[str, int]  # a text, and the day on which it was said
DETAIL, ROOM = "Mira works at Acme under Kim.", "Mira works at Acme in Room 12."
LAST = 40


def said(text: str) -> ExtractedFact:
    """A statement about the employer that the text ends with; "no longer" ends, "started" changes."""
    hint = "retract" if "no longer" in text else "update" if "started" in text else "new"
    fields: dict[str, Any] = {"valid_until": day(20)} if "will" in text else {}
    value = text.split(" at ")[1].removesuffix(".").split()[0]
    return extracted_fact(
        text, key="employer", value=value, subject="Mira", single_valued=True, action_hint=hint, **fields
    )


def judged(prompt: Prompt) -> str:
    """What a careful reader says: an end ends its value, a value the other ones; equal ones are the same."""
    decisions, used = [], set[int]()
    for conflict in numbered_conflicts(prompt).conflicts:
        new = conflict.fact
        known = {label: one for label, one in conflict.candidates if label not in used}
        values = {label: one for label, one in known.items() if one.action_hint != "retract"}
        same = [label for label, one in values.items() if one.value == new.value]
        same.sort(key=lambda label: known[label].status == "ended")
        others = [label for label, one in values.items() if one.value != new.value]
        ends = [label for label, one in known.items() if one.action_hint == "retract" and one.value == new.value]
        if new.action_hint == "retract":
            action, labels = "RETRACT", same
        elif same:
            action, labels = ("SIMILAR", same) if new.text == DETAIL else ("KEEP", same[:1])
        else:
            action, labels = "REPLACE", others or ends
        if action == "KEEP" and new.text == ROOM:
            action = "MERGE"
        used.update(labels)
        merged = ROOM if action == "MERGE" else None
        decisions.append(
            decision_json(conflict.number, action if labels else "ADD", *labels, text=merged, search_text=merged)
        )
    return decisions_reply(*decisions)


async def held_by_day(resolver: ResolverHarness, known_at: datetime) -> Mapping[int, Sequence[str | None]]:
    """The values that held on each day, by what is known in the end."""
    found = {}
    for number in range(LAST):
        known = await facts_as_of(
            resolver.stored.conn, ALICE, believed_at=known_at, true_at=day(number) + timedelta(hours=1)
        )
        found[number] = sorted({fact.value or "" for fact in known if "no longer" not in fact.text})
    return found


def days(*periods: tuple[int, str]) -> dict[int, list[str]]:
    """The value of each day, from the days on which it changes."""
    changes = dict(periods)
    held, found = "", {}
    for number in range(LAST):
        held = changes.get(number, held)
        found[number] = [held] if held else []
    return found


ACME, INTEL, BOSCH = (f"Mira works at {name}." for name in ("Acme", "Intel", "Bosch"))
NO_ACME, NO_BOSCH = "Mira no longer works at Acme.", "Mira no longer works at Bosch."
CASES: dict[str, tuple[Sequence[Told], dict[int, list[str]]]] = {
    "a late value between two, whose end was told, ends the first": (
        [(NO_BOSCH, 30), (BOSCH, 21), (NO_ACME, 16), (INTEL, 5), (ACME, 7)],
        days((5, "Intel"), (7, "Acme"), (16, ""), (21, "Bosch"), (30, "")),
    ),
    "a value that is found to begin earlier ends what is known to have ended later": (
        [(INTEL, 9), (NO_ACME, 8), (ACME, 5), ("Mira started at Intel.", 6)],
        days((5, "Acme"), (6, "Intel")),
    ),
    "so does a fact that it is merged with": (
        [(ACME, 17), (INTEL, 6), (ROOM, 7)],
        days((6, "Intel"), (7, "Acme")),
    ),
    "so does an older detail of it": (
        [(INTEL, 3), (ACME, 30), (DETAIL, 28), ("Mira has a job at Acme.", 12)],
        days((3, "Intel"), (12, "Acme")),
    ),
    "a value that held twice is not one": (
        [(ACME, 3), (NO_ACME, 10), ("Mira has a job at Acme.", 20), ("Mira is employed at Acme.", 7)],
        days((3, "Acme"), (10, ""), (20, "Acme")),
    ),
    "an end that was told twice is as early as it was told first": (
        [(INTEL, 21), (ACME, 3), (NO_ACME, 26), (NO_ACME, 12)],
        days((3, "Acme"), (12, ""), (21, "Intel")),
    ),
    "a late detail of a value that was followed by another is history": (
        [(INTEL, 3), ("Mira started at Acme.", 4), ("Mira started at Intel.", 6), (DETAIL, 5)],
        days((3, "Intel"), (4, "Acme"), (6, "Intel")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("told", "expected"), CASES.values(), ids=CASES)
async def test_each_value_ends_when_the_next_one_begins(
    resolver: ResolverHarness, told: Sequence[Told], expected: dict[int, list[str]]
) -> None:
    for text, at in told:
        resolver.chat_model.set_replies(judged)
        await resolver.resolve_turn(said(text), at=day(at))
    assert await held_by_day(resolver, day(LAST)) == expected


async def test_what_holds_for_a_term_begins_no_value(resolver: ResolverHarness) -> None:
    week = "Mira helps out at Acme for a week."
    resolver.chat_model.set_replies(judged)
    for text, at in ((INTEL, 3), (ACME, 12)):
        await resolver.resolve_turn(said(text), at=day(at))
    resolver.chat_model.set_replies(verdicts_by_text({week: TextVerdict("SIMILAR", (ACME, INTEL))}))
    await resolver.resolve_turn(said(week).model_copy(update={"valid_until": day(15)}), at=day(8))
    rows = await resolver.stored.rows(f"SELECT true_to FROM facts WHERE text = '{INTEL}'")  # noqa: S608 - no input
    assert rows == [(day(12),)]


async def test_a_value_that_held_then_is_mentioned_and_is_no_older_one(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(judged)
    for text, at in ((ACME, 8), ("Mira is employed at Acme.", 5), ("Mira started at Intel.", 12)):
        await resolver.resolve_turn(said(text), at=day(at))
    (event,) = (await resolver.resolve_turn(said("Mira has a job at Acme."), at=day(7))).events
    assert (event.event, event.decision.verdict) == ("fact_skipped", "KEEP")


async def test_a_detail_of_a_value_with_an_announced_end_ends_with_it(resolver: ResolverHarness) -> None:
    leaves = "Mira will no longer work at Acme."
    expire = decision_json(1, "EXPIRE", 1, ended_at=day(20))
    await resolver.resolve_turn(said(ACME), at=day(1))
    resolver.chat_model.set_replies(decisions_reply(expire))
    await resolver.resolve_turn(said(leaves), at=day(2))
    resolver.chat_model.set_replies(judged)
    await resolver.resolve_turn(said(DETAIL), at=day(3))
    rows = await resolver.stored.rows(f"SELECT true_to FROM facts WHERE text = '{DETAIL}'")  # noqa: S608 - no input
    assert rows == [(day(20),)]
