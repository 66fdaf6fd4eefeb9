"""What was learned in a run is decided in the scope of its user, by a command."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog.schemas.command import Command, CommandPayload, Delete, Promote, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    extracted_fact,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

MIRA, RUN = Scope(user_id="mira"), Scope(user_id="mira", run_id="r2")
ROME, OSLO, LIMA = "Mira lives in Rome.", "Mira moved to Oslo.", "Mira lives in Lima."
MOVES = verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME, LIMA)), ROME: TextVerdict("REPLACE", (OSLO, LIMA))})
STATES = """
    SELECT text, run_id, status, true_from, true_to, said_at, confidence, excerpt, speaker, authority, fact_id,
        mention_count, last_confirmed_at, event_time, source_id
    FROM facts ORDER BY recorded_at, ordinal, fact_id
"""


def home(text: str, **fields: Any) -> ExtractedFact:
    return extracted_fact(text, key="home_city", subject="Mira", single_valued=True, **fields)


async def states(resolver: ResolverHarness, run: str = "") -> dict[str, dict[str, Any]]:
    """The facts of Mira, or of one of her runs, by their texts."""
    async with resolver.stored.conn.cursor() as cursor:
        await cursor.execute(STATES)
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]
    return {row["text"]: row for row in rows if row["run_id"] == run}


async def statuses_of(resolver: ResolverHarness, run: str = "") -> dict[str, str]:
    return {text: row["status"] for text, row in (await states(resolver, run)).items()}


def command(command_id: str, order: CommandPayload, *, at: int, scope: Scope = MIRA) -> Command:
    return Command(command_id=command_id, scope=scope, issued_at=day(at), order=order)


async def promote(resolver: ResolverHarness, command_id: str = "p1", *, at: int = 9, **selection: Any) -> Commit:
    return await resolver.send_command(command(command_id, Promote(source=RUN, **selection), at=at))


async def tell_move(resolver: ResolverHarness, **fields: Any) -> UUID:
    """Rome, which the user's scope knows, and then Oslo, told in the run; the fact of the run."""
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA)
    told = await resolver.resolve_turn(home(OSLO, **fields), at=day(5), source_id="t2", scope=RUN, speaker="Mira")
    return fact_id_at(told)


async def test_a_move_told_in_a_run_replaces_the_home_of_the_user(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver, excerpt="I moved to Oslo", certainty="strong")
    done = await promote(resolver)
    assert (done.outcome, done.detail) == ("done", "")
    found = await states(resolver)
    assert (found[ROME]["status"], found[ROME]["true_to"]) == ("superseded", day(5))
    assert (await statuses_of(resolver, "r2")) == {OSLO: "active"}
    in_run = (await states(resolver, "r2"))[OSLO]
    kept = ("status", "true_from", "said_at", "confidence", "excerpt", "speaker", "authority", "event_time")
    assert {name: found[OSLO][name] for name in kept} == {name: in_run[name] for name in kept}
    assert (found[OSLO]["said_at"], found[OSLO]["confidence"], found[OSLO]["speaker"]) == (day(5), 0.8, "Mira")
    (event,) = done.events
    assert event.promoted_from is not None
    assert event.promoted_from.model_dump() == {"fact_id": original, "source_id": "t2", "said_at": day(5)}


async def test_an_undo_of_the_command_opens_the_old_home_again(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver)
    undone = await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    assert undone.outcome == "done"
    found = await states(resolver)
    assert {text: row["status"] for text, row in found.items()} == {ROME: "active", OSLO: "undone"}
    assert found[ROME]["true_to"] is None
    assert (await statuses_of(resolver, "r2")) == {OSLO: "active"}


@pytest.mark.parametrize("selection", ["all", "fact_ids", "source_id", "filters"])
async def test_facts_are_promoted_by_id_source_filter_or_all(resolver: ResolverHarness, selection: str) -> None:
    original = await tell_move(resolver)
    await resolver.resolve_turn("Mira has a cat.", at=day(6), source_id="t3", scope=RUN)
    selections: dict[str, dict[str, Any]] = {
        "all": {},
        "fact_ids": {"fact_ids": (original,)},
        "source_id": {"source_id": "t2"},
        "filters": {"filters": parse_filter({"key": "home_city"})},
    }
    await promote(resolver, **selections[selection])
    known = {ROME: "superseded", OSLO: "active"}
    assert await statuses_of(resolver) == known | ({"Mira has a cat.": "active"} if selection == "all" else {})


async def test_what_was_promoted_is_not_promoted_again(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver)
    await promote(resolver)
    again = await promote(resolver, "p2", at=10)
    assert (again.outcome, again.events) == ("done", ())
    assert again.detail == "nothing is promoted: 1 was promoted before"
    named = await promote(resolver, "p3", at=11, fact_ids=(original,))
    assert (named.outcome, named.events) == ("done", ())


async def test_after_an_undo_a_command_promotes_again(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver)
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    assert len((await promote(resolver, "p2", at=11)).events) == 1
    assert (await statuses_of(resolver))[OSLO] == "active"


async def test_a_statement_of_a_run_that_is_older_than_what_is_known_is_history(resolver: ResolverHarness) -> None:
    """The command comes last, but what counts is when the run heard it."""
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(2), source_id="t1", scope=RUN)
    await resolver.resolve_turn(home(OSLO, action_hint="update"), at=day(5), source_id="t2", scope=MIRA)
    await promote(resolver)
    found = await states(resolver)
    assert (found[ROME]["status"], found[ROME]["true_from"], found[ROME]["true_to"]) == ("superseded", day(2), day(5))
    assert found[OSLO]["status"] == "active"


async def test_facts_of_several_times_count_each_as_of_its_own(resolver: ResolverHarness) -> None:
    """Day 2 in the run, day 3 of the user, day 5 in another turn of the run: the order of the days decides."""
    resolver.chat_model.set_replies(MOVES)
    cat = "Mira has a cat."
    await resolver.resolve_turn(cat, at=day(2), source_id="t1", scope=RUN, speaker="Tom")
    await resolver.resolve_turn(home(ROME), at=day(3), source_id="t2", scope=MIRA)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t3", scope=RUN, speaker="Mira")
    await promote(resolver)
    found = await states(resolver)
    assert (found[cat]["said_at"], found[cat]["true_from"], found[cat]["speaker"]) == (day(2), day(2), "Tom")
    assert (found[OSLO]["said_at"], found[OSLO]["speaker"]) == (day(5), "Mira")
    assert (found[ROME]["status"], found[ROME]["true_to"]) == ("superseded", day(5))


async def test_what_is_known_word_for_word_is_a_mention_of_the_time_when_it_was_said(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA)
    await resolver.resolve_turn(home(ROME), at=day(4), source_id="t2", scope=RUN)
    done = await promote(resolver)
    found = await states(resolver)
    assert [event.event for event in done.events] == ["fact_skipped"]
    assert (found[ROME]["mention_count"], found[ROME]["last_confirmed_at"]) == (2, day(4))
    assert (await promote(resolver, "p2")).events == ()


async def test_a_move_is_held_back_from_a_human_s_word(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA, immutable=True)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN)
    done = await promote(resolver)
    assert await statuses_of(resolver) == {ROME: "active", OSLO: "pending_confirmation"}
    assert done.events[0].decision.guard == "human_word"
    assert (await promote(resolver, "p2")).detail == "nothing is promoted: 1 was promoted before"


async def test_a_human_s_word_of_a_run_stays_one(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN, immutable=True)
    await promote(resolver)
    assert (await states(resolver))[OSLO]["authority"] == "human"


async def test_a_human_s_word_of_a_run_is_guarded_from_what_another_turn_of_the_run_said(
    resolver: ResolverHarness,
) -> None:
    """They are promoted by one command, and yet no turn corrected itself."""
    resolver.chat_model.set_replies(verdicts_by_text({}))
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=RUN, immutable=True)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN)
    assert await statuses_of(resolver, "r2") == {ROME: "active", OSLO: "active"}
    resolver.chat_model.set_replies(MOVES)
    done = await promote(resolver)
    assert await statuses_of(resolver) == {ROME: "active", OSLO: "pending_confirmation"}
    assert [event.decision.guard for event in done.events] == [None, "human_word"]


async def test_what_one_turn_of_a_run_corrected_itself_is_believed(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({}))
    told = (home(ROME), home(OSLO, action_hint="update"))
    await resolver.resolve_turn(*told, at=day(5), source_id="t2", scope=RUN, immutable=True)
    resolver.chat_model.set_replies(MOVES)
    await promote(resolver)
    assert (await statuses_of(resolver))[OSLO] == "active"


async def test_what_is_not_active_is_refused_by_name_and_left_out_otherwise(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver)
    home_id = (await states(resolver))[ROME]["fact_id"]
    foreign = await promote(resolver, "foreign", fact_ids=(home_id, original))
    assert (foreign.outcome, foreign.reason) == ("rejected", "foreign_fact")
    await resolver.send_command(command("d1", Delete(fact_ids=(original,)), at=8, scope=RUN))
    closed = await promote(resolver, "closed", fact_ids=(original,))
    assert (closed.outcome, closed.reason) == ("rejected", "closed_fact")
    unknown = await promote(resolver, "unknown", fact_ids=(UUID(int=1),))
    assert (unknown.outcome, unknown.reason) == ("rejected", "unknown_fact")
    done = await promote(resolver, "all")
    assert "nothing is promoted: nothing that it selects is active in" in done.detail
    assert done.detail.endswith("user_id=mira run_id=r2")
    assert await statuses_of(resolver) == {ROME: "active"}


async def test_a_selection_without_facts_is_not_told_as_a_run_without_facts(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    done = await promote(resolver, source_id="unknown")
    assert "nothing that it selects is active in" in done.detail
    assert (await promote(resolver, "all")).detail == ""


async def test_a_pending_fact_of_a_run_is_left_out(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=RUN, immutable=True)
    held = await resolver.resolve_turn(home(OSLO), at=day(2), source_id="t2", scope=RUN)
    refused = await promote(resolver, "named", fact_ids=(fact_id_at(held),))
    assert (refused.reason, "waits for a confirmation" in refused.detail) == ("closed_fact", True)
    done = await promote(resolver)
    assert done.detail == "1 left out: not active, or below min_importance"
    assert await statuses_of(resolver) == {ROME: "active"}


async def test_the_end_of_an_original_does_not_end_what_it_was_promoted_to(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver)
    await promote(resolver)
    await resolver.send_command(command("d1", Delete(fact_ids=(original,)), at=10, scope=RUN))
    assert (await statuses_of(resolver, "r2")) == {OSLO: "retracted"}
    assert (await statuses_of(resolver)) == {ROME: "superseded", OSLO: "active"}
