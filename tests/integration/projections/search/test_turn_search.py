"""Turns are found by what people said in them, as far as nothing of it was taken back."""
# ruff: noqa: RUF001 -- signs in names

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions
from mnemolog.projections.search.turn_search import SHOWN_STATUSES, TurnFindings, TurnStatus, search_turns
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import DroppedStatement, Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    commit,
    day,
    fact_id_at,
    merged,
    replaced,
    retracted,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
SMALL = ScopeFilter(user_id="alice")
"""A headline of each whole message takes much longer."""
PARTS = ("text_part", "names_part", "recency_part", "times_part", "neighbours_part")


def turn(turn_id: str, *messages: str | Message, scope: Scope = ALICE, on: int = 0, **fields: Any) -> Turn:
    said = tuple(Message(role="user", content=one) if isinstance(one, str) else one for one in messages)
    return Turn(turn_id=turn_id, scope=scope, messages=said, occurred_at=day(on), **fields)


def ended(*turns: Turn, outcome: Any = "no_facts") -> list[Commit]:
    return [commit(one.turn_id, scope=one.scope, at=one.occurred_at, outcome=outcome) for one in turns]


async def tell(db: ProjectedDatabase, *turns: Turn) -> None:
    """Turns of which nothing was extracted."""
    await db.journal(*turns)
    await db.apply(*ended(*turns))


async def found(
    db: ProjectedDatabase,
    question: str,
    *,
    scope: ScopeFilter | Sequence[ScopeFilter] = SMALL,
    statuses: Sequence[TurnStatus] = SHOWN_STATUSES,
    **options: Any,
) -> TurnFindings:
    asked = SearchOptions.read(options)
    return await search_turns(db.conn, scope, question, asked, at=day(400), statuses=statuses)


async def ids(db: ProjectedDatabase, question: str, **asked: Any) -> list[str]:
    return [one.turn_id for one in (await found(db, question, **asked)).turns]


async def test_a_turn_is_found_by_the_words_that_people_said_in_it(db: ProjectedDatabase) -> None:
    said = Message(role="user", content="The boiler leaks again.", name="Alice")
    reply = Message(role="assistant", content="I will call a plumber.")
    prompt = Message(role="system", content="The user has a parrot.")
    given = turn("t1", prompt, said, reply, metadata={"topic": "house"}, on=3)
    await tell(db, given, turn("t2", "We had pasta."))
    (hit,) = (await found(db, "What was wrong with the boilers?")).turns
    assert (hit.turn_id, hit.speaker, hit.excerpt) == ("t1", "Alice", "The boiler leaks again.")
    assert (hit.occurred_at, hit.status, hit.fact_ids, hit.metadata) == (day(3), "no_facts", (), {"topic": "house"})
    assert (hit.user_id, hit.agent_id, hit.run_id) == ("alice", None, None)
    assert await ids(db, "plumber") == []
    assert await ids(db, "parrot") == []
    assert await ids(db, "?! 😀") == []


async def test_the_facts_of_a_turn_come_with_it(db: ProjectedDatabase) -> None:
    told = commit("t1", added("Lives in Rome."), added("Owns a dog."))
    await db.journal(turn("t1", "I live in Rome and I own a dog."))
    await db.apply(told)
    (hit,) = (await found(db, "dog")).turns
    assert hit.fact_ids == (fact_id_at(told), fact_id_at(told, 1))
    assert hit.status == "facts"


async def test_rare_words_names_and_new_turns_come_first(db: ProjectedDatabase) -> None:
    await tell(db, *(turn(f"n{number}", "The garden is nice.", on=number) for number in range(8)))
    await tell(db, turn("rare", "The tandem is nice.", on=-3))
    assert (await ids(db, "nice garden tandem"))[:2] == ["rare", "n7"]
    by_tom = turn("tom", Message(role="user", content="A garden it is.", name="Tom"), on=-6)
    await db.journal(by_tom, first_offset=20)
    await db.apply(*ended(by_tom))
    hits = (await found(db, "What did Tom say about the garden?")).turns
    assert hits[0].turn_id == "tom"
    assert hits[0].score.names_part > 0 == hits[1].score.names_part
    assert hits[0].score.total == pytest.approx(
        sum(getattr(hits[0].score, f"{name}_part") for name in ("text", "names", "recency", "times"))
    )
    assert await ids(db, "garden", top_k=3) == ["n7", "n6", "n5"]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("James", "James' garden"),
        ("Alice", "le garden d’Alice"),
        ("Peter", "Wo ist Peters garden?"),
        ("O’Neil", "O'Neil's garden"),
    ],
)
async def test_a_speaker_is_named_as_in_a_search_of_facts(db: ProjectedDatabase, name: str, question: str) -> None:
    by_name = turn("named", Message(role="user", content="A garden.", name=name))
    await tell(db, by_name, turn("other", Message(role="user", content="A garden.", name="Tom")))
    parts = {one.turn_id: one.score.names_part > 0 for one in (await found(db, question)).turns}
    assert parts == {"named": True, "other": False}


async def test_a_long_message_is_told_around_the_words(db: ProjectedDatabase) -> None:
    filler = "Nothing of this matters at all to anybody. " * 200
    await tell(db, turn("t1", "Hello.", f"{filler} The tandem is in the cellar. {filler}"))
    (hit,) = (await found(db, "tandem")).turns
    assert "The tandem is in the cellar." in hit.excerpt
    assert len(hit.excerpt) <= 1000


async def test_excerpts_of_long_messages_have_the_words_and_are_short(db: ProjectedDatabase) -> None:
    words = " ".join(f"word{number}" for number in range(300))
    long = f"{words} boiler and the " * 60
    await tell(db, *(turn(f"t{number}", long[:99_000], on=number) for number in range(40)))
    hits = (await found(db, f"boiler {words}", top_k=100)).turns
    assert len(hits) == 40
    assert all("word" in hit.excerpt and len(hit.excerpt) <= 1000 for hit in hits)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (SMALL, {"own"}),
        (ScopeFilter(user_id="alice", run_id="r1"), {"run"}),
        (ScopeFilter(user_id="alice", run_id="*"), {"run"}),
        (ScopeFilter(user_id="alice", run_id="**"), {"own", "run"}),
        ([SMALL, ScopeFilter(user_id="alice", run_id="r1")], {"own", "run"}),
        (ScopeFilter(user_id="*"), {"own", "bob"}),
        (ScopeFilter(tenant="acme", user_id="alice"), {"acme"}),
        (ScopeFilter(user_id="carol"), set()),
    ],
)
async def test_only_turns_of_exactly_the_scope_are_found(
    db: ProjectedDatabase, scope: ScopeFilter, expected: set[str]
) -> None:
    await tell(
        db,
        turn("own", "tandem"),
        turn("run", "tandem", scope=Scope(user_id="alice", run_id="r1")),
        turn("bob", "tandem", scope=BOB),
        turn("acme", "tandem", scope=Scope(tenant="acme", user_id="alice")),
    )
    assert set(await ids(db, "tandem", scope=scope)) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"metadata": {"topic": "house"}}, {"house"}),
        ({"speaker": "Tom"}, {"group"}),
        ({"speaker": {"exists": False}}, {"house"}),
        ({"NOT": {"speaker": "Tom"}}, {"house", "group"}),
        ({"event_time": {"gte": day(5).isoformat()}}, {"group"}),
        ({"created_at": {"lt": day(5).isoformat()}}, {"house"}),
        ({"structured_attributes": {"year": START_TIME.year}}, {"house", "group"}),
        ({"source_id": "house"}, {"house"}),
        ({"OR": [{"source_id": "house"}, {"speaker": "Ann"}]}, {"house", "group"}),
        ({"categories": "health"}, set()),
    ],
)
async def test_filters_choose_turns(db: ProjectedDatabase, filters: dict[str, Any], expected: set[str]) -> None:
    group = [Message(role="user", content="tandem", name=name) for name in ("Tom", "Ann")]
    await tell(db, turn("house", "tandem", metadata={"topic": "house"}), turn("group", *group, on=9))
    assert set(await ids(db, "tandem", filters=filters)) == expected


async def test_times_choose_turns(db: ProjectedDatabase) -> None:
    await tell(db, *(turn(f"t{number}", "tandem", on=number) for number in (1, 5, 9)))
    assert set(await ids(db, "tandem", believed_at=day(6))) == {"t1", "t5"}
    period = (day(4), day(6))
    assert (await ids(db, "tandem", period=period))[0] == "t5"
    assert await ids(db, "tandem", period=period, only_period=True) == ["t5"]


async def test_a_turn_is_shown_by_how_it_ended(db: ProjectedDatabase) -> None:
    turns = {name: turn(name, "tandem") for name in ("facts", "no_facts", "failed", "rejected", "in_flight")}
    await db.journal(*turns.values())
    await db.apply(
        commit("facts", added("Owns a tandem.")),
        *ended(turns["no_facts"]),
        *(
            commit(name, outcome=name, reason="limit" if name == "rejected" else "invalid_reply")
            for name in ("failed", "rejected")
        ),
    )
    assert set(await ids(db, "tandem")) == {"facts", "no_facts", "failed"}
    assert await ids(db, "tandem", statuses=["rejected"]) == ["rejected"]


async def test_a_turn_that_repeats_recalled_memory_is_not_shown(db: ProjectedDatabase) -> None:
    """The echo became no fact, so nothing would tell when its memory is deleted."""
    echo = DroppedStatement(text="Alice owns a tandem.", reason="recalled", excerpt="tandem")
    told = [Step(stage="embed", milliseconds=1), Step(stage="extract", milliseconds=1, dropped=(echo,))]
    await db.journal(turn("echo", "tandem"), turn("said", "tandem"))
    await db.apply(commit("echo", steps=told), commit("said", steps=told[:1]))
    assert await ids(db, "tandem") == ["said"]


async def test_what_is_left_out_is_counted_where_it_is_asked_for(db: ProjectedDatabase) -> None:
    turns = [turn(f"t{number}", "tandem", on=number) for number in range(5)]
    await db.journal(*turns, turn("in_flight", "tandem", on=4), turn("behind", "tandem"))
    await db.apply(*ended(*turns))
    explained = await found(db, "tandem", explain=True, top_k=2, period=(day(2), day(9)), only_period=True)
    assert explained.left_out == {"not_shown": 1, "outside_period": 3, "over_top_k": 1}
    assert (await found(db, "tandem", explain=True, top_k=3)).left_out == {"not_shown": 1, "over_top_k": 3}
    assert (await found(db, "tandem", explain=True)).left_out == {"not_shown": 2}
    assert (await found(db, "tandem", top_k=2)).left_out == {}


async def test_a_turn_of_odd_content_is_kept_and_nothing_more(db: ProjectedDatabase) -> None:
    """Postgres bounds the words of a row, and what JSON holds."""
    many = " ".join(f"{number:x}ü{number}" for number in range(60_000))
    texts = {"many": many, "long": "x" * 1_000_000, "emoji": "😀 \\ ' tandem", "empty": " "}
    await tell(db, *(turn(name, text, on=number) for number, (name, text) in enumerate(texts.items())))
    assert await ids(db, "tandem") == ["emoji"]
    assert await ids(db, "1ü1") == ["many"]


async def test_of_two_equal_turns_the_newer_one_comes_first(db: ProjectedDatabase) -> None:
    await tell(db, turn("old", "tandem", on=1), turn("new", "tandem", on=1 + 2))
    (new, old) = (await found(db, "tandem", weights={"recency": 0.0})).turns
    assert (new.turn_id, old.turn_id) == ("new", "old")
    assert new.score == old.score
    assert new.occurred_at - old.occurred_at == timedelta(days=2)


async def test_words_count_that_were_said_beside_a_turn(db: ProjectedDatabase) -> None:
    """As in a search of facts; such a turn is found where it has no word of the question itself."""
    said = {"one": 0, "two": 1, "asked": 2, "four": 61, "five": 62.5, "old": -300}
    minutes = [turn(name, "tandem" if name == "asked" else "Yes.", on=0) for name in said]
    turns = [
        one.model_copy(update={"occurred_at": day(10 + minute / 1440)})
        for one, minute in zip(minutes, said.values(), strict=True)
    ]
    await tell(db, *turns)
    hits = (await found(db, "tandem")).turns
    full = hits[0].score.text_part
    assert {one.turn_id: one.score.neighbours_part / full for one in hits} == pytest.approx(
        {"asked": 0, "two": 0.6, "four": 0.6, "one": 0.3}
    )
    assert hits[1].score.text_score == 0
    assert all(one.score.total == pytest.approx(sum(getattr(one.score, part) for part in PARTS)) for one in hits)
    assert await ids(db, "tandem", weights={"neighbours": 0.0}) == ["asked"]
    assert await ids(db, "tandem", scope=[SMALL, ScopeFilter(user_id="bob")]) == [one.turn_id for one in hits]
    assert (await found(db, "tandem", explain=True, top_k=2)).left_out == {}


async def test_words_of_a_hidden_turn_count_nowhere(db: ProjectedDatabase) -> None:
    """Else what stands beside it would tell that it said them."""
    told = commit("a", added("Owns a tandem."), at=day(1))
    await db.journal(turn("a", "I own a tandem.", on=1), turn("b", "Do you ride?", on=1), turn("c", "Tandem?", on=2))
    await db.apply(told, *ended(turn("b", "Do you ride?", on=1), turn("c", "Tandem?", on=2)))
    assert await ids(db, "tandem") == ["c", "a", "b"]
    await db.apply(commit("d", with_decision(retracted(fact_id_at(told)), by="application"), at=day(3)))
    assert await ids(db, "tandem") == ["c"]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("Die Hunde von Jonas sind laut und der Garten ist klein.", "Wie laut ist der Hund?"),
        ("Les chevaux sont dans la prairie avec les enfants.", "Où est l'enfant ?"),
        ("私は東京に住んでいます。", "東京"),
        ("Мы купили новые велосипеды.", "Где мой велосипед?"),
        ("ฉันชอบดื่มกาแฟในตอนเช้า", "กาแฟ"),
    ],
)
async def test_words_of_turns_have_the_forms_of_their_language(db: ProjectedDatabase, said: str, question: str) -> None:
    await tell(db, turn("t1", said))
    assert await ids(db, question) == ["t1"]


async def test_a_turn_is_hidden_with_what_its_fact_was_merged_into(db: ProjectedDatabase) -> None:
    first = commit("a", added("Lives in Bern."), at=day(1))
    second = commit("b", merged("Lives in Bern, Switzerland.", fact_id_at(first)), at=day(2))
    third = commit("c", merged("Lives in Bern, Switzerland, by the Aare.", fact_id_at(second)), at=day(3))
    await db.journal(turn("a", "I live in Bern.", on=1), turn("b", "Bern in Switzerland.", on=2))
    await db.apply(first, second, third)
    assert await ids(db, "Bern") == ["b", "a"]
    await db.apply(commit("d", with_decision(retracted(fact_id_at(third)), by="application"), at=day(4)))
    assert await ids(db, "Bern") == []


async def test_what_held_before_is_not_what_was_deleted(db: ProjectedDatabase) -> None:
    first = commit("a", added("Lives in Bern."), at=day(1))
    moved = commit("b", replaced("Lives in Rome.", fact_id_at(first)), at=day(2))
    await db.journal(turn("a", "I live in Bern.", on=1), turn("b", "From Bern to Rome.", on=2))
    await db.apply(first, moved, commit("c", with_decision(retracted(fact_id_at(moved)), by="application"), at=day(3)))
    assert await ids(db, "Bern") == ["a"]
