"""What was learned in a run is decided in the scope of its user, by a command."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.queries.explain import explain, history
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.command import Command, CommandPayload, Confirm, Delete, Promote, SetPolicy, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.policy import Limits, Policy
from mnemolog.schemas.scope import Scope
from mnemolog.streams.stages import promote as promotions
from mnemolog.texts import explanation_sentences
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.resolver_harness import (
    ResolverHarness,
    TextVerdict,
    home,
    verdicts_by_text,
)

pytestmark = pytest.mark.postgres

MIRA, RUN = Scope(user_id="mira"), Scope(user_id="mira", run_id="r2")
ROME, OSLO, LIMA = "Mira lives in Rome.", "Mira moved to Oslo.", "Mira lives in Lima."
MOVES = verdicts_by_text({OSLO: TextVerdict("REPLACE", (ROME, LIMA)), ROME: TextVerdict("REPLACE", (OSLO, LIMA))})
STATES = """
    SELECT text, run_id, status, true_from, true_to, said_at, confidence, excerpt, speaker, authority, fact_id,
        mention_count, last_confirmed_at, event_time, source_id, metadata
    FROM facts ORDER BY recorded_at, ordinal, fact_id
"""


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


BOTH: Sequence[ScopeFilter] = (ScopeFilter.of_scope(MIRA), ScopeFilter.of_scope(RUN))


async def found(resolver: ResolverHarness, scopes: Sequence[ScopeFilter] = BOTH, **asked: object) -> list[str]:
    options = SearchOptions.read({"limit": 20, **asked})
    hits = await search(resolver.stored.conn, scopes, "Where does Mira live? Oslo Rome", None, options, at=day(20))
    return sorted(f"{hit.fact.text} {hit.fact.run_id or ''}".strip() for hit in hits)


async def tell_move(resolver: ResolverHarness, **fields: Any) -> UUID:
    """Rome, which the user's scope knows, and then Oslo, told in the run; the fact of the run."""
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA)
    told = await resolver.resolve_turn(
        home(OSLO, **fields), at=day(5), source_id="t2", scope=RUN, speaker="Mira", metadata={"room": 4}
    )
    return fact_id_at(told)


async def test_a_move_told_in_a_run_replaces_the_home_of_the_user_until_it_is_undone(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver, excerpt="I moved to Oslo", certainty="strong")
    done = await promote(resolver)
    assert (done.outcome, done.detail) == ("done", "")
    found = await states(resolver)
    assert (found[ROME]["status"], found[ROME]["true_to"]) == ("superseded", day(5))
    assert (await statuses_of(resolver, "r2")) == {OSLO: "active"}
    in_run = (await states(resolver, "r2"))[OSLO]
    kept = ("status", "true_from", "said_at", "confidence", "excerpt", "speaker", "authority", "event_time", "metadata")
    assert in_run["metadata"] == {"room": 4}
    assert {name: found[OSLO][name] for name in kept} == {name: in_run[name] for name in kept}
    assert (found[OSLO]["said_at"], found[OSLO]["confidence"], found[OSLO]["speaker"]) == (day(5), 0.8, "Mira")
    (event,) = done.events
    assert event.promoted_from is not None
    assert event.promoted_from.model_dump() == {"fact_id": original, "source_id": "t2", "said_at": day(5)}
    assert (await promote(resolver, "p2", at=10)).detail == "nothing is promoted: 1 was promoted before"
    assert (await promote(resolver, "p3", at=11, fact_ids=(original,))).events == ()
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=12))
    found = await states(resolver)
    assert (found[ROME]["status"], found[ROME]["true_to"], found[OSLO]["status"]) == ("active", None, "undone")
    assert (await statuses_of(resolver, "r2")) == {OSLO: "active"}
    assert len((await promote(resolver, "p4", at=13)).events) == 1


@pytest.mark.parametrize(("later", "true_from"), [(LIMA, 7), ("Mira has a cat.", 3)], ids=["another home", "nothing"])
async def test_what_a_run_has_said_again_is_promoted_as_it_was_last_said(
    resolver: ResolverHarness, later: str, true_from: int
) -> None:
    resolver.chat_model.set_replies(MOVES)
    told = [(ROME, RUN), (later, MIRA), (ROME, RUN)]
    for at, (text, scope) in zip((3, 5, 7), told, strict=True):
        fact = text if "cat" in text else home(text)
        await resolver.resolve_turn(fact, at=day(at), source_id=f"t{at}", scope=scope)
    await promote(resolver)
    found = await states(resolver)
    assert (found[ROME]["status"], found[ROME]["true_from"], found[ROME]["said_at"]) == (
        "active",
        day(true_from),
        day(7),
    )
    assert (found[later]["status"], found[later]["true_to"]) == (
        ("superseded", day(7)) if later == LIMA else ("active", None)
    )


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


async def test_a_move_held_back_from_a_human_s_word_does_not_stand_for_the_original(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA, immutable=True)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN)
    done = await promote(resolver)
    assert await statuses_of(resolver) == {ROME: "active", OSLO: "pending_confirmation"}
    assert done.events[0].decision.guard == "human_word"
    assert (await promote(resolver, "p2")).detail == "nothing is promoted: 1 was promoted before"
    assert await found(resolver) == [ROME, OSLO, f"{OSLO} r2"]
    copy = (await states(resolver))[OSLO]["fact_id"]
    await resolver.send_command(command("c1", Confirm(fact_ids=(copy,)), at=10))
    assert await found(resolver) == [OSLO]


async def test_a_human_s_word_of_a_run_is_guarded_from_another_turn_of_the_run(resolver: ResolverHarness) -> None:
    """They are promoted by one command, and yet no turn corrected itself."""
    resolver.chat_model.set_replies(verdicts_by_text({}))
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=RUN, immutable=True)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN)
    assert await statuses_of(resolver, "r2") == {ROME: "active", OSLO: "active"}
    resolver.chat_model.set_replies(MOVES)
    done = await promote(resolver)
    assert await statuses_of(resolver) == {ROME: "active", OSLO: "pending_confirmation"}
    assert [event.decision.guard for event in done.events] == [None, "human_word"]
    assert (await states(resolver))[ROME]["authority"] == "human"


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
    selections: tuple[dict[str, Any], ...] = ({}, {"source_id": "unknown"})
    for selection in selections:
        done = await promote(resolver, f"p{len(selection)}", **selection)
        assert "nothing is promoted: nothing that it selects is active in" in done.detail
    assert done.detail.endswith("user_id=mira run_id=r2")
    assert await statuses_of(resolver) == {ROME: "active"}


# Parts: many facts in several commands, each fact with its announced end

LEAVES = "Mira leaves Lima in June."


async def test_many_named_facts_are_all_promoted_but_what_has_ended_since(
    resolver: ResolverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command is done as a whole: neither an end nor an undo in between stops, or repeats, what others promote."""
    monkeypatch.setattr(promotions, "MAX_PROMOTED", 2)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    texts = [f"Mira owns the boat number {number}." for number in range(6)]
    await resolver.resolve_turn(*texts, at=day(1), source_id="t1", scope=RUN)
    ids = [row["fact_id"] for row in (await states(resolver, "r2")).values()]
    first = await promote(resolver, fact_ids=tuple(ids))
    assert (len(first.events), first.detail) == (2, "4 follow in the command promote/p1")
    await resolver.send_command(command("d1", Delete(fact_ids=(ids[0], ids[3])), at=10, scope=RUN))
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    more = await resolver.send_follow_ups()
    assert [(one.outcome, len(one.events), one.detail) for one in more] == [
        ("done", 2, "1 left out: not active, or below min_importance; 1 follow in the command promote/promote/p1"),
        ("done", 1, ""),
    ]
    undone, deleted = {texts[0]: "undone", texts[1]: "undone"}, texts[3]
    assert await statuses_of(resolver) == undone | {text: "active" for text in texts[2:] if text != deleted}


async def test_a_fact_keeps_the_end_that_another_fact_announced(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({LEAVES: TextVerdict("RETRACT", (LIMA,))}))
    told = await resolver.resolve_turn(home(LIMA), at=day(1), source_id="t1", scope=RUN)
    end = day(40)
    await resolver.resolve_turn(
        home(LEAVES, event_time=end, action_hint="retract"), at=day(5), source_id="t2", scope=RUN
    )
    in_run = (await states(resolver, "r2"))[LIMA]
    assert (in_run["status"], in_run["true_to"]) == ("active", end)
    done = await promote(resolver, fact_ids=(fact_id_at(told),))
    assert done.detail == ""
    (event,) = done.events
    assert event.new_fact is not None
    assert event.new_fact.valid_until == end
    assert await statuses_of(resolver) == {LIMA: "active"}


async def test_what_is_over_a_limit_has_no_follow_up(
    resolver: ResolverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command for the rest would find the same facts again, and so on without end."""
    monkeypatch.setattr(promotions, "MAX_PROMOTED", 2)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    policy = Policy(limits=Limits(active_facts=1))
    await resolver.send_command(command("limit", SetPolicy(level="scope", policy=policy), at=0))
    texts = [f"Mira owns the boat number {number}." for number in range(3)]
    await resolver.resolve_turn(*texts, at=day(1), source_id="t1", scope=RUN)
    done = await promote(resolver)
    assert (done.outcome, done.reason, done.events) == ("rejected", "limit", ())
    assert resolver.follow_ups == []


def limit_commits(resolver: ResolverHarness, max_bytes: int) -> None:
    stage = resolver.stage
    stage.commands = replace(stage.commands, promote=replace(stage.commands.promote, max_commit_bytes=max_bytes))


async def test_what_does_not_fit_into_a_commit_follows(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({}))
    texts = [f"Mira owns the boat number {number}." for number in range(4)]
    await resolver.resolve_turn(*texts, at=day(1), source_id="t1", scope=RUN)
    limit_commits(resolver, 9000)
    first = await promote(resolver)
    assert 1 <= len(first.events) < 4
    assert first.detail == f"{4 - len(first.events)} follow in the command promote/p1"
    await resolver.send_follow_ups()
    assert sorted(await statuses_of(resolver)) == sorted(texts)
    limit_commits(resolver, 10)
    await resolver.resolve_turn("Mira has a cat.", at=day(2), source_id="t2", scope=RUN)
    refused = await promote(resolver, "p2")
    assert (refused.outcome, refused.reason, resolver.follow_ups) == ("rejected", "invalid_command", [])


# What readers see of a promotion


async def test_histories_and_explanations_of_both_facts_tell_of_the_promotion(resolver: ResolverHarness) -> None:
    await resolver.stored.journal_turns("t2", scope=RUN)
    original = await tell_move(resolver, excerpt="I moved to Oslo")
    copy = (await promote(resolver)).events[0].subject_id
    assert copy is not None
    of_original = await history(resolver.stored.conn, "default", original)
    assert [(one.event, one.fact_id, one.promoted_from) for one in of_original.events] == [
        ("fact_added", original, None),
        ("fact_replaced", copy, original),
    ]
    assert (of_original.events[1].targets, of_original.events[1].candidates) == ([], [])  # these are not the run's
    of_copy = await history(resolver.stored.conn, "default", copy)
    assert [(one.event, one.promoted_from) for one in of_copy.events] == [
        ("fact_added", None),
        ("fact_replaced", original),
    ]
    promoted, texts = await explain(resolver.stored.conn, "default", copy)
    assert (promoted.source.promoted_from, promoted.source.said_in) == (original, "t2")
    assert promoted.source.said_at == day(5)
    assert [message["content"] for message in promoted.source.messages or ()] == ["Hello."]
    assert any(
        f"promoted from fact {original} by command p1" in one and 'had said in t2: "I moved to Oslo"' in one
        for one in explanation_sentences(promoted, texts)
    )
    explained, texts = await explain(resolver.stored.conn, "default", original)
    assert any(f"was promoted to fact {copy} in p1." in one for one in explanation_sentences(explained, texts))
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    undone, texts = await explain(resolver.stored.conn, "default", original)
    assert any(one.endswith("in p1. (undone since)") for one in explanation_sentences(undone, texts))


async def test_several_scopes_show_one_of_both_facts(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    assert await found(resolver) == [ROME, f"{OSLO} r2"]
    await promote(resolver)
    assert await found(resolver) == [OSLO]
    assert await found(resolver, BOTH[1:]) == [f"{OSLO} r2"]
    assert await found(resolver, filters={"run_id": "r2"}) == [f"{OSLO} r2"]
    assert await found(resolver, believed_at=day(8)) == [ROME, f"{OSLO} r2"]
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=12))
    assert await found(resolver) == [ROME, f"{OSLO} r2"]
    assert await found(resolver, believed_at=day(11)) == [OSLO]


async def test_what_the_original_was_promoted_to_stands_for_it_also_when_deleted(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver)
    copy = (await states(resolver))[OSLO]["fact_id"]
    await resolver.send_command(command("d1", Delete(fact_ids=(copy,)), at=10))
    assert await found(resolver) == [ROME]
    assert await found(resolver, state=["active"]) == [ROME]
    assert await found(resolver, filters={"state": "active"}) == [ROME]
    assert await found(resolver, BOTH[1:]) == [f"{OSLO} r2"]
    assert await found(resolver, filters={"run_id": "r2"}) == [f"{OSLO} r2"]
    assert await found(resolver, believed_at=day(9.5)) == [OSLO]
