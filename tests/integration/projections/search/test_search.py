"""Hybrid search on a real Postgres."""

from datetime import datetime

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ANY_VALUE, ScopeFilter
from mnemolog.projections.search.search import DEFAULT_RRF_K, ScopeCount, SearchOptions, count_facts, search
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import (
    ALICE,
    added,
    commit,
    day,
    fact_id_at,
    pending,
    vector,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE = ScopeFilter.of_scope(ALICE)
NOW = day(100)
ASKED = vector_with_similarity(1)


async def found(
    db: ProjectedDatabase, text: str, near: Vector | None = None, *, scope: ScopeFilter = MINE, at: datetime = NOW
) -> list[str]:
    return [hit.fact.text for hit in await search(db.conn, scope, text, near, at=at)]


async def test_fuses_the_ranks_of_vector_and_words_and_explains_them(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("She plays the violin.", vector=vector_with_similarity(0.9))),
        commit("2", added("A cat named Violin.", vector=vector_with_similarity(0.5)), at=day(1)),
        commit("3", added("Music makes her happy.", vector=vector_with_similarity(0.95)), at=day(2)),
    )
    hits = await search(db.conn, MINE, "Who plays violin?", ASKED, SearchOptions.read({"fusion": "rrf"}), at=NOW)
    assert [hit.fact.text for hit in hits] == ["She plays the violin.", "A cat named Violin.", "Music makes her happy."]
    best = hits[0].score
    assert (best.mode, best.vector_rank, best.text_rank) == ("hybrid", 2, 1)
    assert best.similarity == pytest.approx(0.9, abs=0.002)
    assert best.total == pytest.approx((1 / (DEFAULT_RRF_K + 2) + 1 / (DEFAULT_RRF_K + 1)) * best.prior)
    last = hits[2].score
    assert (last.text_rank, last.text_score, last.text_part, last.vector_part) == (
        None,
        None,
        0,
        1 / (DEFAULT_RRF_K + 1),
    )


async def test_without_a_vector_the_words_decide_and_the_hits_say_so(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Alice lives in Bern."), added("Alice likes tea.")))
    hits = await search(db.conn, MINE, "where does she live", None, at=NOW)
    assert [(hit.fact.text, hit.score.mode, hit.score.similarity) for hit in hits] == [
        ("Alice lives in Bern.", "lexical", None)
    ]


async def test_any_of_the_words_is_enough_in_any_language(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Mira spielt Geige im Orchester.")), commit("2", added("Jonas hat einen Hund.")))
    assert await found(db, "Wer spielt eigentlich Klavier?") == ["Mira spielt Geige im Orchester."]
    assert await found(db, "dogs or HUND") == ["Jonas hat einen Hund."]


async def test_stop_words_count_only_where_there_is_nothing_else(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("This is the one.")), commit("2", added("Tea.")))
    assert await found(db, "is the tea") == ["Tea."]
    assert await found(db, "is the") == ["This is the one."]


@pytest.mark.parametrize(
    ("strange", "question", "fact"),
    [
        (
            "Was ist die Quantenchromodynamik?",
            "Wie heißt der Hund von Jonas?",
            "Der Hund ist Bello, und die Katze Minka.",
        ),
        ("Qu'est-ce que la chromodynamique dans le vide ?", "Où est le chat ?", "Le chat est dans la cuisine, et que."),
        ("¿Qué es la cromodinámica de los quarks?", "¿De quién es el perro?", "El perro es de la casa de los Ruiz."),
        ("What is the theory of everything?", "What is the name of her son?", "The son is called Max, of course."),
    ],
)
async def test_the_stop_words_of_a_question_are_those_of_its_language(
    db: ProjectedDatabase, strange: str, question: str, fact: str
) -> None:
    await db.apply(commit("1", added(fact)))
    assert await found(db, strange) == []
    assert await found(db, question) == [fact]


async def test_a_word_that_is_a_stop_word_elsewhere_counts(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Ann's son wears a red hat.")))
    for asked in ("hat size", "son", "her son", "hat"):
        assert await found(db, asked) == ["Ann's son wears a red hat."]


async def test_a_vector_of_another_model_or_length_brings_nobody(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Bern.", vector=vector_with_similarity(1))), commit("2", added("Other.", vector=vector(1, 0)))
    )
    assert await found(db, "?", vector_with_similarity(1, model="another")) == []
    assert await found(db, "?", ASKED) == ["Bern."]


@pytest.mark.parametrize("wrong", [{"tenant": ANY_VALUE, "user_id": "a"}, {}, {"user_id": ""}, {"user_id": "a\x00"}])
def test_a_filter_that_can_find_nothing_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(QueryError):
        ScopeFilter(**wrong)


@pytest.mark.parametrize(
    "text",
    [
        "the",
        "a & b | !c <-> (d) :* '",
        "it's \\ 'quoted' \\' \\\\",
        "🎉🎉",
        "tea\x00tea",
        "\ud800 tea",
        "::jsonb; DROP TABLE facts; --",
        "%s %(tea)s {tea}",
        "x" * 5000,
        "tea " * 25_000,
        " ".join(f"word{number}" for number in range(5000)),
        "https://example.org/a?b='c'&d=\\e <b>tags</b> -1.5e10 a@b.c",
    ],
)
async def test_any_text_is_plain_words(db: ProjectedDatabase, text: str) -> None:
    await db.apply(commit("1", added("tea it's \\ 'quoted'", vector=ASKED)))
    assert await found(db, text, ASKED) == ["tea it's \\ 'quoted'"]
    await found(db, text)


async def test_a_question_that_is_too_long_ends_with_a_whole_word(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A car.")), commit("2", added("A carpet.")))
    filler = "word " * 1999
    assert await found(db, f"{filler}x carpet") == []  # the first 10 000 characters end in "car"
    assert await found(db, f"{filler}x car pet") == ["A car."]


async def test_quotes_and_backslashes_are_found_as_what_they_are(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added(r"The share is \\server\it's-data here.")))
    assert await found(db, r"\\server\it's-data")


@pytest.mark.parametrize(("near", "worded"), [(0.3, 0.9), (0.9, 0.3)])
async def test_ties_go_to_the_important(db: ProjectedDatabase, near: float, worded: float) -> None:
    await db.apply(
        commit("1", added("near", vector=ASKED, importance=near)),
        commit("2", added("tea", vector=vector_with_similarity(1, model="another"), importance=worded)),
    )
    alone = SearchOptions.read({"weights": {"neighbours": 0.0}})
    hits = await search(db.conn, MINE, "tea", ASKED, alone, at=NOW)
    assert [hit.fact.text for hit in hits] == (["near", "tea"] if near > worded else ["tea", "near"])


async def test_a_pending_fact_is_found_flagged_and_behind_an_equal_active_one(db: ProjectedDatabase) -> None:
    known = commit("1", added("She plays the violin.", vector=vector_with_similarity(0.9)))
    held = pending("She plays the violin now.", fact_id_at(known), vector=vector_with_similarity(0.9))
    await db.apply(known, commit("2", held, at=day(1)))
    hits = await search(db.conn, MINE, "violin", ASKED, at=NOW)
    assert [(hit.fact.text, hit.fact.status) for hit in hits] == [
        ("She plays the violin.", "active"),
        ("She plays the violin now.", "pending_confirmation"),
    ]


async def test_what_has_no_word_in_common_needs_the_floor(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Music makes her happy.", vector=vector_with_similarity(0.5))),
        commit("2", added("She drinks tea.", vector=vector_with_similarity(0.1)), at=day(1)),
        commit("3", added("She plays the violin.", vector=vector_with_similarity(-0.2)), at=day(2)),
    )

    async def texts(floor: float) -> list[str]:
        return [
            hit.fact.text
            for hit in await search(db.conn, MINE, "the violin", ASKED, SearchOptions(threshold=floor), at=NOW)
        ]

    assert await texts(0.3) == ["She plays the violin.", "Music makes her happy."]
    assert await texts(0.6) == ["She plays the violin."]
    assert sorted(await texts(0)) == ["Music makes her happy.", "She drinks tea.", "She plays the violin."]
    with_word = await search(db.conn, MINE, "the violin", ASKED, SearchOptions(threshold=0.6), at=NOW)
    assert with_word.below_threshold == 2  # what has a word in common needs no similarity
    nothing = await search(db.conn, MINE, "quantum chromodynamics", ASKED, SearchOptions(threshold=0.6), at=NOW)
    assert (nothing.hits, nothing.below_threshold) == ((), 3)


async def test_facts_of_a_run_stand_beside_those_of_its_user(db: ProjectedDatabase) -> None:
    run = Scope(user_id="alice", run_id="r")
    await db.apply(
        commit("1", added("In a run."), added("Ended.", valid_until=day(50)), scope=run),
        commit("2", added("In another."), scope=Scope(user_id="alice", run_id="s", app_id="app")),
        commit("3", added("Of an agent."), scope=Scope(user_id="alice", agent_id="bot")),
        commit("4", added("Of Bob's run."), scope=Scope(user_id="bob", run_id="r")),
        commit("5", added("Elsewhere."), scope=Scope(tenant="other", user_id="alice", run_id="r")),
    )
    assert await count_facts(db.conn, MINE, at=NOW) == ScopeCount(
        within=0, beside=3, ids=("agent_id", "app_id", "run_id")
    )
    assert await count_facts(db.conn, ScopeFilter.of_scope(run), at=NOW) == ScopeCount(within=1, beside=0, ids=())
    any_run = ScopeFilter(user_id="alice", run_id=ANY_OR_NONE)
    assert await count_facts(db.conn, any_run, at=day(10)) == ScopeCount(within=2, beside=2, ids=("agent_id", "app_id"))
