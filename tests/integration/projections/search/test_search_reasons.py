"""Why a search found what it found: repetitions of one matter, neighbours, and what was left out."""

from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import Findings, LeftOutHits, SearchOptions, search
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.commits import ALICE, added, commit, day, fact_id_at, replaced, vector_with_similarity
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE: Final = ScopeFilter.of_scope(ALICE)
RUN: Final = Scope(user_id="alice", run_id="r1")
BOTH: Final = (MINE, ScopeFilter.of_scope(RUN))
NOW: Final = day(100)
ASKED: Final = vector_with_similarity(1)
FAR: Final = vector_with_similarity(0.1)
MINUTE: Final = 1 / 24 / 60
PARTS: Final = ("vector", "text", "names", "recency", "times", "neighbours")


async def found(db: ProjectedDatabase, scope: Any = MINE, /, *, text: str = "tea", **asked: Any) -> Findings:
    return await search(db.conn, scope, text, ASKED, SearchOptions.read(asked), at=NOW)


def texts(findings: Findings) -> list[str]:
    return [hit.fact.text for hit in findings]


async def test_more_of_one_matter_of_one_user_comes_after_all_others(db: ProjectedDatabase) -> None:
    near = [
        added(f"tea {number}", key="drink", subject=subject, vector=vector_with_similarity(0.9 - number / 100))
        for number, subject in enumerate(["Ann", "ann", "Ann", "Ann", "Tom"])
    ]
    far = [added(f"far tea {number}", vector=FAR) for number in range(3)]
    await db.apply(commit("1", *near), commit("2", *far))
    assert texts(await found(db, per_matter=2))[:3] == ["tea 0", "tea 1", "tea 4"]
    assert texts(await found(db, per_matter=2))[-2:] == ["tea 2", "tea 3"]
    assert texts(await found(db))[-1] == "tea 3"  # the fourth
    assert texts(await found(db, per_matter=5))[:5] == ["tea 0", "tea 1", "tea 2", "tea 3", "tea 4"]
    assert len(await found(db, per_matter=1)) == 8  # nothing is lost where there is room
    assert len(await found(db, per_matter=1, top_k=5)) == 5
    for user in ("ben", "cleo", "dan"):
        await db.apply(commit(user, added(f"tea of {user}", key="drink", subject="Ann"), scope=Scope(user_id=user)))
    of_everybody = texts(await found(db, ScopeFilter(user_id="*"), per_matter=2))
    assert {"tea of ben", "tea of cleo", "tea of dan"} <= set(of_everybody[: of_everybody.index("tea 2")])


async def test_words_count_that_were_said_beside_a_fact(db: ProjectedDatabase) -> None:
    """In full what it has itself, .6 of what is one fact away within an hour, half of that two facts away."""
    minutes = {"One.": 0, "Two.": 1, "The green tea.": 2, "Four.": 61, "Five.": 62.5, "Far.": 130, "Old.": -300}
    await db.apply(
        *(commit(text, added(text, vector=FAR), at=day(10 + minute * MINUTE)) for text, minute in minutes.items()),
        commit("x", added("Elsewhere.", vector=FAR), scope=RUN, at=day(10 + 1.5 * MINUTE)),
        commit("i", added("Imported.", vector=FAR, excerpt=""), at=day(10 + 2 * MINUTE)),
    )
    plain = await found(db, threshold=0.0, weights={"neighbours": 0.0})
    assert {hit.score.neighbours_part for hit in plain} == {0}
    drawn = {hit.fact.text: hit.score for hit in await found(db, threshold=0.0)}
    full = drawn["The green tea."].text_part
    parts = {text: score.neighbours_part / full for text, score in drawn.items() if score.neighbours_part}
    assert parts == pytest.approx({"Two.": 0.6, "Four.": 0.6, "One.": 0.3})  # and "Five." came more than an hour later
    assert drawn["Two."].text_score is None
    for score in drawn.values():
        assert score.total == pytest.approx(sum(getattr(score, f"{name}_part") for name in PARTS) * score.prior)
    again = {hit.fact.text: hit.score.neighbours_part / full for hit in await found(db, BOTH, threshold=0.0)}
    assert {text: part for text, part in again.items() if part} == pytest.approx(parts)
    assert texts(await found(db, threshold=0.5)) == ["The green tea."]  # what is beside it needs the threshold itself


async def test_a_word_of_its_own_counts_once(db: ProjectedDatabase) -> None:
    said = ["Green tea.", "Tea with milk.", "The milk is cold."]
    await db.apply(*(commit(text, added(text), at=day(10 + place * MINUTE)) for place, text in enumerate(said)))
    scores = {hit.fact.text: hit.score for hit in await found(db, text="cold milk, green tea", threshold=0.0)}
    whole = scores["Green tea."].text_part / (scores["Green tea."].text_score or 0)
    missing = 1 - (scores["Tea with milk."].text_score or 0)  # "green" is before it, "cold" behind it
    assert scores["Tea with milk."].neighbours_part == pytest.approx(0.6 * missing * whole)


async def test_what_was_left_out_is_told_with_its_reason(db: ProjectedDatabase) -> None:
    home = commit("old", added("old tea"), at=day(1))
    teas = [
        added(f"tea {number}", vector=vector_with_similarity(0.9 - number / 10), key=key, event_time=day(on))
        for number, (key, on) in enumerate([("drink", 5), ("drink", 5), (None, 5), (None, 50)])
    ]
    facts = commit("facts", *teas, added("coffee", vector=FAR, event_time=day(5)), at=day(2))
    coke = replaced("coke", fact_id_at(home), ended_at=day(3), vector=vector_with_similarity(0.0))
    news = commit("new", coke, at=day(4))
    beside = commit("beside", added("ended tea", valid_until=day(9)), added("bob's"), scope=RUN, at=day(2))
    await db.apply(home, facts, news, beside)

    def ids(*places: int) -> tuple[UUID, ...]:
        return tuple(fact_id_at(facts, place) for place in places)

    period: dict[str, Any] = {"period": (day(4), day(6)), "only_period": True}
    asked = {"threshold": 0.5, "per_matter": 1, "explain": True, **period}
    all_but_one = await found(db, top_k=2, **asked)
    assert texts(all_but_one) == ["tea 0", "tea 2"]
    assert all_but_one.left_out == {
        "below_threshold": LeftOutHits(facts=2, first=(*ids(4), fact_id_at(news))),
        "same_matter": LeftOutHits(facts=1, first=ids(1)),
        "outside_period": LeftOutHits(facts=1, first=ids(3)),
        "other_state": LeftOutHits(facts=1, first=(fact_id_at(home),)),
    }
    assert (await found(db, top_k=1, **asked)).left_out["over_top_k"] == LeftOutHits(facts=1, first=ids(2))
    assert (await found(db, BOTH, **asked)).left_out["other_state"].facts == 2
    assert (await found(db, filters={"key": "drink"}, explain=True)).left_out == {}
    assert (await found(db, text="quarks", top_k=1)).left_out == {}
    assert all_but_one[0].score.vector_rank == 1
    assert all_but_one[0].fact.source_id == "facts"
    assert all_but_one[0].fact.excerpt


async def test_what_was_learned_later_is_not_left_out_of_what_was_known_before(db: ProjectedDatabase) -> None:
    early, ended = commit("1", added("tea"), at=day(1)), commit("2", added("old tea", valid_until=day(3)), at=day(2))
    await db.apply(early, ended, commit("3", added("new tea"), at=day(10)))
    then = await found(db, believed_at=day(5), explain=True)
    assert texts(then) == ["tea"]
    assert then.left_out == {"other_state": LeftOutHits(facts=1, first=(fact_id_at(ended),))}
    assert "other_state" not in (await found(db, believed_at=day(1), explain=True)).left_out


async def test_what_was_said_before_and_after_is_given_with_a_hit(db: ProjectedDatabase) -> None:
    """As many facts as are asked for, of the same scope and hour; they are no hits and take no places of hits."""
    minutes = {"Zero.": -70, "One.": -5, "Two.": -2, "The green tea.": 0, "Three.": 2, "More tea.": 30}
    await db.apply(
        *(commit(text, added(text), at=day(10 + minute * MINUTE)) for text, minute in minutes.items()),
        commit("x", added("Elsewhere."), scope=RUN, at=day(10 + MINUTE)),
    )

    async def hits(scope: Any = MINE, **asked: Any) -> Findings:
        return await search(db.conn, scope, "tea", None, SearchOptions.read(asked), at=NOW)

    async def given(scope: Any = MINE, **asked: Any) -> dict[str, list[str]]:
        return {hit.fact.text: [fact.text for fact in hit.neighbours] for hit in await hits(scope, **asked)}

    assert await given() == {"The green tea.": [], "More tea.": []}
    assert await given(neighbours=1) == {"The green tea.": ["Two.", "Three."], "More tea.": ["Three."]}
    assert (await given(neighbours=9))["The green tea."] == ["One.", "Two.", "Three.", "More tea."]
    assert await given(neighbours=2, top_k=1) == {"More tea.": ["The green tea.", "Three."]}
    assert await given(BOTH, neighbours=9) == await given(neighbours=9)
    assert await given(neighbours=1, believed_at=day(10 + MINUTE)) == {"The green tea.": ["Two."]}
    explained = await hits(neighbours=1, explain=True)
    assert [hit.score.total for hit in explained] == [hit.score.total for hit in await hits()]


async def test_an_explained_hit_has_what_was_said_in_its_turn(db: ProjectedDatabase) -> None:
    said = Message(role="user", content="Green tea, please.")
    told = Turn(turn_id="told", scope=ALICE, occurred_at=day(1), messages=(said,))
    await db.journal(told)
    await db.apply(commit("told", added("Alice drinks tea.")), commit("2", added("Tea is stored."), at=day(2)))
    explained = await found(db, explain=True)
    messages = {hit.fact.text: hit.messages for hit in explained}
    assert messages == {"Alice drinks tea.": [said.model_dump()], "Tea is stored.": None}
    assert [hit.messages for hit in await found(db)] == [None, None]
