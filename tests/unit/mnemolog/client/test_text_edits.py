"""How the edits of `update_all`, and what a reset deletes, are divided into commands."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mnemolog import InvalidCommandError
from mnemolog.client import commands, text_edits
from mnemolog.client.text_edits import EDIT_BYTES, EDITS
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import DeletionShare
from mnemolog.schemas.admission import MAX_COMMAND_BYTES
from mnemolog.schemas.command import DeleteAll, Update
from mnemolog.schemas.scope import Scope
from tests.support.builders.known_facts import known_fact
from tests.support.builders.values import day
from tests.support.harnesses.offline_client import OfflineClient


class ListingClient(OfflineClient):
    """Lists facts that are given."""

    def __init__(self, listed: Sequence[Fact]) -> None:
        super().__init__()
        self._listed = listed

    async def _query(self, *_: Any, **__: Any) -> Any:
        return self._listed


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["x"] * (2 * EDITS + 1), [EDITS, EDITS, 1]),
        (["x" * 7000] * 20, [9, 9, 2]),
        (["\N{GRINNING FACE}" * 7900] * 5, [2, 2, 1]),
        (['"\\\x01' * 2000] * 8, [3, 3, 2]),
        ([], []),
    ],
)
async def test_a_command_has_as_many_edits_as_fit(texts: list[str], sizes: list[int]) -> None:
    facts = [known_fact(f"{number} old {text}") for number, text in enumerate(texts)]
    client = ListingClient(facts)
    await client.update_all("old", "new", user_id="alice")
    orders = [command.order for command in client.commands]
    edits = [order.edits for order in orders if isinstance(order, Update)]
    assert list(map(len, edits)) == sizes
    assert [edit.text for one in edits for edit in one] == [fact.text.replace("old", "new") for fact in facts]
    assert len({command.command_id for command in client.commands}) == len(sizes)
    assert all(len(letter.value) <= EDIT_BYTES + 4096 <= MAX_COMMAND_BYTES for letter in client.producer.records)


async def test_the_same_text_in_its_own_place_is_refused() -> None:
    """Each fact would be replaced by one with its words."""
    client = ListingClient([known_fact("an old text")])
    with pytest.raises(InvalidCommandError, match="old and new are the same"):
        await client.update_all("old", "old", user_id="alice")
    assert client.commands == []


@pytest.mark.parametrize(
    ("text", "new", "reason"),
    [
        ("old" * 2000, "news!", "would have 10000 characters, and an update takes 8000"),
        ("old", " ", "would have no text"),
    ],
)
async def test_a_fact_that_cannot_be_changed_is_named_before_anything_is_sent(text: str, new: str, reason: str) -> None:
    changed = [known_fact("old.") for _ in range(2 * EDITS)]
    client = ListingClient([*changed, known_fact(text)])
    with pytest.raises(InvalidCommandError, match=f"{known_fact(text).fact_id} {reason}.*: leave it out by a filter"):
        await client.update_all("old", new, user_id="alice")
    assert client.producer.records == []


@asynccontextmanager
async def connection() -> AsyncIterator[None]:
    yield None


async def test_a_command_for_many_scopes_reads_no_further_than_it_has_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, read = OfflineClient(), 0

    async def pages(*_: object) -> AsyncIterator[list[Scope]]:
        nonlocal read
        for number in range(100):
            assert len(client.producer.records) == read
            read += 10
            yield [Scope(user_id=f"user{number}", run_id=str(place)) for place in range(10)]

    monkeypatch.setattr(client._connections, "read_pool", type("Pool", (), {"connection": staticmethod(connection)}))
    monkeypatch.setattr(commands, "matching_scopes", pages)
    receipts = await client.delete_all(user_id="*", run_id="*")
    assert len({receipt.command_id for receipt in receipts}) == len(client.producer.records) == read == 1000


async def test_a_reset_reads_no_further_than_it_has_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many scopes there are; each has commands up to a time, and a last one for all that is left."""
    client, taken = OfflineClient(), []

    async def shares(*_: object, most: int) -> AsyncIterator[DeletionShare]:
        for number in range(1000):
            for place in range(1 + number % 3):
                taken.append(number)
                assert len(taken) <= len(client.producer.records) + 11
                yield DeletionShare(scope=Scope(user_id=f"user{number}"), until=day(place + most))

    pool = type("Pool", (), {"connection": staticmethod(connection)})
    monkeypatch.setattr(client._connections, "read_pool", pool)
    monkeypatch.setattr(text_edits, "deletion_shares", shares)
    monkeypatch.setattr(text_edits, "RESET_BATCH", 10)
    receipts = await client.reset(confirm="default")
    assert len({receipt.command_id for receipt in receipts}) == len(receipts) == len(taken) == 1999
    orders = [(one.scope.user_id, one.order.filters) for one in client.commands if isinstance(one.order, DeleteAll)]
    assert [user for user, _ in orders] == [f"user{number}" for number in taken]
    last = [place for place, (user, _) in enumerate(orders) if user not in [after for after, _ in orders[place + 1 :]]]
    assert [place for place, (_, filters) in enumerate(orders) if filters is None] == last
