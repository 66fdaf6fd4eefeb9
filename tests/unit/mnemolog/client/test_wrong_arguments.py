"""Whatever is wrong in a call, and whichever server is away: our own sentence, of one family of errors."""

import inspect
import io
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from mnemolog import (
    AsyncMemoryClient,
    InvalidArgumentError,
    MemoryClient,
    Message,
    MnemologError,
    NotConnectedError,
    Scope,
    ServerUnavailableError,
    Settings,
    Turn,
    WaitTimeoutError,
)
from mnemolog.client.administration import AdminMethods
from mnemolog.client.entities import EntityMethods
from mnemolog.client.inputs import argument_hints, hint_checks
from mnemolog.errors import UnknownArgumentError
from tests.support.harnesses.offline_client import OfflineClient
from tests.support.paths import ROOT

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ID = "0b5f2a44-9a4c-5d27-8c1e-6f1f3a1b7c55"
MESSAGE = Message(role="user", content="Hi.")
TURN = Turn(turn_id="t1", scope=Scope(user_id="alice"), messages=(MESSAGE,), occurred_at=AT)
FOREIGN = re.compile(r"psycopg|aiokafka|pydantic|openai|[Ii]nput should|object at 0x|Traceback")
VALID: dict[str, dict[str, Any]] = {
    "add": {"messages": "Hi."}, "add_many": {"turns": [TURN]}, "dry_run": {"messages": "Hi."},
    "status": {"turn_id": "t1"}, "wait": {"turn_id": "t1", "timeout": 0.05},
    "admin.find_turn_id": {"beginning": "abcd"},
    "get": {"fact_id": ID}, "history": {"fact_id": ID}, "explain": {"fact_id": ID}, "why_not": {"turn_id": "t1"},
    "connect": {}, "ping": {}, "search": {"query": "x"}, "context": {"query": "x"}, "facts": {}, "profile": {},
    "pending": {}, "unresolved": {}, "diff": {"since": "2026-01-31"},
    "admin.quality": {}, "admin.policies": {},
    "admin.first_moments": {},
    "admin.failed_turns": {}, "admin.received_turn": {"turn_id": "t1"}, "admin.short_ids": {"whole_ids": [UUID(ID)]},
    "update": {"fact_id": ID, "text": "x"}, "admin.update_many": {"edits": [{"fact_id": ID, "text": "x"}]},
    "delete": {"fact_ids": [ID]}, "delete_all": {}, "count": {},
    "admin.users": {}, "admin.agents": {}, "admin.runs": {},
    "entities.list": {}, "entities.get": {"name": "Ana"}, "entities.relations": {},
    "entities.neighbours": {"entity": "Ana"}, "entities.who": {"name": "my wife"}, "entities.graph": {},
    "entities.rename": {"entity": ID, "name": "Ana"}, "entities.alias": {"entity": ID, "name": "Ana"},
    "entities.merge": {"entities": [ID], "into": ID}, "entities.forget": {"entity": ID},
    "entities.split": {"entity": ID, "name": "Ana", "names": ["Annie"]}, "entities.summarise": {"entity": ID},
    "admin.export": {"file": io.BytesIO()}, "admin.import_facts": {"file": ROOT / "tests/data/one_fact.jsonl"},
    "admin.undo_import": {"file": ROOT / "tests/data/one_fact.jsonl"},
    "confirm": {"fact_ids": ID}, "reject": {"fact_ids": ID}, "correct": {"fact_id": ID, "text": "x"},
    "resolve": {"fact_id": ID, "action": "keep_old"}, "admin.promote": {"fact_ids": [ID], "run_id": "r1"},
    "undo": {"turn_id": "t1"}, "end_session": {}, "admin.feedback": {"shown": [ID], "used": [ID]},
    "admin.set_policy": {"policy": {"add_only": True}},
}  # fmt: skip
METHODS = {
    f"{kind._namespace}{name}": method
    for kind in (AsyncMemoryClient, EntityMethods, AdminMethods)
    for name, method in inspect.getmembers(kind, inspect.iscoroutinefunction)
    if not name.startswith("_") and name != "close"
}


@pytest.fixture
def client(tmp_path: Path) -> AsyncMemoryClient:
    """A client without servers, bound to a user."""
    return AsyncMemoryClient(settings=Settings(data_dir=tmp_path)).scope(user_id="alice")


def test_the_table_has_every_method() -> None:
    assert set(VALID) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
async def test_a_value_of_a_wrong_kind_is_named(client: AsyncMemoryClient, name: str) -> None:
    for argument in hint_checks(argument_hints(inspect.unwrap(METHODS[name]))):
        with pytest.raises(InvalidArgumentError, match=rf"^{argument} (must be|is) ") as caught:
            await attrgetter(name)(client)(**VALID[name] | {argument: object()})
        assert not FOREIGN.search(str(caught.value))


@pytest.mark.parametrize("name", VALID)
async def test_a_wrong_number_of_arguments_is_told(client: AsyncMemoryClient, name: str) -> None:
    for positional, named in ((range(9), {}), ((), {"nonsense": 1}), *([((), {})] if VALID[name] else [])):
        if name in ("undo", "resolve", "admin.promote") and not positional and not named:
            continue
        with pytest.raises(UnknownArgumentError, match=rf"^{re.escape(name)}\(\)"):
            await attrgetter(name)(client)(*positional, **named)


def test_what_is_taken_by_name_alone_is_told(client: AsyncMemoryClient) -> None:
    blocking = MemoryClient(settings=Settings())
    wrong: Any = (AsyncMemoryClient, MemoryClient, client.scope, blocking.scope)
    for call in wrong:
        with pytest.raises(UnknownArgumentError, match=r"\(\) takes its arguments by name: "):
            call("localhost:9092")


@pytest.mark.parametrize("name", VALID)
async def test_without_servers_each_method_says_what_to_start(client: AsyncMemoryClient, name: str) -> None:
    with pytest.raises(NotConnectedError, match=r"`mnemolog up --data .*` runs one"):
        await attrgetter(name)(client)(**VALID[name])


@pytest.mark.parametrize("name", VALID)
async def test_a_server_that_is_away_is_named(name: str) -> None:
    settings = Settings(kafka="127.0.0.1:9", postgres="postgresql://me:secret@127.0.0.1:9/x")
    async with AsyncMemoryClient(settings=settings) as client:
        with pytest.raises((ServerUnavailableError, WaitTimeoutError), match=r"at 127\.0\.0\.1:9") as caught:
            await attrgetter(name)(client.scope(user_id="alice"))(**VALID[name])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if "wait" in hint_checks(argument_hints(inspect.unwrap(method)))]
)
async def test_nothing_is_published_where_the_end_could_not_be_asked_for(tmp_path: Path, name: str) -> None:
    client = AsyncMemoryClient(settings=Settings(data_dir=tmp_path, kafka="127.0.0.1:9"))
    with pytest.raises(NotConnectedError):
        await attrgetter(name)(client.scope(user_id="alice"))(**VALID[name], wait=True)


Call = Callable[[Any], Any]
SENTENCES: dict[str, tuple[Call, str]] = {
    "an empty text": (lambda c: c.add(""), "no message has any text: publish at least one message"),
    "no messages": (lambda c: c.add([]), "no message has any text"),
    "a number": (lambda c: c.add(5), "messages must be a text, or a list of messages with role and content, not int"),
    "texts": (lambda c: c.add(["Hi."]), r'messages\.0 must be a message such as {"role": "user", "content": '),
    "a wrong role": (lambda c: c.add([{"role": "boss", "content": "x"}]), r"\.0\.role is 'boss': choose one of"),
    "no role": (lambda c: c.add([{"content": "x"}]), r"messages\.0\.role is missing: give one of system, developer"),
    "no content": (lambda c: c.add([{"role": "user"}]), r"messages\.0\.content is missing: give the text"),
    "a number as content": (lambda c: c.add([{"role": "user", "content": 5}]), "must be text, or a list of parts"),
    "no day": (lambda c: c.add("Hi.", occurred_at="soon"), "occurred_at is not a time .'soon'.: write 2026"),
    "no zone": (lambda c: c.add("Hi.", occurred_at="2026-01-01T10:00"),
                r"occurred_at has no zone .* write 2026-01-01T10:00:00\+00:00"),
    "a number as time": (lambda c: c.diff(1767225600), "since must be a datetime with a zone, or a text .* not int"),
    "another axis": (lambda c: c.diff(AT, axis="real"), "axis is 'real': choose one of believed, true"),
    "an unknown action": (lambda c: c.resolve(ID, "keep"), "action is 'keep': choose one of keep_both, keep_old"),
    "a negative wait": (lambda c: c.add("Hi.", wait=-1), "wait is -1: give the seconds, 0 or more"),
    "a wait in words": (lambda c: c.delete(ID, wait="yes"), "wait must be a number of seconds, not text"),
    "a timeout of nan": (lambda c: c.wait("t1", timeout=float("nan")), "timeout is nan: give the seconds"),
    "a wait for a number": (lambda c: c.wait(7), "turn_id must be text, or what `add`, a command, .* not int"),
    "a wait for a dict": (lambda c: c.wait({"turn_id": "t1"}), "turn_id must be text, or .* not a dict"),
    "a wait for nothing": (lambda c: c.wait(""), "turn_id is empty"),
    "no fact id": (lambda c: c.get("the first"), "'the first' is not an id: give all of it, or at least its first 4"),
    "no event id": (lambda c: c.undo(event_id="the first"), "event_id 'the first' is not an id: give all of it"),
    "a short fact id": (lambda c: c.delete("ab"), r"fact_ids\.0|fact_id 'ab' is not an id"),
    "no fact ids": (lambda c: c.confirm(7), "fact_ids must be an id or a list of ids, not int"),
    "ids to shorten that are texts": (lambda c: c.admin.short_ids([ID]), "whole_ids must be a list of UUIDs"),
    "fact ids of numbers": (lambda c: c.delete([7]), r"fact_ids\.0 must be the id of a fact, not int"),
    "edits of texts": (lambda c: c.admin.update_many(["x"]), r"edits\.0 must be an edit .*, not text"),
    "one edit": (lambda c: c.admin.update_many({"fact_id": ID}), "edits must be a list of edits .* not a dict"),
    "a page of the past": (lambda c: c.facts(believed_at=AT, limit=1), "is whole: leave out all_versions"),
    "turns of dicts": (lambda c: c.add_many([{}]), r"turns\.0 must be a Turn, not a dict"),
    "infer in words": (lambda c: c.add("Hi.", infer="no"), "infer must be True or False, not text"),
    "metadata of text": (lambda c: c.add("Hi.", metadata="x"), "metadata must be an object of names and values"),
    "recalled of text": (lambda c: c.add("Hi.", recalled="x"), "recalled must be a list, not text"),
    "nobody": (lambda c: c.facts(user_id=None), "name a user_id or an agent_id"),
    "half an emoji": (lambda c: c.search("\ud83d"), "unpaired surrogate"),
    "a page after a number": (lambda c: c.entities.list(after=5), "after must be an id, not int"),
    "a page after a name": (lambda c: c.entities.list(after="Ana"), "after 'Ana' is not an id"),
    "a page after a part": (lambda c: c.entities.list(after="e87c5d02"), "after 'e87c5d02' is a part of an id"),
    "an empty query": (lambda c: c.search(" "), "the text to search for is empty"),
    "a negative limit": (lambda c: c.search("x", limit=-1), "limit must be at least 1, not -1"),
    "a large limit": (lambda c: c.search("x", limit=1000), "limit must be at most 100, not 1000"),
    "top_k": (lambda c: c.search("x", top_k=5), r"search\(\) has no argument 'top_k': did you mean 'limit'"),
    "a threshold in words": (lambda c: c.search("x", threshold="high"), "threshold must be a number, not text"),
    "a threshold of percents": (lambda c: c.search("x", threshold=70), "threshold must be at most 1, not 70"),
    "a period of numbers": (lambda c: c.search("x", period=[1, 2]), r"period\.0"),
    "a period without zone": (lambda c: c.search("x", period=["2026-03-01T00:00:00", "2026-04-01"]), r"period\.0"),
    "another use of a time": (lambda c: c.search("x", when="soon"), "when"),
    "too few variants": (lambda c: c.search("x", variants=-1), "variants"),
    "too many variants": (lambda c: c.search("x", variants=6), "variants"),
    "variants that are no number": (lambda c: c.search("x", variants=True), "variants"),
    "an order in words": (lambda c: c.search("x", rerank="yes"), "rerank"),
    "messages to search": (lambda c: c.search("x", include="messages"), r"include\.0"),
    "nothing to search": (lambda c: c.search("x", include=[]), "include"),
    "another end of turns": (lambda c: c.search("x", include="turns", turn_status="pending"), r"turn_status\.0"),
    "an end of facts": (lambda c: c.search("x", turn_status="failed"), "turn_status is about turns"),
    "a state of turns": (lambda c: c.search("x", include="turns", state="active"),
                         "state is about facts, and only turns are searched"),
    "a threshold of turns": (lambda c: c.search("x", include="turns", threshold=0.5), "threshold is about facts"),
    "neighbours of turns": (lambda c: c.search("x", include="turns", neighbours=2), "neighbours is about facts"),
    "a true time of turns": (lambda c: c.search("x", include="turns", true_at=AT, rerank=True),
                             "true_at, rerank are about facts"),
    "categories of turns": (lambda c: c.search("x", include="turns", filters={"categories": "health"}),
                            r"filters\.categories is about facts"),
    "keys of turns": (lambda c: c.search("x", include="turns", filters={"OR": [{"NOT": {"key": "k"}}]}),
                      r"filters\.key is about facts"),
    "a filter of facts": (lambda c: c.facts(filters={"colour": 1}), "colour"),
    "a filter of a count": (lambda c: c.count(filters={"colour": 1}), "colour"),
    "a filter of an export": (lambda c: c.admin.export(io.BytesIO(), filters={"colour": 1}), "colour"),
    "a filter of a deletion": (lambda c: c.delete_all(filters={"colour": 1}), "colour"),
    "an option of a client": (lambda _: AsyncMemoryClient(kafk="x"), "has no argument 'kafk': did you mean 'kafka'"),  # type: ignore[call-arg] # wrong
    "a number as server": (lambda _: MemoryClient(kafka=5), "kafka must be text, not int"),  # type: ignore[arg-type] # wrong
    "settings of a dict": (lambda _: MemoryClient(settings={}), "settings must be Settings, not a dict"),  # type: ignore[arg-type] # wrong
    "one scope": (lambda c: c.search("x", any={"user_id": "bob"}), "any must be a list of 1 to 20 scopes"),
    "scopes of numbers": (lambda c: c.context("x", any=[5]), r"any\[0\] must be an object of ids"),
    "a scope of numbers": (lambda c: c.search("x", any=[{"user_id": ["bob"]}]), r"any\[0\] must be an object of ids"),
    "a number to promote into": (lambda c: c.admin.promote(ID, run_id="r1", into=5), "into must be ids of a scope"),
    "objects to promote into": (lambda c: c.admin.promote(ID, run_id="r1", into=[{}]), "into must be ids of a scope"),
    "names of numbers": (lambda c: c.entities.split(ID, "Ana", names=5), "names must be a name or a list .* not int"),
    "names of a dict": (lambda c: c.entities.split(ID, "Ana", names={"a": 1}), "names must be .* not a dict"),
    "a user of numbers": (lambda c: c.scope(user_id=7), "user_id must be text, not int"),
}  # fmt: skip


@pytest.mark.parametrize("name", SENTENCES)
async def test_a_wrong_argument_has_our_sentence(client: AsyncMemoryClient, name: str) -> None:
    call, words = SENTENCES[name]
    with pytest.raises(MnemologError, match=words) as caught:
        await call(client)
    assert isinstance(caught.value, ValueError | TypeError)
    assert not FOREIGN.search(str(caught.value))


@pytest.mark.parametrize("name", ["a number", "a wait for a number", "top_k", "another axis"])
def test_the_blocking_client_says_the_same(tmp_path: Path, name: str) -> None:
    call, words = SENTENCES[name]
    with MemoryClient(settings=Settings(data_dir=tmp_path)) as memory, pytest.raises(MnemologError, match=words):
        call(memory.scope(user_id="alice"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        (date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        (" 2026-01-31T10:00+02:00 ", datetime(2026, 1, 31, 8, tzinfo=UTC)),
        (AT, AT),
    ],
)
async def test_a_time_may_be_a_text_or_a_day(given: Any, expected: datetime) -> None:
    client = OfflineClient()
    await client.add("Hi.", user_id="alice", occurred_at=given, valid_until=given)
    turn = Turn.from_bytes(client.producer.records[0].value)
    assert (turn.occurred_at, turn.valid_until) == (expected, expected)
