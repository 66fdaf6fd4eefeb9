"""The values of a key that holds one at a time follow each other in the same way, in whatever order they are told."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Confirm, Correct, Edit
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.llm.ports import Prompt
from tests.support.builders.commits import day, fact_id_at
from tests.support.builders.model_replies import decision_json, decisions_reply
from tests.support.harnesses.command_harness import CommandHarness
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
DETAIL = "Mira works at Acme under Kim."
LAST = 40


def said(text: str) -> ExtractedFact:
    """A statement about the employer that the text ends with; "no longer" ends, "started" changes."""
    hint = "retract" if "no longer" in text else "update" if "started" in text else "new"
    value = text.split(" at ")[1].removesuffix(".").split()[0]
    return extracted_fact(text, key="employer", value=value, subject="Mira", single_valued=True, action_hint=hint)


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
        used.update(labels)
        decisions.append(decision_json(conflict.number, action if labels else "ADD", *labels))
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
    "a value that an older detail of it begins earlier does so too": (
        [(INTEL, 3), (ACME, 30), (DETAIL, 28), ("Mira has a job at Acme.", 12)],
        days((3, "Intel"), (12, "Acme")),
    ),
    "a value that held twice is not one": (
        [(ACME, 3), (NO_ACME, 10), ("Mira has a job at Acme.", 20), ("Mira is employed at Acme.", 7)],
        days((3, "Acme"), (10, ""), (20, "Acme")),
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


async def test_a_value_that_held_then_is_mentioned_and_is_no_older_one(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(judged)
    for text, at in ((ACME, 8), ("Mira is employed at Acme.", 5), ("Mira started at Intel.", 12)):
        await resolver.resolve_turn(said(text), at=day(at))
    (event,) = (await resolver.resolve_turn(said("Mira has a job at Acme."), at=day(7))).events
    assert (event.event, event.decision.verdict) == ("fact_skipped", "KEEP")


ROME, OSLO, BERN = (f"Mira lives in {city}." for city in ("Rome", "Oslo", "Bern"))
LEFT, STAY, GUESS = "Mira has left Rome.", "Mira stays in Bern until the 20th.", "Mira perhaps lives in Bern."
WORKS, LEAVES, INTEL_TOO = "Ben works at Acme.", "Ben no longer works at Acme.", "The user works at Intel."


def home(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, **{"key": "home_city", "subject": "Mira", "single_valued": True, **fields})


def job(text: str, subject: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, key="employer", subject=subject, single_valued=True, **fields)


async def held(resolver: ResolverHarness, on: int) -> list[str]:
    known = await facts_as_of(resolver.stored.conn, ALICE, believed_at=day(40), true_at=day(on))
    return [fact.text for fact in known if fact.action_hint != "retract"]


@pytest.mark.parametrize(
    ("told", "verdicts", "kept", "on"),
    [
        pytest.param(
            [
                (job(WORKS, "Ben"), 1),
                (job(LEAVES, "Ben", action_hint="retract"), 16),
                *((job(INTEL_TOO, "user"), at) for at in (18, 5)),
            ],
            {LEAVES: TextVerdict("RETRACT", (WORKS,))},
            WORKS,
            10,
            id="the end of a fact that may be of somebody else, while no name of the user is known",
        ),
        pytest.param(
            [(home(ROME), 1), (home(OSLO), 20), (home(GUESS, certainty="speculation"), 5)],
            {OSLO: TextVerdict("REPLACE", (ROME,)), GUESS: TextVerdict("REPLACE", (ROME, OSLO))},
            ROME,
            10,
            id="the end of what is certain, by a guess",
        ),
        pytest.param(
            [
                (home(ROME), 1),
                (home(LEFT, action_hint="retract"), 16),
                *((home(STAY, valid_until=day(20)), at) for at in (18, 5)),
            ],
            {LEFT: TextVerdict("RETRACT", (ROME,))},
            ROME,
            10,
            id="an end, by what holds for a term",
        ),
        pytest.param(
            [(home(ROME), 1), (home(OSLO, certainty="strong"), 5), (home(STAY, valid_until=day(20)), 8)],
            {OSLO: TextVerdict("REPLACE", (ROME,)), STAY: TextVerdict("CONTRADICT", (OSLO,))},
            ROME,
            30,
            id="an end, by a stay in the place of what had ended it",
        ),
    ],
)
async def test_without_a_question_nothing_moves(
    resolver: ResolverHarness,
    told: Sequence[tuple[ExtractedFact, int]],
    verdicts: Mapping[str, TextVerdict],
    kept: str,
    on: int,
) -> None:
    """An end moves without a question to a model only where that is certain, and no guard would hold it back."""
    resolver.chat_model.set_replies(verdicts_by_text(verdicts))
    for fact, at in told:
        await resolver.resolve_turn(fact, at=day(at))
    assert kept in await held(resolver, on)


async def test_no_end_of_a_humans_word_moves_without_a_question(
    resolver: ResolverHarness, commands: CommandHarness
) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({LEFT: TextVerdict("RETRACT", (ROME,))}))
    bern = fact_id_at(await resolver.resolve_turn(home(BERN), at=day(1)))
    await commands.execute("c1", Correct(edit=Edit(fact_id=bern, text=ROME, true_from=day(1))), at=day(2))
    left = fact_id_at(await resolver.resolve_turn(home(LEFT, action_hint="retract"), at=day(16)))
    await commands.execute("c2", Confirm(fact_ids=(left,)), at=day(17))
    for at in (20, 5):
        await resolver.resolve_turn(home(OSLO), at=day(at))
    assert ROME in await held(resolver, 10)
