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
MINE = ScopeFilter(user_id="alice")
PARTS = ("text_part", "names_part", "recency_part", "times_part", "neighbours_part")


def turn(turn_id: str, *messages: str | Message, scope: Scope = ALICE, on: float = 0, **fields: Any) -> Turn:
    said = tuple(Message(role="user", content=one) if isinstance(one, str) else one for one in messages)
    return Turn(turn_id=turn_id, scope=scope, messages=said, occurred_at=day(on), **fields)


def ended(*turns: Turn) -> list[Commit]:
    return [commit(one.turn_id, scope=one.scope, at=one.occurred_at) for one in turns]


def deleted(source_id: str, told: Commit, *, on: int) -> Commit:
    return commit(source_id, with_decision(retracted(fact_id_at(told)), by="person"), at=day(on))


async def tell(db: ProjectedDatabase, *turns: Turn, first_offset: int = 0) -> None:
    """Turns of which nothing was extracted."""
    await db.journal(*turns, first_offset=first_offset)
    await db.apply(*ended(*turns))


async def found(
    db: ProjectedDatabase,
    question: str,
    *,
    scope: ScopeFilter | Sequence[ScopeFilter] = MINE,
    statuses: Sequence[TurnStatus] = SHOWN_STATUSES,
    **options: Any,
) -> TurnFindings:
    asked = SearchOptions.read(options)
    return await search_turns(db.conn, scope, question, asked, at=day(400), statuses=statuses)


async def ids(db: ProjectedDatabase, question: str, **asked: Any) -> list[str]:
    return [one.turn_id for one in (await found(db, question, **asked)).turns]


async def test_a_turn_is_found_by_the_words_that_people_said_in_it_and_has_its_facts(db: ProjectedDatabase) -> None:
    said = Message(role="user", content="The boiler leaks again.", name="Alice")
    reply = Message(role="assistant", content="I will call a plumber.")
    prompt = Message(role="system", content="The user has a parrot.")
    await tell(db, turn("t1", prompt, said, reply, metadata={"topic": "house"}, on=3), turn("t2", "We had pasta."))
    (hit,) = (await found(db, "What was wrong with the boilers?")).turns
    assert (hit.turn_id, hit.speaker, hit.excerpt) == ("t1", "Alice", "The boiler leaks again.")
    assert (hit.occurred_at, hit.status, hit.fact_ids, hit.metadata) == (
        day(3),
        "nothing_stored",
        (),
        {"topic": "house"},
    )
    assert (hit.user_id, hit.agent_id, hit.run_id) == ("alice", None, None)
    for question in ("plumber", "parrot", "?! 😀"):
        assert await ids(db, question) == []
    told = commit("t3", added("Lives in Rome."), added("Owns a dog."), at=day(5))
    await db.journal(turn("t3", "I live in Rome and I own a dog.", on=5), first_offset=2)
    await db.apply(told)
    (hit,) = (await found(db, "dog")).turns
    assert (hit.status, hit.fact_ids) == ("stored", (fact_id_at(told), fact_id_at(told, 1)))


async def test_rare_words_names_and_new_turns_come_first(db: ProjectedDatabase) -> None:
    await tell(db, *(turn(f"n{number}", "The garden is nice.", on=number) for number in range(8)))
    await tell(db, turn("rare", "The tandem is nice.", on=-3))
    assert (await ids(db, "nice garden tandem"))[:2] == ["rare", "n7"]
    await tell(db, turn("tom", Message(role="user", content="A garden it is.", name="Tom"), on=-6), first_offset=20)
    first, second, *_ = (await found(db, "What did Tom say about the garden?")).turns
    assert first.turn_id == "tom"
    assert first.score.names_part > 0 == second.score.names_part
    assert first.score.total == pytest.approx(sum(getattr(first.score, part) for part in PARTS[:4]))
    assert await ids(db, "garden", limit=3) == ["n7", "n6", "n5"]
    new, old, *_ = (await found(db, "garden", weights={"recency": 0.0})).turns
    assert (new.turn_id, old.turn_id, new.score) == ("n7", "n6", old.score)
    assert new.occurred_at - old.occurred_at == timedelta(days=1)


async def test_names_and_words_are_read_as_in_a_search_of_facts(db: ProjectedDatabase) -> None:
    for number, (name, question) in enumerate(
        [
            ("James", "James' garden"),
            ("Alice", "le garden d’Alice"),
            ("Peter", "Wo ist Peters garden?"),
            ("O’Neil", "O'Neil's garden"),
        ]
    ):
        scope = Scope(user_id=f"user {number}")
        by_each = [turn(one, Message(role="user", content="A garden.", name=one), scope=scope) for one in (name, "Tom")]
        await tell(db, *by_each)
        hits = (await found(db, question, scope=ScopeFilter.of_scope(scope))).turns
        assert {one.turn_id: one.score.names_part > 0 for one in hits} == {name: True, "Tom": False}
    for day_number, (said, question) in enumerate(
        [
            ("Die Hunde von Jonas sind laut und der Garten ist klein.", "Wie laut ist der Hund?"),
            ("Les chevaux sont dans la prairie avec les enfants.", "Où est l'enfant ?"),
            ("私は東京に住んでいます。", "東京"),
            ("Мы купили новые велосипеды.", "Где мой велосипед?"),
            ("ฉันชอบดื่มกาแฟในตอนเช้า", "กาแฟ"),
        ]
    ):
        await tell(db, turn(said, said, on=day_number))
        assert await ids(db, question) == [said]


async def test_a_long_message_is_told_around_the_words(db: ProjectedDatabase) -> None:
    filler = "Nothing of this matters at all to anybody. " * 200
    await tell(db, turn("t1", "Hello.", f"{filler} The tandem is in the cellar. {filler}", on=-5))
    (hit,) = (await found(db, "tandem")).turns
    assert "The tandem is in the cellar." in hit.excerpt
    assert len(hit.excerpt) <= 1000
    words = " ".join(f"word{number}" for number in range(300))
    long = f"{words} boiler and the " * 60
    await tell(db, *(turn(f"l{number}", long[:99_000], on=number) for number in range(10)), first_offset=1)
    hits = (await found(db, f"boiler {words}", limit=100)).turns
    assert len(hits) == 10
    assert all("word" in hit.excerpt and len(hit.excerpt) <= 1000 for hit in hits)


async def test_only_turns_of_exactly_the_scope_are_found(db: ProjectedDatabase) -> None:
    of_run, of_acme = Scope(user_id="alice", run_id="r1"), Scope(tenant="acme", user_id="alice")
    scopes = {"own": ALICE, "run": of_run, "bob": BOB, "acme": of_acme}
    await tell(db, *(turn(name, "tandem", scope=scope) for name, scope in scopes.items()))
    for scope, expected in (
        (MINE, {"own"}),
        (ScopeFilter(user_id="alice", run_id="r1"), {"run"}),
        (ScopeFilter(user_id="alice", run_id="*"), {"run"}),
        (ScopeFilter(user_id="alice", run_id="**"), {"own", "run"}),
        ([MINE, ScopeFilter.of_scope(of_run)], {"own", "run"}),
        (ScopeFilter(user_id="*"), {"own", "bob"}),
        (ScopeFilter.of_scope(of_acme), {"acme"}),
        (ScopeFilter(user_id="carol"), set()),
    ):
        assert set(await ids(db, "tandem", scope=scope)) == expected


async def test_filters_and_times_choose_turns(db: ProjectedDatabase) -> None:
    group = [Message(role="user", content="tandem", name=name) for name in ("Tom", "Ann")]
    await tell(db, turn("house", "tandem", metadata={"topic": "house"}), turn("group", *group, on=9))
    asked: list[tuple[dict[str, Any], set[str]]] = [
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
    ]
    for filters, expected in asked:
        assert set(await ids(db, "tandem", filters=filters)) == expected, filters
    period = (day(-1), day(1))
    assert await ids(db, "tandem", believed_at=day(6)) == ["house"]
    assert await ids(db, "tandem") == ["group", "house"]
    assert await ids(db, "tandem", period=period) == ["house", "group"]
    assert await ids(db, "tandem", period=period, only_period=True) == ["house"]


async def test_a_turn_is_shown_by_how_it_ended(db: ProjectedDatabase) -> None:
    names = ("stored", "nothing_stored", "failed", "rejected", "in_flight", "echo", "said")
    await db.journal(*(turn(name, "tandem") for name in names))
    recalled = DroppedStatement(text="Alice owns a tandem.", reason="recalled", excerpt="tandem")
    steps = [Step(stage="embed", milliseconds=1), Step(stage="extract", milliseconds=1, dropped=(recalled,))]
    await db.apply(
        *(commit("stored", added("Owns a tandem.")), commit("nothing_stored"), commit("said", steps=steps[:1])),
        commit("echo", steps=steps),  # it became no fact, so nothing would tell when the memory it repeats is deleted
        commit("failed", outcome="failed", reason="invalid_reply"),
        commit("rejected", outcome="rejected", reason="limit"),
    )
    assert set(await ids(db, "tandem")) == {"stored", "nothing_stored", "failed", "said"}
    assert await ids(db, "tandem", statuses=["rejected"]) == ["rejected"]


async def test_what_is_left_out_is_counted_where_it_is_asked_for(db: ProjectedDatabase) -> None:
    turns = [turn(f"t{number}", "tandem", on=number) for number in range(5)]
    await db.journal(*turns, turn("in_flight", "tandem", on=4), turn("behind", "tandem"))
    await db.apply(*ended(*turns))
    explained = await found(db, "tandem", explain=True, limit=2, period=(day(2), day(9)), only_period=True)
    assert explained.left_out == {"not_shown": 1, "outside_period": 3, "over_limit": 1}
    assert (await found(db, "tandem", explain=True, limit=3)).left_out == {"not_shown": 1, "over_limit": 3}
    assert (await found(db, "tandem", explain=True)).left_out == {"not_shown": 2}
    assert (await found(db, "tandem", limit=2)).left_out == {}


async def test_a_turn_of_odd_content_is_kept_and_nothing_more(db: ProjectedDatabase) -> None:
    """Postgres bounds the words of a row, and what JSON holds."""
    many = " ".join(f"{number:x}ü{number}" for number in range(60_000))
    texts = {"many": many, "long": "x" * 1_000_000, "emoji": "😀 \\ ' tandem", "empty": " "}
    await tell(db, *(turn(name, text, on=number) for number, (name, text) in enumerate(texts.items())))
    assert await ids(db, "tandem") == ["emoji"]
    assert await ids(db, "1ü1") == ["many"]


async def test_words_count_that_were_said_beside_a_turn(db: ProjectedDatabase) -> None:
    """As in a search of facts; such a turn is found where it has no word of the question itself."""
    minutes = {"one": 0, "two": 1, "asked": 2, "four": 61, "five": 62.5, "old": -300}
    said = {name: "tandem" if name == "asked" else "Yes." for name in minutes}
    await tell(db, *(turn(name, said[name], on=10 + minute / 1440) for name, minute in minutes.items()))
    hits = (await found(db, "tandem")).turns
    full = hits[0].score.text_part
    assert {one.turn_id: one.score.neighbours_part / full for one in hits} == pytest.approx(
        {"asked": 0, "two": 0.6, "four": 0.6, "one": 0.3}
    )
    assert hits[1].score.text_score == 0
    assert all(one.score.total == pytest.approx(sum(getattr(one.score, part) for part in PARTS)) for one in hits)
    assert await ids(db, "tandem", weights={"neighbours": 0.0}) == ["asked"]
    assert await ids(db, "tandem", scope=[MINE, ScopeFilter(user_id="bob")]) == [one.turn_id for one in hits]
    assert (await found(db, "tandem", explain=True, limit=2)).left_out == {}


async def test_words_of_a_hidden_turn_count_nowhere(db: ProjectedDatabase) -> None:
    """Else what stands beside it would tell that it said them."""
    told = commit("a", added("Owns a tandem."), at=day(1))
    other = [turn("b", "Do you ride?", on=1), turn("c", "Tandem?", on=2)]
    await db.journal(turn("a", "I own a tandem.", on=1), *other)
    await db.apply(told, *ended(*other))
    assert await ids(db, "tandem") == ["c", "a", "b"]
    await db.apply(deleted("d", told, on=3))
    assert await ids(db, "tandem") == ["c"]


async def test_a_turn_is_hidden_with_what_its_fact_was_merged_into_but_not_with_what_replaced_it(
    db: ProjectedDatabase,
) -> None:
    first = commit("a", added("Lives in Bern."), at=day(1))
    second = commit("b", merged("Lives in Bern, Switzerland.", fact_id_at(first)), at=day(2))
    third = commit("c", merged("Lives in Bern, Switzerland, by the Aare.", fact_id_at(second)), at=day(3))
    await db.journal(turn("a", "I live in Bern.", on=1), turn("b", "Bern in Switzerland.", on=2))
    await db.apply(first, second, third)
    assert await ids(db, "Bern") == ["b", "a"]
    await db.apply(deleted("d", third, on=4))
    assert await ids(db, "Bern") == []
    tandem = commit("e", added("Owns a tandem."), at=day(5))
    sold = commit("f", replaced("Owns a car.", fact_id_at(tandem)), at=day(6))
    await db.journal(turn("e", "A tandem.", on=5), turn("f", "A car, no tandem.", on=6), first_offset=2)
    await db.apply(tandem, sold, deleted("g", sold, on=7))
    assert await ids(db, "tandem") == ["e"]
