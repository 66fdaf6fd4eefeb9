"""Facts of a key that have ended, looked up for turns that come late and only for them."""

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
async def resolver(db: ProjectedDatabase) -> AsyncIterator[ResolverHarness]:
    harness = ResolverHarness(db)
    yield harness
    await harness.close()


def wanted(text: str, key: str | None = None, *, subject: str | None = None, axis: int = 0) -> CandidateQuery:
    """A query by words, key and one of three orthogonal vectors."""
    return CandidateQuery(
        vector=vector(*(float(place == axis) for place in range(3))),
        content_hash=content_hash(text),
        min_similarity=0.9999,
        key=key,
        subject=subject,
    )


CITY = wanted("no such text", "home_city", axis=2)


async def ended(db: ProjectedDatabase, query: CandidateQuery = CITY, *, after: float = 0) -> tuple[Candidate, ...]:
    names = ["the user", "Alice"]
    (found,) = await FactStore(db.pool).ended_candidates(ALICE, [query], after=day(after), user_names=names)
    return found


async def latest_end(db: ProjectedDatabase) -> datetime | None:
    return (await CandidateFinder(db.pool).source_status("default/alice", "t9", ALICE)).latest_end


async def test_what_a_key_held_is_found_by_its_end(db: ProjectedDatabase) -> None:
    rome = commit("t1", added("Rome", key="home_city", subject="Alice"), at=day(1))
    again = commit("t2", skipped(fact_id_at(rome)), at=day(2))
    oslo = commit("t3", replaced("Oslo", fact_id_at(rome), key="home_city"), at=day(4))
    gone = commit("t4", retracted(fact_id_at(oslo), ended_at=day(6)), at=day(7))
    elsewhere = commit("t1", added("Bern", key="home_city"), scope=BOB, at=day(1))
    left = commit("t2", retracted(fact_id_at(elsewhere), ended_at=day(6)), scope=BOB, at=day(7))
    await db.apply(rome, again, oslo, gone, elsewhere, left)
    first, second = await ended(db)
    assert (first.fact_id, first.key, first.subject, first.status) == (fact_id_at(rome), "home_city", "Alice", "ended")
    assert (first.true_from, first.said_at, first.true_to) == (day(1), day(2), day(4))
    assert (second.fact_id, second.true_from, second.said_at, second.true_to) == (
        fact_id_at(oslo),
        *map(day, (4, 4, 6)),
    )
    assert await ended(db, after=4) == (second,)
    assert await ended(db, after=6) == ()
    assert await ended(db, wanted("no such text", "employer", axis=2)) == ()
    assert await latest_end(db) == day(6)


async def test_what_is_near_or_of_equal_words_is_found_without_a_key(db: ProjectedDatabase) -> None:
    dog = commit("t1", added("Has a dog.", vector=vector(1.0, 0.0, 0.0)), at=day(1))
    await db.apply(dog, commit("t2", retracted(fact_id_at(dog), ended_at=day(4)), at=day(4)))
    for query, similarity in ((wanted("Has a dog.", axis=1), 1.0), (wanted("Owns a dog."), pytest.approx(1.0))):
        (found,) = await ended(db, query, after=2)
        assert (found.text, found.similarity) == ("Has a dog.", similarity)
    assert await ended(db, wanted("Owns a dog.", axis=1), after=2) == ()
    assert await latest_end(db) == day(4)


async def test_what_was_said_again_after_its_end_counts_as_said_at_its_end(db: ProjectedDatabase) -> None:
    rome = commit("t1", added("Rome", key="home_city"), at=day(1))
    again = commit("t2", skipped(fact_id_at(rome)), at=day(5))
    moved = commit("t3", replaced("Oslo", fact_id_at(rome), key="home_city", true_from=day(3)), at=day(6))
    event = moved.events[0].model_copy(update={"ended_at": day(3)})
    await db.apply(rome, again, moved.model_copy(update={"events": (event,)}))
    (found,) = await ended(db)
    assert (found.said_at, found.true_to) == (day(3), day(3))


async def test_what_is_held_or_was_merged_or_never_was_has_not_ended(db: ProjectedDatabase) -> None:
    facts = commit("t1", *(added(name, key="home_city") for name in ("Rome", "Oslo", "Bern", "Chur")), at=day(1))
    later = commit(
        "t2",
        merged("Rome, Trastevere", fact_id_at(facts, 0), key="home_city"),
        contradicted("Basel", fact_id_at(facts, 1), key="home_city"),
        retracted(fact_id_at(facts, 2), ended_at=None),
        at=day(2),
    )
    await db.apply(facts, later)
    assert await ended(db) == ()
    assert await latest_end(db) is None


async def test_the_first_of_a_key_to_end_are_looked_up(db: ProjectedDatabase) -> None:
    number = MAX_ENDED_OF_KEY + 1
    facts = commit("t1", *(added(f"City {place}", key="home_city") for place in range(number)), at=day(0))
    ends = [retracted(fact_id_at(facts, place), ended_at=day(number - place)) for place in range(number)]
    await db.apply(facts, commit("t2", *ends, at=day(200)))
    assert [one.true_to for one in await ended(db)] == [day(n) for n in range(1, number)]


async def test_neither_another_key_nor_other_people_push_a_value_out(db: ProjectedDatabase) -> None:
    """The bound is for each statement and its key, and values of its subject come first."""
    number = MAX_ENDED_OF_KEY + 1
    others = [added(f"Tom lives in city {place}.", key="home_city", subject="Tom") for place in range(number)]
    jobs = [added(f"Job {place}", key="employer", subject="Alice") for place in range(number)]
    facts = commit("t1", *others, *jobs, added("Rome", key="home_city", subject="the user"), at=day(0))
    places = range(len(facts.events))
    ends = [retracted(fact_id_at(facts, place), ended_at=day(1 if place < 2 * number else 9)) for place in places]
    await db.apply(facts, commit("t2", *ends, at=day(200)))
    found = await ended(db, wanted("no such text", "home_city", subject="Alice", axis=2))
    assert len(found) == MAX_ENDED_OF_KEY
    assert "Rome" in [known.text for known in found]


def home(city: str) -> ExtractedFact:
    return extracted_fact(f"Mira lives in {city}.", key="home_city", value=city, subject="Mira")


async def test_late_news_of_a_key_whose_newer_value_has_ended_is_history_at_once(resolver: ResolverHarness) -> None:
    """The model is asked about the end that was told before, and about nothing else."""
    replies = ([decision_json(1, verdict, *known)] for verdict, *known in (("REPLACE", 1), ("RETRACT", 1), ("ADD",)))
    resolver.chat_model.set_replies(*replies)
    await resolver.resolve_turn(home("Oslo"), at=day(3))
    bonn = await resolver.resolve_turn(home("Bonn"), at=day(5))
    await resolver.resolve_turn(extracted_fact("Mira left Bonn.", action_hint="retract"), at=day(7))
    asked = len(resolver.chat_model.prompts)
    (late,) = (await resolver.resolve_turn(home("Rome"), at=day(4))).events
    assert isinstance(late, FactAdded)
    assert (late.ended_at, late.ended_by) == (day(5), fact_id_at(bonn))
    assert (late.decision.by, late.decision.guard) == ("rule", "late_news")
    (question,) = resolver.chat_model.prompts[asked:]
    assert isinstance(question, TaskPrompt)
    assert isinstance(question.task, NumberedConflicts)
    assert [one.known_as for one in question.task.conflicts] == ["said later"]
    assert (await resolver.statuses())["Mira lives in Rome."] == "superseded"


async def test_a_dry_run_finds_what_has_ended_as_well(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies([decision_json(1, "RETRACT", 1)])
    bonn = await resolver.resolve_turn(home("Bonn"), at=day(5))
    await resolver.resolve_turn(extracted_fact("Mira left Bonn.", action_hint="retract"), at=day(7))
    for at, end in ((4, (day(5), fact_id_at(bonn))), (8, (None, None))):
        (event,) = (await resolver.stage.decide(matched_envelope(home("Rome"), at=day(at)))).events
        assert isinstance(event, FactAdded)
        assert (event.ended_at, event.ended_by) == end
