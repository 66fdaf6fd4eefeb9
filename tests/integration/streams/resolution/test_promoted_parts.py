"""What one promote command takes: many facts in several commands, each fact with its announced end."""

from dataclasses import replace
from typing import Any

import pytest

from mnemolog.schemas.command import Delete, SetPolicy, Undo
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.policy import Limits, Policy
from mnemolog.streams.stages import promote as promotions
from tests.integration.streams.resolution.test_promotions import (
    LIMA,
    RUN,
    command,
    home,
    promote,
    states,
    statuses_of,
)
from tests.support.builders.commits import day, fact_id_at
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, verdicts_by_text

pytestmark = pytest.mark.postgres

LEAVES = "Mira leaves Lima in June."


async def test_many_facts_go_in_several_commands(resolver: ResolverHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotions, "MAX_PROMOTED", 2)
    resolver.chat_model.set_replies(verdicts_by_text({}))
    texts = [f"Mira owns the boat number {number}." for number in range(5)]
    await resolver.resolve_turn(*texts, at=day(1), source_id="t1", scope=RUN)
    first = await promote(resolver)
    assert (len(first.events), first.detail) == (2, "3 follow in the command promote/p1")
    more = await resolver.send_follow_ups()
    assert [len(one.events) for one in more] == [2, 1]
    assert sorted(await statuses_of(resolver)) == sorted(texts)
    assert [one.source_id for one in more] == ["promote/p1", "promote/promote/p1"]
    for place, part in enumerate((first, *more)):
        await resolver.send_command(command(f"u{place}", Undo(source_id=part.source_id), at=11 + place))
    assert set((await statuses_of(resolver)).values()) == {"undone"}


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


@pytest.mark.parametrize("selection", ["fact_ids", "source_id", "filters"])
async def test_a_fact_keeps_the_end_that_another_fact_announced(resolver: ResolverHarness, selection: str) -> None:
    leaving = TextVerdict("RETRACT", (LIMA,))
    resolver.chat_model.set_replies(verdicts_by_text({LEAVES: leaving}))
    told = await resolver.resolve_turn(home(LIMA), at=day(1), source_id="t1", scope=RUN)
    end = day(40)
    await resolver.resolve_turn(
        home(LEAVES, event_time=end, action_hint="retract"), at=day(5), source_id="t2", scope=RUN
    )
    in_run = (await states(resolver, "r2"))[LIMA]
    assert (in_run["status"], in_run["true_to"]) == ("active", end)
    selections: dict[str, dict[str, Any]] = {
        "fact_ids": {"fact_ids": (fact_id_at(told),)},
        "source_id": {"source_id": "t1"},
        "filters": {"filters": parse_filter({"memory": {"contains": "lives"}})},
    }
    done = await promote(resolver, **selections[selection])
    assert done.detail == ""
    (event,) = done.events
    assert event.new_fact is not None
    assert event.new_fact.valid_until == end
    assert await statuses_of(resolver) == {LIMA: "active"}


async def test_an_announced_end_is_decided_again_where_the_announcement_is_promoted_too(
    resolver: ResolverHarness,
) -> None:
    resolver.chat_model.set_replies(verdicts_by_text({LEAVES: TextVerdict("RETRACT", (LIMA,))}))
    await resolver.resolve_turn(home(LIMA), at=day(1), source_id="t1", scope=RUN)
    await resolver.resolve_turn(
        home(LEAVES, event_time=day(40), action_hint="retract"), at=day(5), source_id="t2", scope=RUN
    )
    done = await promote(resolver)
    lives, leaves = done.events
    assert lives.new_fact is not None
    assert lives.new_fact.valid_until is None
    assert leaves.ended_ids == (lives.new_fact.fact_id,)
    found = await states(resolver)
    assert (found[LIMA]["status"], found[LIMA]["true_to"]) == ("active", day(40))


async def test_what_is_over_a_limit_is_rejected_and_nothing_follows(
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
    stage = resolver.resolver
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
