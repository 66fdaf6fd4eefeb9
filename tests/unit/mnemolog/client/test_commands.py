"""Methods that change memory: each publishes the command it says, or is refused with the field and the remedy."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mnemolog.client import commands
from mnemolog.client.commands import CommandDraft, build_command
from mnemolog.client.inputs import ScopeArgs
from mnemolog.errors import InvalidCommandError
from mnemolog.schemas.admission import source_kind
from mnemolog.schemas.command import (
    TENANT_POLICY_AGENT,
    Command,
    CommandPayload,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    EndSession,
    Feedback,
    Promote,
    Reject,
    Resolve,
    SetPolicy,
    Undo,
    Update,
)
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.policy import Limits, Policy
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.offline_client import AT, OfflineClient

F1, F2 = UUID(int=1), UUID(int=2)
EDIT = Edit(fact_id=F1, text="Mira lives in Bern.")


Call = Callable[[OfflineClient], Awaitable[Any]]
CALLS: dict[str, tuple[Call, CommandPayload]] = {
    "update": (lambda c: c.update(F1, EDIT.text, user_id="mira"), Update(edits=(EDIT,))),
    "update_many": (lambda c: c.admin.update_many([EDIT, {"fact_id": str(F2), "text": "b"}], user_id="mira"),
                     Update(edits=(EDIT, Edit(fact_id=F2, text="b")))),
    "delete": (lambda c: c.delete(str(F1), user_id="mira"), Delete(fact_ids=(F1,))),
    "delete several": (lambda c: c.delete([F1, F2], user_id="mira"), Delete(fact_ids=(F1, F2))),
    "delete_all": (lambda c: c.delete_all(key="home_city", user_id="mira"), DeleteAll(key="home_city")),
    "confirm": (lambda c: c.confirm(F1, user_id="mira"), Confirm(fact_ids=(F1,))),
    "reject": (lambda c: c.reject([F1, str(F2)], user_id="mira"), Reject(fact_ids=(F1, F2))),
    "correct": (lambda c: c.correct(F1, EDIT.text, ended_at=AT, user_id="mira"), Correct(edit=EDIT, ended_at=AT)),
    "resolve": (lambda c: c.resolve(F1, "merge", targets=F2, text="both", user_id="mira"),
                Resolve(fact_id=F1, action="merge", targets=(F2,), text="both")),
    "undo an event": (lambda c: c.undo(event_id=F1, user_id="mira"), Undo(event_id=F1)),
    "undo a turn": (lambda c: c.undo(turn_id="t1", cascade=True, user_id="mira"), Undo(source_id="t1", cascade=True)),
    "undo a model": (lambda c: c.undo(model="m", since=AT, until=AT + timedelta(days=1), user_id="mira"),
                     Undo(model="m", since=AT, until=AT + timedelta(days=1))),
    "feedback": (lambda c: c.admin.feedback([F1, str(F2)], used=F2, query="Where?", user_id="mira"),
                 Feedback(shown=(F1, F2), used=(F2,), query="Where?")),
    "promote": (lambda c: c.admin.promote([F1, str(F2)], user_id="mira", run_id="r2"),
                Promote(source=Scope(user_id="mira", run_id="r2"), fact_ids=(F1, F2))),
    "end_session": (lambda c: c.end_session(user_id="mira"), EndSession()),
    "set_policy": (lambda c: c.admin.set_policy(Policy(add_only=True), user_id="mira"),
                   SetPolicy(level="scope", policy=Policy(add_only=True))),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_becomes_one_command_among_the_turns(name: str) -> None:
    client, (call, order) = OfflineClient(), CALLS[name]
    sent = await call(client)
    assert (sent.turn_id, sent.status, sent.source_kind, sent.order) == ("c1", "pending", "command", order.kind)
    (command,) = client.commands
    assert command == Command(command_id="c1", scope=Scope(user_id="mira"), issued_at=AT, order=order)
    (letter,) = client.producer.records
    assert (letter.kind, letter.name, letter.key) == ("command", "c1", b"default/mira")
    assert source_kind(letter.value) == "command"


@pytest.mark.parametrize(
    ("given", "sent"), [({}, None), ({"value": None}, ""), ({"value": ""}, ""), ({"value": "Bern"}, "Bern")]
)
async def test_a_value_that_is_not_given_is_read_from_the_text_and_none_clears_it(
    given: dict[str, Any], sent: str | None
) -> None:
    client = OfflineClient()
    await client.update(F1, EDIT.text, **given, user_id="mira")
    await client.admin.update_many([{"fact_id": F1, "text": EDIT.text, **given}], user_id="mira")
    await client.admin.update_many([Edit(fact_id=F1, text=EDIT.text, **given)], user_id="mira")
    await client.correct(F1, EDIT.text, **given, user_id="mira")
    edit = Edit(fact_id=F1, text=EDIT.text, value=sent)
    updates: list[CommandPayload] = [Update(edits=(edit,))] * 3
    assert [command.order for command in client.commands] == [*updates, Correct(edit=edit)]


async def test_scope_and_actor_are_in_the_command() -> None:
    client = OfflineClient()
    place: ScopeArgs = {"tenant": "acme", "user_id": "mira", "agent_id": "bot", "app_id": "chat", "run_id": "r1"}
    await client.delete(F1, **place, actor="support", command_id="own")
    (command,) = client.commands
    assert command.scope == Scope.model_validate(place)
    assert (command.actor, command.command_id) == ("support", "own")


@pytest.mark.parametrize(
    ("into", "ids"),
    [
        (None, {"agent_id": "bot", "app_id": "chat"}),
        ({"agent_id": None}, {"app_id": "chat"}),
        ({"run_id": "r3"}, {"agent_id": "bot", "app_id": "chat", "run_id": "r3"}),
    ],
)
async def test_facts_are_promoted_into_the_scope_without_the_run(into: Any, ids: dict[str, str]) -> None:
    client = OfflineClient()
    run: ScopeArgs = {"user_id": "mira", "agent_id": "bot", "app_id": "chat", "run_id": "r2"}
    await client.admin.promote(filters={"key": "pet"}, into=into, **run)
    (command,) = client.commands
    assert command.scope == Scope(user_id="mira", **ids)
    assert isinstance(command.order, Promote)
    assert command.order == Promote(source=Scope.model_validate(run), filters=parse_filter({"key": "pet"}))


async def test_a_policy_without_a_user_or_an_agent_is_the_tenants() -> None:
    client = OfflineClient()
    await client.admin.set_policy({"limits": {"active_facts": 100}}, tenant="acme")
    (command,) = client.commands
    assert command.scope == Scope(tenant="acme", agent_id=TENANT_POLICY_AGENT)
    assert command.order == SetPolicy(level="tenant", policy=Policy(limits=Limits(active_facts=100)))


async def test_a_command_for_many_scopes_has_one_stable_id_per_scope() -> None:
    draft = CommandDraft(command_id="c1", scope_ids={"user_id": "*"}, issued_at=AT, payload={"kind": "delete_all"})
    scopes = [Scope(user_id="mira"), Scope(user_id="mira", agent_id="bot"), Scope(user_id="jonas")]
    first, again = ([build_command(draft.for_scope(scope)) for scope in scopes] for _ in range(2))
    assert [command.scope for command in first] == scopes
    assert first == again
    assert len({command.command_id for command in first}) == len(scopes)
    assert all(command.command_id.startswith("c1/") for command in first)


BAD: dict[str, tuple[Callable[[Any], Awaitable[Any]], str]] = {
    "nobody": (lambda c: c.delete_all(), "give a user_id or an agent_id"),
    "anybody": (lambda c: c.delete(F1, user_id="*"), "one exact scope"),
    "an undo for anybody": (lambda c: c.undo(turn_id="t1", user_id="*"), "one exact scope"),
    "a user with a slash": (lambda c: c.delete(F1, user_id="/mira"), "user_id: .*does not begin with"),
    "no fact": (lambda c: c.delete([], user_id="mira"), "fact_ids must have at least 1 item"),
    "too many": (lambda c: c.delete([F1] * 101, user_id="mira"), "at most 100"),
    "no text": (lambda c: c.update(F1, "", user_id="mira"), "text must have at least 1 character"),
    "a wrong key": (lambda c: c.update(F1, "x", key="Home City", user_id="mira"), "key must be a name of small"),
    "a stray field": (lambda c: c.admin.update_many([{"id": F1, "text": "x"}], user_id="mira"), "fact_id is missing"),
    "a naive time": (lambda c: c.correct(F1, "x", ended_at=AT.replace(tzinfo=None), user_id="mira"),
                     "ended_at has no zone and needs one"),
    "no merged text": (lambda c: c.resolve(F1, "merge", user_id="mira"), "a merge, and nothing else"),
    "an unknown limit": (lambda c: c.admin.set_policy({"limits": {"facts": 1}}, user_id="mira"),
                         "limits.facts is not a known field.*; limits are active_facts, turns_per_minute"),
    "a topic without a name": (
        lambda c: c.admin.set_policy({"instructions": {"never_store": ["health"]}}, user_id="mira"),
        "never_store.0 must be an object.*; instructions have text.*one of never_store name, description, words"),
    "no run": (lambda c: c.admin.promote(F1, user_id="mira"), "into another scope of the same user.*: name the run"),
    "another user": (lambda c: c.admin.promote(F1, into={"user_id": "jonas"}, user_id="mira", run_id="r2"),
                     "another scope of the same user"),
    "no id of a scope": (lambda c: c.admin.promote(F1, into={"user": "mira"}, user_id="mira", run_id="r2"),
                         "into must be ids of a scope"),
    "two selections": (lambda c: c.admin.promote(F1, filters={"key": "pet"}, user_id="mira"), "promote one of"),
    "an id of a promotion": (lambda c: c.admin.promote([F1], user_id="mira", run_id="r1", command_id="promote/t1"),
                             "command_id is 'promote/t1': .* choose another"),
    "half a scope": (lambda c: c.admin.set_policy(Policy(), app_id="chat"), "user_id or an agent_id"),
    "no plain value": (lambda c: c.admin.set_policy({"note": object()}, user_id="mira"), "cannot be written as JSON"),
    "half an emoji": (lambda c: c.update(F1, "\ud83d", user_id="mira"), "unpaired surrogate"),
    "too large": (lambda c: c.admin.update_many([{"fact_id": F1, "text": "x" * 8000}] * 100, user_id="mira"),
                  "oversize: .*fewer items"),
    "a part of a turn": (lambda c: c.undo(turn_id="t1", since=AT, user_id="mira"), "whole: leave out since and until"),
    "a part of an event": (lambda c: c.undo(event_id=F1, until=AT, user_id="mira"), "whole: leave out since and until"),
    "an undo of nothing": (lambda c: c.undo(user_id="mira"), r"^invalid_command: undo: (undo one|what a model)"),
    "an undo of two things": (lambda c: c.undo(event_id=F1, turn_id="t1", user_id="mira"),
                              r"^invalid_command: undo: (undo one|what a model)"),
    "a model at any time": (lambda c: c.undo(model="m", user_id="mira"),
                            r"^invalid_command: undo: (undo one|what a model)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
async def test_an_invalid_command_is_refused_before_anything_is_sent(name: str) -> None:
    client, (call, words) = OfflineClient(), BAD[name]
    with pytest.raises(InvalidCommandError, match=words) as caught:
        await call(client)
    assert client.producer.records == []
    assert not [inner for inner in ("Value error", "order.", "Assertion") if inner in str(caught.value)]


async def test_a_text_of_the_caller_that_resembles_inner_words_is_left_as_it_is() -> None:
    client: Any = OfflineClient()
    with pytest.raises(InvalidCommandError, match=r"order\.undo"):
        await client.admin.set_policy({"order.undo": 1}, user_id="mira")


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
    sent = await client.delete_all(user_id="*", run_id="*")
    assert (sent.turn_id, sent.status, sent.order) == ("c1", "pending", "delete_all")
    assert len({part.turn_id for part in sent.parts}) == len(client.producer.records) == read == 1000
