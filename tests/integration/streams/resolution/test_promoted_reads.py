"""What readers see of a promotion: histories, explanations, one sentence for both facts, and a rebuild."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.explain import explain, history
from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.command import Confirm, Delete, Undo
from mnemolog.texts import explanation_sentences
from tests.integration.streams.resolution.test_promotions import (
    LIMA,
    MIRA,
    MOVES,
    OSLO,
    ROME,
    RUN,
    command,
    home,
    promote,
    states,
    statuses_of,
    tell_move,
)
from tests.support.builders.commits import day
from tests.support.harnesses.resolver_harness import ResolverHarness, TextVerdict, extracted_fact, verdicts_by_text

pytestmark = pytest.mark.postgres

BOTH: Sequence[ScopeFilter] = (ScopeFilter.of_scope(MIRA), ScopeFilter.of_scope(RUN))


async def found(resolver: ResolverHarness, scopes: Sequence[ScopeFilter] = BOTH, **asked: object) -> list[str]:
    options = SearchOptions.read({"top_k": 20, **asked})
    hits = await search(resolver.stored.conn, scopes, "Where does Mira live? Oslo Rome", None, options, at=day(20))
    return sorted(f"{hit.fact.text} {hit.fact.run_id or ''}".strip() for hit in hits)


async def test_the_histories_of_both_facts_tell_of_the_promotion(resolver: ResolverHarness) -> None:
    original = await tell_move(resolver)
    done = await promote(resolver)
    copy = done.events[0].subject_id
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


async def test_the_explanations_of_both_facts_tell_of_the_promotion(resolver: ResolverHarness) -> None:
    await resolver.stored.journal_turns("t2", scope=RUN)
    original = await tell_move(resolver, excerpt="I moved to Oslo")
    copy = (await promote(resolver)).events[0].subject_id
    assert copy is not None
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
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    assert await found(resolver) == [ROME, f"{OSLO} r2"]


async def test_what_the_original_was_promoted_to_stands_for_it_also_when_it_was_deleted(
    resolver: ResolverHarness,
) -> None:
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


async def test_what_replaced_the_promoted_fact_replaces_its_original_too(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver)
    resolver.chat_model.set_replies(verdicts_by_text({LIMA: TextVerdict("REPLACE", (OSLO,))}))
    await resolver.resolve_turn(home(LIMA, action_hint="update"), at=day(12), source_id="t3", scope=MIRA)
    assert await found(resolver) == [LIMA]
    assert await found(resolver, true_at=day(6)) == [OSLO]
    assert await found(resolver, true_at=day(14)) == [LIMA]


async def test_what_waits_for_a_confirmation_does_not_stand_for_the_original(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    await resolver.resolve_turn(home(ROME), at=day(1), source_id="t1", scope=MIRA, immutable=True)
    await resolver.resolve_turn(home(OSLO), at=day(5), source_id="t2", scope=RUN, speaker="Mira")
    await promote(resolver)
    assert (await statuses_of(resolver))[OSLO] == "pending_confirmation"
    assert await found(resolver) == [ROME, OSLO, f"{OSLO} r2"]
    copy = (await states(resolver))[OSLO]["fact_id"]
    await resolver.send_command(command("c1", Confirm(fact_ids=(copy,)), at=10))
    assert await found(resolver) == [OSLO]


async def test_an_undo_since_leaves_what_was_known_before_it(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver)
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=12))
    assert await found(resolver, believed_at=day(11)) == [OSLO]
    assert await found(resolver, believed_at=day(13)) == [ROME, f"{OSLO} r2"]


async def test_a_context_of_several_scopes_has_one_of_both_facts(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(MOVES)
    vegan = extracted_fact("Mira is vegan.", category="hard_preference")
    await resolver.resolve_turn(vegan, at=day(1), source_id="t1", scope=RUN)

    async def shown(scopes: Sequence[ScopeFilter]) -> list[str | None]:
        return [fact.run_id for fact in await lasting_facts(resolver.stored.conn, scopes, day(20))]

    assert await shown(BOTH) == ["r2"]
    await promote(resolver)
    assert await shown(BOTH) == [None]
    assert await shown(BOTH[1:]) == ["r2"]
    (copy,) = [row["fact_id"] for row in (await states(resolver)).values()]
    await resolver.send_command(command("d1", Delete(fact_ids=(copy,)), at=10))
    assert await shown(BOTH) == []
    assert await shown(BOTH[1:]) == ["r2"]


async def test_both_times_tell_since_when_and_when_it_was_known(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await promote(resolver, at=9)

    async def home_of(at: datetime, believed_at: datetime) -> list[str]:
        known = await facts_as_of(resolver.stored.conn, BOTH[0], true_at=at, believed_at=believed_at)
        return [fact.text for fact in known]

    assert await home_of(day(6), day(20)) == [OSLO]
    assert await home_of(day(6), day(8)) == [ROME]
    assert await home_of(day(4), day(20)) == [ROME]
    told = await diff(resolver.stored.conn, BOTH[0], since=day(8), until=day(20))
    assert [(one.text, [old.text for old in one.old]) for one in told.replaced] == [(OSLO, [ROME])]


async def test_a_rebuild_gives_the_same_tables_without_a_model(resolver: ResolverHarness) -> None:
    await tell_move(resolver)
    await resolver.resolve_turn(home(ROME), at=day(6), source_id="t3", scope=MIRA)
    await promote(resolver)
    await resolver.send_command(command("u1", Undo(source_id="p1"), at=10))
    await promote(resolver, "p2", at=11)
    calls = len(resolver.chat_model.prompts)
    for full in (False, True):
        report = await rebuild(resolver.stored.url, TableLogSource(resolver.stored.pool), verify_only=True, full=full)
        assert report.equal
    assert len(resolver.chat_model.prompts) == calls
