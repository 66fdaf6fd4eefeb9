"""How the edits of `update_all` are divided into commands."""

from collections.abc import Sequence
from typing import Any

import pytest

from mnemolog import InvalidCommandError
from mnemolog.client.text_edits import EDIT_BYTES, EDITS
from mnemolog.projections.queries.results import Fact
from mnemolog.schemas.admission import MAX_COMMAND_BYTES
from mnemolog.schemas.command import Update
from tests.support.builders.known_facts import known_fact
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
