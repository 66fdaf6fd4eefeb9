"""What a slot held and holds no longer, looked up for turns that come late and only for them."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest
import pytest_asyncio

from mnemolog.projections.stores.facts import MAX_ENDED_OF_KEY, CandidateFinder, FactStore
from mnemolog.schemas.events import FactAdded
from mnemolog.schemas.facts import Candidate, ExtractedFact, content_hash
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.streams.llm.ports import NumberedConflicts, TaskPrompt
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    contradicted,
    day,
    fact_id_at,
    merged,
    replaced,
    retracted,
    skipped,
    vector,
)
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact, matched_envelope

pytestmark = pytest.mark.postgres


@pytest_asyncio.fixture
async def stored(database: str) -> AsyncIterator[ProjectedDatabase]:
    async with ProjectedDatabase.open(database) as stored:
        yield stored


@pytest_asyncio.fixture
async def resolver_harness(stored: ProjectedDatabase) -> AsyncIterator[ResolverHarness]:
    memory = ResolverHarness(stored)
    yield memory
    await memory.close()


def wanted(text: str, key: str | None = None, *, subject: str | None = None, axis: int = 0) -> CandidateQuery:
    """A query by words, key and one of two orthogonal vectors."""
    return CandidateQuery(
        vector=vector(*(float(place == axis) for place in range(3))),
        content_hash=content_hash(text),
        min_similarity=0.9999,
        key=key,
        subject=subject,
    )


CITY = wanted("no such text", "home_city", axis=2)


async def ended(stored: ProjectedDatabase, query: CandidateQuery, *, after: datetime) -> tuple[Candidate, ...]:
    store = FactStore(stored.pool)
    (found,) = await store.ended_candidates(ALICE, [query], after=after, user_names=["the user", "Alice"])
    return found


async def spans(
    stored: ProjectedDatabase, *, after: datetime, query: CandidateQuery = CITY
) -> list[tuple[datetime, datetime | None]]:
    return [(known.true_from, known.true_to) for known in await ended(stored, query, after=after)]


async def test_what_a_key_held_is_found_by_its_end(stored: ProjectedDatabase) -> None:
    rome = commit("t1", added("Rome", key="home_city", subject="Alice"), at=day(1))
    again = commit("t2", skipped(fact_id_at(rome)), at=day(2))
    oslo = commit("t3", replaced("Oslo", fact_id_at(rome), key="home_city"), at=day(4))
    gone = commit("t4", retracted(fact_id_at(oslo), ended_at=day(6)), at=day(7))
    elsewhere = commit("t1", added("Bern", key="home_city"), scope=BOB, at=day(1))
    left = commit("t2", retracted(fact_id_at(elsewhere), ended_at=day(6)), scope=BOB, at=day(7))
    await stored.apply(rome, again, oslo, gone, elsewhere, left)
    (first, second) = await ended(stored, CITY, after=day(0))
    assert (first.fact_id, first.key, first.subject, first.status) == (fact_id_at(rome), "home_city", "Alice", "ended")
    assert (first.true_from, first.said_at, first.true_to) == (day(1), day(2), day(4))
    assert (second.fact_id, second.true_from, second.said_at, second.true_to) == (
        fact_id_at(oslo),
        *map(day, (4, 4, 6)),
    )
    assert await spans(stored, after=day(4)) == [(day(4), day(6))]
    assert await spans(stored, after=day(6)) == []
    assert await spans(stored, after=day(0), query=wanted("no such text", "employer", axis=2)) == []
    source_status = await CandidateFinder(stored.pool).source_status("default/alice", "t9", ALICE)
    assert source_status.latest_end == day(6)


async def test_what_is_near_or_of_equal_words_is_found_without_a_key(stored: ProjectedDatabase) -> None:
    dog = commit("t1", added("Has a dog.", vector=vector(1.0, 0.0, 0.0)), at=day(1))
    await stored.apply(dog, commit("t2", retracted(fact_id_at(dog), ended_at=day(4)), at=day(4)))
    for query, similarity in ((wanted("Has a dog.", axis=1), 1.0), (wanted("Owns a dog."), pytest.approx(1.0))):
        (found,) = await ended(stored, query, after=day(2))
        assert (found.text, found.similarity) == ("Has a dog.", similarity)
    assert await ended(stored, wanted("Owns a dog.", axis=1), after=day(2)) == ()
    assert (await CandidateFinder(stored.pool).source_status("default/alice", "t9", ALICE)).latest_end == day(4)


async def test_what_was_said_again_after_its_end_counts_as_said_at_its_end(stored: ProjectedDatabase) -> None:
    rome = commit("t1", added("Rome", key="home_city"), at=day(1))
    again = commit("t2", skipped(fact_id_at(rome)), at=day(5))
    moved = commit("t3", replaced("Oslo", fact_id_at(rome), key="home_city", true_from=day(3)), at=day(6))
    event = moved.events[0].model_copy(update={"ended_at": day(3)})
    await stored.apply(rome, again, moved.model_copy(update={"events": (event,)}))
    (found,) = await ended(stored, CITY, after=day(0))
    assert (found.said_at, found.true_to) == (day(3), day(3))


async def test_what_is_held_or_was_merged_or_never_was_has_not_ended(stored: ProjectedDatabase) -> None:
    facts = commit("t1", *(added(name, key="home_city") for name in ("Rome", "Oslo", "Bern", "Chur")), at=day(1))
    later = commit(
        "t2",
        merged("Rome, Trastevere", fact_id_at(facts, 0), key="home_city"),
        contradicted("Basel", fact_id_at(facts, 1), key="home_city"),
        retracted(fact_id_at(facts, 2), ended_at=None),
        at=day(2),
    )
    await stored.apply(facts, later)
    assert await spans(stored, after=day(0)) == []
    assert (await CandidateFinder(stored.pool).source_status("default/alice", "t9", ALICE)).latest_end is None


async def test_the_first_of_a_key_to_end_are_looked_up(stored: ProjectedDatabase) -> None:
    number = MAX_ENDED_OF_KEY + 1
    facts = commit("t1", *(added(f"City {place}", key="home_city") for place in range(number)), at=day(0))
    ends = [retracted(fact_id_at(facts, place), ended_at=day(number - place)) for place in range(number)]
    await stored.apply(facts, commit("t2", *ends, at=day(200)))
    assert [true_to for _, true_to in await spans(stored, after=day(0))] == [day(n) for n in range(1, number)]


async def test_neither_another_key_nor_other_people_push_a_value_out(stored: ProjectedDatabase) -> None:
    """The bound is that of one statement and its key, and values of its subject come first."""
    number = MAX_ENDED_OF_KEY + 1
    others = [added(f"Tom lives in city {place}.", key="home_city", subject="Tom") for place in range(number)]
    jobs = [added(f"Job {place}", key="employer", subject="Alice") for place in range(number)]
    facts = commit("t1", *others, *jobs, added("Rome", key="home_city", subject="the user"), at=day(0))
    places = range(len(facts.events))
    ends = [retracted(fact_id_at(facts, place), ended_at=day(1 if place < 2 * number else 9)) for place in places]
    await stored.apply(facts, commit("t2", *ends, at=day(200)))
    query = wanted("no such text", "home_city", subject="Alice", axis=2)
    found = await ended(stored, query, after=day(0))
    assert len(found) == MAX_ENDED_OF_KEY
    assert "Rome" in [known.text for known in found]


def home(city: str) -> ExtractedFact:
    return extracted_fact(f"Mira lives in {city}.", key="home_city", value=city, subject="Mira")


async def test_late_news_of_a_slot_whose_newer_value_has_ended_is_history_at_once(
    resolver_harness: ResolverHarness,
) -> None:
    """The model is asked about the end that was told before, and about nothing else."""
    replies = ([decision_json(1, verdict, *known)] for verdict, *known in (("REPLACE", 1), ("RETRACT", 1), ("ADD",)))
    resolver_harness.chat_model.set_replies(*replies)
    await resolver_harness.resolve_turn(home("Oslo"), at=day(3))
    bonn = await resolver_harness.resolve_turn(home("Bonn"), at=day(5))
    await resolver_harness.resolve_turn(extracted_fact("Mira left Bonn.", action_hint="retract"), at=day(7))
    asked = len(resolver_harness.chat_model.prompts)
    late = await resolver_harness.resolve_turn(home("Rome"), at=day(4))
    (event,) = late.events
    assert isinstance(event, FactAdded)
    assert (event.ended_at, event.ended_by) == (day(5), fact_id_at(bonn))
    assert (event.decision.by, event.decision.guard) == ("policy", "late_news")
    (question,) = resolver_harness.chat_model.prompts[asked:]
    assert isinstance(question, TaskPrompt)
    assert isinstance(question.task, NumberedConflicts)
    assert [one.known_as for one in question.task.conflicts] == ["said later"]
    assert (await resolver_harness.statuses())["Mira lives in Rome."] == "superseded"


async def test_a_dry_run_finds_it_as_well(resolver_harness: ResolverHarness) -> None:
    resolver_harness.chat_model.set_replies([decision_json(1, "RETRACT", 1)])
    bonn = await resolver_harness.resolve_turn(home("Bonn"), at=day(5))
    await resolver_harness.resolve_turn(extracted_fact("Mira left Bonn.", action_hint="retract"), at=day(7))
    (late,) = (await resolver_harness.resolver.decide(matched_envelope(home("Rome"), at=day(4)))).events
    assert isinstance(late, FactAdded)
    assert (late.ended_at, late.ended_by) == (day(5), fact_id_at(bonn))
    (news,) = (await resolver_harness.resolver.decide(matched_envelope(home("Rome"), at=day(8)))).events
    assert isinstance(news, FactAdded)
    assert news.ended_at is None
