"""What a process remembers of the turns that it has extracted."""

from datetime import timedelta
from typing import Any

from mnemolog.projections.stores.turns import ConversationRequest
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.stages.background import MAX_OWNER_CHARACTERS, MAX_OWNERS, MAX_TURNS, Place, RecentTurns
from tests.support.builders.commits import day

ANA = Scope(user_id="ana")


def said(turn_id: str, content: str = "", at: float = 0.0, scope: Scope = ANA, **fields: Any) -> Turn:
    messages = (Message(role="user", content=content or turn_id), Message(role="tool", content="3"))
    return Turn(turn_id=turn_id, scope=scope, messages=messages, occurred_at=day(at), **fields)


def at_place(offset: int) -> Place:
    return day(0) + timedelta(seconds=offset), offset


def before(offset: int, turn_id: str = "now", scope: Scope = ANA, **fields: Any) -> ConversationRequest:
    published_at, _ = at_place(offset)
    defaults: dict[str, Any] = {"said_at": day(0), "age": timedelta(days=1), "messages": 10} | fields
    return ConversationRequest(scope=scope, turn_id=turn_id, published_at=published_at, offset=offset, **defaults)


def texts(recent: RecentTurns, request: ConversationRequest) -> list[str]:
    return [message.content for message in recent.messages_before(request)]


def remembering(*turns: Turn) -> RecentTurns:
    recent = RecentTurns()
    for offset, turn in enumerate(turns):
        recent.remember(turn, at_place(offset))
    return recent


def test_earlier_turns_of_the_scope_come_in_the_order_in_which_they_were_said() -> None:
    run = ANA.model_copy(update={"run_id": "r"})
    recent = remembering(said("a"), said("of a run", scope=run), said("older", at=-0.5), said("b"), said("later", at=1))
    assert texts(recent, before(9)) == ["older", "a", "b"]
    assert texts(recent, before(3)) == ["older", "a"]
    assert texts(recent, before(9, scope=run)) == ["of a run"]
    assert texts(recent, before(9, age=timedelta(hours=1))) == ["a", "b"]


def test_a_turn_that_is_delivered_again_is_kept_once_and_is_not_its_own_past() -> None:
    recent = remembering(said("a", speaker="Ana"), said("b"))
    recent.remember(said("a"), at_place(0))
    assert texts(recent, before(9)) == ["a", "b"]
    assert texts(recent, before(9, turn_id="b")) == ["a"]
    assert texts(recent, before(0, turn_id="a")) == []
    assert recent.messages_before(before(9))[0].name == "Ana"


def test_a_deletion_clears_what_its_owner_said() -> None:
    bob = Scope(user_id="bob")
    recent = remembering(said("a"), said("b", scope=bob))
    recent.forget(ANA.owner, day(2))
    recent.forget(ANA.owner, day(1))
    recent.remember(said("after"), at_place(5))
    assert texts(recent, before(9)) == ["after"]
    assert texts(recent, before(9, scope=bob)) == ["b"]
    assert (recent.deleted_at(ANA.owner), recent.deleted_at(bob.owner)) == (day(2), None)


def test_little_is_remembered_of_many_owners_and_of_one() -> None:
    recent = remembering(*(said(f"t{number}") for number in range(MAX_TURNS + 5)))
    assert texts(recent, before(99))[0] == "t5"
    for offset in range(200, 210):
        recent.remember(said(f"long{offset}", "x" * 5000), at_place(offset))
    assert 0 < sum(map(len, texts(recent, before(999)))) <= MAX_OWNER_CHARACTERS
    for number in range(MAX_OWNERS):
        recent.remember(said("t", scope=Scope(user_id=f"u{number}")), at_place(0))
    assert texts(recent, before(999)) == []
