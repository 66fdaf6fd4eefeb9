"""What a search of the client adds to that of the tables: scopes, times that a question names, turns, and models."""

import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import REGISTRY

from mnemolog import AsyncMemoryClient
from mnemolog.client.search import WhenAsked
from mnemolog.errors import QueryError
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.settings import Settings
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME
from mnemolog.texts import NO_SELECTED, other_model_sentence
from tests.support.builders.commits import ALICE, MODEL, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.servers.openai_server import OpenAiServer
from tests.support.servers.search_replies import SearchReplies

pytestmark = pytest.mark.postgres
OTHER_MODEL = other_model_sentence("text-embedding-3-small", [MODEL])


def counted(metric: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"mnemolog_client_{metric}", labels) or 0


async def found(client: AsyncMemoryClient, question: str, **options: Any) -> list[str]:
    return [hit.fact.text for hit in await client.search(question, user_id="alice", **options)]


@pytest.fixture
async def scopes(db: ProjectedDatabase) -> AsyncIterator[AsyncMemoryClient]:
    """Facts of two users, and of a run of one of them."""
    stored = [
        (Scope(user_id="alice"), "Alice likes tea."),
        (Scope(user_id="alice", run_id="r1"), "Alice likes mint tea."),
        (Scope(user_id="bob"), "Bob likes tea."),
    ]
    await db.apply(*(commit(f"t{at}", added(text), scope=scope, at=day(1)) for at, (scope, text) in enumerate(stored)))
    async with AsyncMemoryClient(postgres=db.url, now=lambda: day(9)) as memory:
        yield memory


async def test_a_filter_alone_says_whose_facts_are_searched(scopes: AsyncMemoryClient) -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"user_id": "alice"}, {"Alice likes tea."}),
        ({"OR": [{"user_id": "alice"}]}, {"Alice likes tea.", "Alice likes mint tea."}),
        ({"AND": [{"user_id": "alice"}, {"run_id": "r1"}]}, {"Alice likes mint tea."}),
        ({"AND": [{"user_id": "alice"}, {"agent_id": "bot"}]}, set()),
        ({"AND": [{"user_id": "*"}]}, {"Alice likes tea.", "Bob likes tea."}),
    ]
    for asked, texts in cases:
        assert {hit.fact.text for hit in await scopes.search("tea", filters=asked)} == texts, asked
    with pytest.raises(QueryError, match="does not say whose facts"):
        await scopes.search("tea", filters={"memory": {"contains": "tea"}})


@pytest.mark.parametrize(
    ("default", "given", "tea"), [(None, None, 3), (0.55, None, 2), (0.55, 0.0, 3), (None, 0.9, 1)]
)
async def test_what_is_not_sure_enough_is_no_hit_and_doubtful_in_a_context(
    db: ProjectedDatabase, default: float | None, given: float | None, tea: int
) -> None:
    sure = {"Alice likes tea.": 0.95, "Alice may like mint tea.": 0.6, "Alice might like cold tea.": 0.4}
    await db.apply(commit("t1", *(added(text, confidence=number) for text, number in sure.items())))
    settings = Settings(postgres=db.url, min_confidence=default)
    async with AsyncMemoryClient(settings=settings, now=lambda: day(2)) as memory:
        result = await memory.search("tea", user_id="alice", min_confidence=given)
        assert len(result) == tea
        assert ("left out" in (result.notice or "")) == (tea < len(sure))
        found = await memory.context("tea", user_id="alice", min_confidence=given)
        assert len(found.facts) == len(sure)
        doubtful = [fact.text for fact in found.facts if "uncertain" in fact.state]
        assert len(doubtful) == len(sure) - (2 if (default, given) == (None, None) else tea)


async def test_where_nothing_is_found_the_notice_says_why(scopes: AsyncMemoryClient) -> None:
    narrowed: list[dict[str, Any]] = [
        {"state": "expired"},
        {"filters": {"categories": "health"}},
        {"believed_at": "2025-01-01"},
        {"true_at": "2025-01-01"},
        {"period": ("2020-01-01", "2020-02-01"), "only_period": True},
        {"any": [{"run_id": "r2"}, {"run_id": "r3"}]},
    ]
    for asked in narrowed:
        nothing = await scopes.search("tea", user_id="alice", **asked)
        assert (nothing.hits, nothing.notice) == ((), NO_SELECTED), asked
    whole: list[dict[str, Any]] = [{}, {"explain": True}, {"neighbours": 2}, {"weights": {"neighbours": 0.5}}]
    for asked in whole:
        nothing = await scopes.search("quantum", user_id="alice", threshold=1.0, **asked)
        assert nothing.hits == ()
        assert nothing.notice == (
            f"nothing was found {other_model_sentence(MODEL_NAME, [MODEL])}; facts in scopes that also name a run: 1, "
            "search with run_id='**' (--run '**')"
        )


NOW = datetime(2026, 6, 17, 12, tzinfo=UTC)
TRIPS = {
    "Alice made a trip to Oslo.": datetime(2024, 5, 1, tzinfo=UTC),
    "Alice made a trip to Rome.": datetime(2025, 7, 9, tzinfo=UTC),
    "Alice moved to Bern.": datetime(2025, 10, 1, tzinfo=UTC),
    "Alice made a trip to Cork.": datetime(2026, 2, 3, tzinfo=UTC),
}


@pytest.fixture
async def trips(db: ProjectedDatabase) -> AsyncIterator[AsyncMemoryClient]:
    """Nothing embeds: the order is that of words, periods and recency."""
    await db.apply(*(commit(f"t{at:%Y%m%d}", added(text), at=at) for text, at in TRIPS.items()))
    settings = Settings(postgres=db.url, provider="openai", base_url="http://127.0.0.1:1/v1")
    async with AsyncMemoryClient(settings=settings, now=lambda: NOW) as memory:
        memory._connections.search_models._embedding_timeout = 0.05
        yield memory


async def places(client: AsyncMemoryClient, question: str, when: WhenAsked = "boost") -> list[str]:
    return [text.split()[-1].rstrip(".") for text in await found(client, question, when=when)]


async def test_what_happened_in_the_time_that_a_question_names_comes_first_or_alone(trips: AsyncMemoryClient) -> None:
    for question, first in (
        ("Which trip was last summer?", "Rome"),
        ("Which trip was in May 2024?", "Oslo"),
        ("Which trip was in February?", "Cork"),
        ("Which trip was in 2024?", "Oslo"),
    ):
        all_places = await places(trips, question)
        assert all_places[0] == first, question
        assert {"Oslo", "Rome", "Cork"} <= set(all_places)
        assert await places(trips, question, "narrow") == [first]
    question = "Which trip was in May 2024?"
    assert (await places(trips, question, "ignore"))[0] == "Cork"
    period = (TRIPS["Alice made a trip to Rome."], NOW)
    result = await trips.search(question, user_id="alice", period=period, only_period=True)
    assert {hit.fact.text.split()[-1] for hit in result} == {"Rome.", "Cork."}
    assert result.mode == "lexical"
    assert result.notice


async def test_the_time_of_an_event_is_looked_up_and_measured_once(trips: AsyncMemoryClient) -> None:
    before = {phase: counted("search_seconds_count", phase=phase) for phase in ("event", "sql")}
    assert set(await places(trips, "Which trip was before Alice moved to Bern?", "narrow")) == {"Oslo", "Rome"}
    assert {phase: counted("search_seconds_count", phase=phase) - count for phase, count in before.items()} == {
        "event": 1,
        "sql": 1,
    }
    assert set(await places(trips, "Which trip was after Alice moved to Bern?", "narrow")) == {"Cork", "Bern"}
    result = await trips.search("Which trip was before Alice painted the cellar?", user_id="alice", when="narrow")
    assert len(result) == len(TRIPS)
    assert "the question names no time to narrow the search to" in (result.notice or "")


async def test_without_the_package_that_reads_times_only_narrowing_is_refused(
    trips: AsyncMemoryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mnemolog.streams.text.times", None)
    assert await places(trips, "Which trip was in May 2024?")
    with pytest.raises(QueryError, match=r"pip install 'mnemolog\[offline\]'"):
        await places(trips, "Which trip was in May 2024?", "narrow")


async def test_facts_and_turns_are_lists_of_their_own(db: ProjectedDatabase) -> None:
    for number, text in enumerate(("I like tea.", "The tea was cold.")):
        message = Message(role="user", content=text)
        said = Turn(turn_id=f"t{number}", scope=ALICE, messages=(message,), occurred_at=day(40 * number))
        await db.journal(said, first_offset=number)
    await db.apply(commit("t0", added("Alice likes tea."), at=day(0)), commit("t1", at=day(40)))
    both = ["turns", "facts"]
    cases: list[tuple[dict[str, Any], int, int]] = [
        ({}, 1, 0),
        ({"include": "facts"}, 1, 0),
        ({"include": "turns"}, 0, 2),
        ({"include": both}, 1, 2),
        ({"include": both, "limit": 1}, 1, 1),
        ({"include": both, "filters": {"categories": "none"}}, 0, 0),
        ({"include": both, "state": "superseded"}, 0, 2),
        ({"include": "turns", "turn_status": "nothing_stored"}, 0, 1),
        ({"include": "turns", "any": [{}, {"run_id": "r1"}]}, 0, 2),
        ({"include": "turns", "filters": {"source_id": "t1"}}, 0, 1),
    ]
    async with AsyncMemoryClient(postgres=db.url, now=lambda: day(99)) as client:
        for asked, facts, turns in cases:
            result = await client.search("tea", user_id="alice", **asked)
            assert (len(result), len(result.turns)) == (facts, turns), asked
            assert result.mode == ("lexical" if asked.get("include") == "turns" else "hybrid")
        in_time = await client.search("tea in February", user_id="alice", include="turns", when="narrow")
        assert [one.turn_id for one in in_time.turns] == ["t1"]
        nothing = await client.search("bicycle", user_id="alice", include="turns")
        assert (len(nothing), nothing.turns) == (0, ())
        assert nothing.notice == "no turn of this scope that may be shown has a word of the question"
        cut = await client.search("tea", user_id="alice", include="turns", explain=True, limit=1)
        assert cut.left_out_turns == {"over_limit": 1}


QUESTION = "Where is home"
FACTS = [
    "Alice is an engineer.",
    "Alice sold her old home.",
    "Home is where Alice lives: Bern.",
    "Her address is in Bern.",
]


@pytest.fixture
def replies() -> SearchReplies:
    return SearchReplies({QUESTION: ["address"]})


@pytest.fixture
def server(replies: SearchReplies) -> Iterator[OpenAiServer]:
    with OpenAiServer(replies) as server:
        yield server


@pytest.fixture
async def settings(db: ProjectedDatabase, server: OpenAiServer) -> Settings:
    await db.apply(*(commit(f"t{number}", added(text), at=day(number)) for number, text in enumerate(FACTS)))
    return Settings(
        postgres=db.url, provider="openai", base_url=server.base_url, chat_model="asked", search_model_timeout=60.0
    )


@pytest.fixture
async def homes(settings: Settings) -> AsyncIterator[AsyncMemoryClient]:
    """A client that has a model to ask."""
    async with AsyncMemoryClient(settings=settings, now=lambda: day(9)) as memory:
        yield memory


async def test_what_found_each_hit_is_counted(homes: AsyncMemoryClient) -> None:
    """Whether the ranks of the signals are asked for or not."""
    for ranks in (False, True):
        before = {name: counted("search_hits_total", found_by=name) for name in ("words", "both")}
        with_home = [text for text in await found(homes, "home", ranks=ranks) if "home" in text.lower()]
        more = sum(counted("search_hits_total", found_by=name) - before[name] for name in before)
        assert more == len(with_home) == 2


async def test_a_model_orders_the_hits_also_those_beyond_the_limit(
    homes: AsyncMemoryClient, replies: SearchReplies, server: OpenAiServer
) -> None:
    before, question = counted("search_seconds_count", phase="rerank"), "home where Alice is"
    fused = await found(homes, question)
    ordered = await found(homes, question, rerank=True)
    assert ordered[0] == FACTS[2]
    assert sorted(ordered) == sorted(fused)
    assert counted("search_seconds_count", phase="rerank") == before + 1
    fused = await found(homes, QUESTION, limit=20)
    replies.override = f'{{"numbers": [{len(fused)}]}}'
    assert await found(homes, QUESTION, limit=1) == fused[:1] != fused[-1:]
    assert await found(homes, QUESTION, limit=1, rerank=True) == fused[-1:]
    asked = server.requests["chat"]
    assert list(await homes.search(QUESTION, user_id="nobody", rerank=True)) == []
    assert server.requests["chat"] == asked  # nothing is nothing to order


async def test_what_the_order_of_a_model_leaves_out_is_told(homes: AsyncMemoryClient) -> None:
    everything: dict[str, Any] = {"threshold": 0.0, "explain": True}
    fused = [hit.fact.fact_id for hit in await homes.search(QUESTION, user_id="alice", **everything)]
    for limit in (1, 2, len(fused)):
        for rerank in (False, True):
            result = await homes.search(QUESTION, user_id="alice", limit=limit, rerank=rerank, **everything)
            over = result.left_out.get("over_limit")
            assert (over.facts if over else 0) == len(fused) - limit
            told = [hit.fact.fact_id for hit in result] + [*(over.first if over else ())]
            assert sorted(told) == sorted(fused)


async def test_other_wordings_find_what_the_question_has_no_word_of(homes: AsyncMemoryClient) -> None:
    assert FACTS[3] not in (await found(homes, QUESTION))[:2]
    result = await homes.search(QUESTION, user_id="alice", variants=1)
    (by_address,) = (hit for hit in result.hits[:3] if hit.fact.text == FACTS[3])
    assert by_address.score.text_part > 0
    assert result.notice == f"found {OTHER_MODEL}"


@pytest.mark.parametrize("reply", ["no", '{"numbers": [99], "wordings": 1}'])
async def test_a_wrong_reply_leaves_the_search_as_it_is_and_says_so(
    homes: AsyncMemoryClient, replies: SearchReplies, reply: str
) -> None:
    fused = await found(homes, QUESTION)
    replies.override = reply
    result = await homes.search(QUESTION, user_id="alice", rerank=True, variants=2)
    assert [hit.fact.text for hit in result] == fused
    assert result.notice is not None
    assert "not reranked: the reply of the model is not valid" in result.notice
    assert "without other wordings: the reply of the model is not valid" in result.notice


async def test_a_model_that_is_late_or_not_set_is_not_waited_for(settings: Settings, server: OpenAiServer) -> None:
    late = settings.model_copy(update={"search_model_timeout": 0.2})
    async with AsyncMemoryClient(settings=late, now=lambda: day(9)) as memory:
        fused = await found(memory, QUESTION)
        server.latency = 30.0
        result = await memory.search(QUESTION, user_id="alice", rerank=True)
        assert [hit.fact.text for hit in result] == fused
        assert result.notice == f"not reranked: the model did not answer within 0.2 s; found {OTHER_MODEL}"
        server.latency = 0.0
    offline = settings.model_copy(update={"provider": "offline"})
    async with AsyncMemoryClient(settings=offline, now=lambda: day(9)) as memory:
        for _ in range(2):
            result = await memory.search(QUESTION, user_id="alice", rerank=True)
            assert len(result) > 0
            assert "not reranked: no model is set that orders hits" in (result.notice or "")
