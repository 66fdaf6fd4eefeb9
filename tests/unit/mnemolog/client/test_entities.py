"""How a caller names an entity, and commands about entities while no database can be asked."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog import NotConnectedError
from mnemolog.client.entities import AskedName, read_question
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.entities import Entity
from tests.support.harnesses.offline_client import AT, OfflineClient


def steps(asked: AskedName | None) -> list[str | None]:
    """The predicates from the last owner on, who is a name or, as None, the user."""
    if asked is None:
        return []
    if asked.tie is None:
        return [asked.name]
    return [*(steps(asked.owner) if asked.owner else [None]), asked.tie.predicate]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana", ["Ana"]),
        ("my wife", [None, "wife"]),
        ("My  brother Tom", [None, "brother"]),
        ("Tom's boss", ["Tom", "boss"]),
        ("Tom\u2019s boss", ["Tom", "boss"]),
        ("my wife's boss's dog", [None, "wife", "boss", "dog"]),
        ("our employer", [None, "employer"]),
        ("Acme's employee", ["Acme", "employee"]),
        ("the wife of Tom", ["Tom", "wife"]),
        ("my favourite song", ["my favourite song"]),
        ("McDonald's", ["McDonald's"]),
        ("she", []),
        ("?!", []),
        ("a's wife's wife's wife's wife's wife's wife", []),
    ],
)
def test_a_question_is_read(text: str, expected: list[str | None]) -> None:
    assert steps(read_question(text)) == expected


def test_a_name_beside_a_tie_is_kept() -> None:
    asked = read_question("my brother TOM")
    assert asked is not None
    assert asked.tie is not None
    assert (asked.tie.tie, asked.tie.name_key) == ("brother", "tom")


PARTS = st.sampled_from(["my ", "wife", "'s ", "Tom", "boss", " ", "\n", "'", "employer"])


@given(st.lists(PARTS, max_size=60).map("".join))
def test_whatever_is_asked_is_read_or_not(text: str) -> None:
    assert len(steps(read_question(text))) <= 7


OTHER = UUID(int=2)
ANA = Entity(
    entity_id=UUID(int=1), tenant="default", user_id="ana", agent_id=None, app_id=None, run_id=None, name="Ana",
    type="person", is_user=False, aliases=[], facts=1, possible_twins=[], source_id="t1", recorded_at=AT,
)  # fmt: skip


class AwayClient(OfflineClient):
    """No table can be asked."""

    async def _query(self, *_: Any, **__: Any) -> Any:
        raise NotConnectedError("there is no database")


async def test_an_entity_and_a_whole_id_are_known_without_a_database() -> None:
    client = AwayClient()
    await client.entities.merge(ANA, into=OTHER, user_id="ana")
    (command,) = client.commands
    assert command.scope.user_id == "ana"
    assert command.order.model_dump(include={"entity_ids", "into"}) == {"entity_ids": (ANA.entity_id,), "into": OTHER}


async def test_an_entity_of_another_scope_than_the_named_one_is_refused() -> None:
    client = AwayClient()
    for order in (
        client.entities.merge(OTHER, into=ANA, user_id="ben"),
        client.entities.rename(ANA, "X", user_id="ben"),
    ):
        with pytest.raises(InvalidCommandError, match=r"user_id is 'ben', but entity .* is of 'ana'"):
            await order
    assert client.commands == []
    await client.entities.rename(ANA, "X")
    assert [one.scope.user_id for one in client.commands] == ["ana"]
