"""Whatever lists, files, contexts and commands are asked for: an error of ours or an honest answer, in bounded time."""

import io
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import QueryError
from mnemolog.schemas.errors import MnemologError
from mnemolog.settings import Settings
from tests.support.builders.commits import BOB, added, commit, day
from tests.support.harnesses.offline_client import RecordingProducer
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

SECONDS: Final = 5.0
LONGEST: Final = 1000
"""Characters of a message of an error."""
Call = Callable[[AsyncMemoryClient, Any], Awaitable[Any]]


def import_line(client: AsyncMemoryClient, line: bytes) -> Awaitable[Any]:
    return client.admin.import_facts(io.BytesIO(line))


def imported(name: str) -> Call:
    """A line that has a value in this field."""
    return lambda client, value: import_line(client, json.dumps({"text": "a", "user_id": "a", name: value}).encode())


VALUES: Final[Mapping[str, Any]] = {
    "empty": "",
    "white space": "  ",
    "two lines": "a\nb",
    "1 MB": "x" * 1_000_000,
    "U+0000": "a\x00b",
    "half an emoji": "\ud83d",
    "emoji": "\N{PARTY POPPER}",
    "any": "*",
    "SQL": "'; DROP TABLE facts; --",
    "a number": 3,
    "a list": ["a"],
    "nothing": None,
}
CALLS: Final[Mapping[str, Call]] = {
    "facts": lambda client, value: client.facts(user_id=value),
    "tenant": lambda client, value: client.facts(user_id="alice", tenant=value),
    "a page": lambda client, value: client.facts(user_id="alice", limit=1, after=value),
    "count": lambda client, value: client.count(user_id=value),
    "profile": lambda client, value: client.profile(user_id=value),
    "users": lambda client, value: client.admin.users(after=value),
    "context": lambda client, value: client.context(None, user_id=value),
    "question": lambda client, value: client.context(value, user_id="alice"),
    "status": lambda client, value: client.status(value),
    "get": lambda client, value: client.get(value),
    "export": lambda client, value: client.admin.export(io.BytesIO(), user_id=value),
    "file to read": lambda client, value: client.admin.import_facts(value),
    "file to write": lambda client, value: client.admin.export(value, user_id="alice"),
    "scope of a line": imported("user_id"),
    "text of a line": imported("text"),
    "id of a line": imported("id"),
    "key of a line": imported("key"),
    "metadata of a line": imported("metadata"),
    "categories of a line": imported("categories"),
    "state of a line": imported("status"),
    "delete_all": lambda client, value: client.delete_all(user_id=value),
    "key to delete": lambda client, value: client.delete_all(user_id="alice", key=value),
}


@pytest_asyncio.fixture
async def client(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[AsyncMemoryClient]:
    """A client of a database with facts of two users, whose commands go nowhere."""
    await db.apply(commit("1", added("Alice likes tea.")), commit("2", added("Bob likes tea."), scope=BOB))
    monkeypatch.chdir(tmp_path)

    async def producer() -> RecordingProducer:
        return RecordingProducer()

    async with AsyncMemoryClient(settings=Settings(postgres=db.url), now=lambda: day(3)) as made:
        monkeypatch.setattr(made._connections, "producer", producer)
        yield made


async def refusal(call: Callable[[], Awaitable[Any]]) -> str | None:
    """What is said of a call that is refused, which is an error of ours; None for one that is answered."""
    started = time.perf_counter()
    try:
        await call()
        said = None
    except MnemologError as error:
        said = str(error)
    assert time.perf_counter() - started < SECONDS
    assert said is None or len(said) <= LONGEST
    return said


REFUSED: Final = {
    ("profile", "white space"): "user_id",
    ("profile", "1 MB"): "user_id must have at most 256 characters",
    ("users", "half an emoji"): "after: character 0 is an unpaired surrogate",
    ("file to write", "empty"): "file is '': give the name of a file",
    ("file to write", "U+0000"): "give the name of a file",
    ("file to write", "nothing"): "file must be the name of a file",
    ("file to read", "1 MB"): "give the name of a file",
    ("file to read", "a number"): "file must be the name of a file",
    ("file to read", "emoji"): "is not a file that can be read",
}


async def test_any_value_is_refused_or_answered(client: AsyncMemoryClient) -> None:
    for call in CALLS:
        for name, value in VALUES.items():
            said = await refusal(partial(CALLS[call], client, value)) or ""
            assert REFUSED.get((call, name), "") in said, (call, name)


NUMBERS: Final = (-1, float("nan"), float("inf"), "x", 0, 10**30, 1.5, True, None)
NUMBERED: Final[Mapping[str, Call]] = {
    "limit": lambda client, value: client.facts(user_id="alice", limit=value),
    "budget": lambda client, value: client.context("tea", user_id="alice", budget_tokens=value),
    "confidence": lambda client, value: client.context("tea", user_id="alice", min_confidence=value),
    "hits": lambda client, value: client.context("tea", user_id="alice", limit=value),
    "threshold": lambda client, value: client.context("tea", user_id="alice", threshold=value),
    "since": lambda client, value: client.diff(value, user_id="alice"),
}


async def test_a_number_or_a_tokenizer_that_makes_no_sense_is_refused(client: AsyncMemoryClient) -> None:
    for name, call in NUMBERED.items():
        refused = [await refusal(partial(call, client, value)) for value in NUMBERS]
        assert all(refused[:4]), name
    for limit in (0, 10**30):
        said = await refusal(partial(client.entities.list, user_id="alice", limit=limit))
        assert f"limit is {limit}: give 1 or more" in (said or "")
    counters: list[Any] = [lambda _: "7", lambda _: None, lambda _: 1.5, "gpt-4o"]
    for counter in counters:
        with pytest.raises(QueryError, match="count_tokens must"):
            await client.context("tea", user_id="alice", count_tokens=counter)
