"""The methods of the client that change facts: update, delete, confirm, reject, correct, resolve, promote."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import EllipsisType
from typing import Any, Final, Literal, Unpack, overload

from mnemolog.client.base import checked
from mnemolog.client.commands import CommandBase
from mnemolog.client.inputs.arguments import CommandArgs
from mnemolog.client.inputs.checks import Wait, When
from mnemolog.client.inputs.fact_ids import FactId, FactIds, as_edit, as_edits, as_ids
from mnemolog.client.inputs.record_builder import PLACEHOLDER_SCOPE, build_command, exact_scope
from mnemolog.client.receipts import CommandReceipt
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.command import Edit, ResolveAction
from mnemolog.schemas.filters.model import parse_filter, written_filter
from mnemolog.schemas.scope import SCOPE_FIELDS

_PLACEHOLDER_RUN: Final = {"user_id": PLACEHOLDER_SCOPE.user_id, "run_id": "any run"}
"""Stands for the scope of the facts while that is not known."""


@checked(InvalidCommandError)
class FactCommandMixin(CommandBase):
    """Commands about facts. Whose they are need not be named; a user_id that is named must be theirs.

    Every method returns once the broker has the command for good; with `wait` (True or seconds) it returns the result.
    It raises `InvalidCommandError`, `UnknownFactError` or `AmbiguousIdError` before anything is sent, and
    `PublishError` when no acknowledgement came in time: send the command again with the same `command_id`. What cannot
    be carried out ends as `rejected`, as a whole, with the reason; facts of other scopes are never touched.
    Every method takes the arguments of `CommandArgs` too: tenant, user_id, agent_id, app_id, run_id, actor, command_id.
    """

    @overload
    async def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    async def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult:
        """Replace the text of a fact from now on. A fact that a human corrected is changed by `correct` alone.

        Its key stays unless given. Without `value` its value is read from the new text where the two texts differ in
        the value alone, and cleared where that is not clear; None clears it.
        """
        return await self._issue("update", arguments, wait, edits=[as_edit(fact_id, text, key, value)])

    @overload
    async def batch_update(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def batch_update(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    async def batch_update(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Update up to 100 facts of a scope, all or none.

        An edit has fact_id, text, and perhaps key and value, as in `update`.
        """
        return await self._issue("update", arguments, wait, edits=as_edits(edits))

    @overload
    async def delete(
        self, fact_id: FactId, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def delete(self, fact_id: FactId, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    async def delete(
        self, fact_id: FactId, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Delete a fact. The history keeps it, and `undo` restores it."""
        return await self._issue("delete", arguments, wait, fact_ids=[fact_id])

    @overload
    async def batch_delete(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def batch_delete(
        self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    async def batch_delete(
        self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Delete up to 100 facts of a scope, all or none."""
        return await self._issue("delete", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @overload
    async def confirm(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def confirm(self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    async def confirm(
        self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Confirm pending facts and apply the changes they were held back from."""
        return await self._issue("confirm", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @overload
    async def reject(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def reject(self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    async def reject(
        self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Reject pending facts; the known facts stay active."""
        return await self._issue("reject", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @overload
    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        true_from: When | None = ...,
        ended_at: When | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        true_from: When | None = ...,
        ended_at: When | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        true_from: When | None = None,
        ended_at: When | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult:
        """Correct a fact; only a human can change it afterwards.

        The old one never was true, or, where `ended_at` is given, was true until then. Key and value as in `update`.
        The new one is true since `true_from`; without it since the old one was, or since the date that its text has in
        the place of another one. What the old one had ended, ends with the beginning of the new one.
        """
        edit = as_edit(fact_id, text, key, value) | ({} if true_from is None else {"true_from": true_from})
        return await self._issue("correct", arguments, wait, edit=edit, ended_at=ended_at)

    @overload
    async def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = ...,
        text: str | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = ...,
        text: str | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    async def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = (),
        text: str | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult:
        """Resolve the conflict of an unresolved fact with `targets`, by default all that it was added beside.

        `text` is the merged text of a `merge`, and of nothing else.
        """
        beside = as_ids("targets", targets)
        return await self._issue("resolve", arguments, wait, fact_id=fact_id, action=action, targets=beside, text=text)

    @overload
    async def promote(
        self,
        fact_ids: FactIds = ...,
        *,
        turn_id: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        into: Mapping[str, str | None] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def promote(
        self,
        fact_ids: FactIds = ...,
        *,
        turn_id: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        into: Mapping[str, str | None] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    async def promote(
        self,
        fact_ids: FactIds = (),
        *,
        turn_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        into: Mapping[str, str | None] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult:
        """Have facts of a run decided in the scope of its user, like statements of a turn there.

        They are facts by their ids, those that a turn brought, those that a filter lets through, or all that are active
        in the run; the ids (user_id, run_id ...) are those of the run, or found by the facts or the turn. `into` names
        the ids in which the scope that they go to differs: it has no run_id unless given, and the same user.
        Both facts stay; what was promoted before is left out. A command takes up to 50 facts, and `notes` of its result
        name the command for the rest. `undo(turn_id=command_id)` takes back what one command did.
        """
        fields = {
            "source": _PLACEHOLDER_RUN,
            "fact_ids": as_ids("fact_ids", fact_ids),
            "source_id": turn_id,
            "filters": None if filters is None else written_filter(parse_filter(filters)),
        }
        located = await self._located(self._draft("promote", arguments, fields))
        source = exact_scope(located.scope_ids).model_dump()
        target = {**located.scope_ids, "run_id": None, **_ids_of(into)}
        draft = replace(located, scope_ids=target, payload={**located.payload, "source": source})
        return (await self._publish([build_command(draft)], wait))[0]


def _ids_of(into: Mapping[str, str | None] | None) -> Mapping[str, str | None]:
    """Raises `InvalidCommandError` for what names no id of a scope."""
    if into is not None and not set(into) <= set(SCOPE_FIELDS):
        raise InvalidCommandError(
            f"into must be ids of a scope ({', '.join(SCOPE_FIELDS)}), such as {{'agent_id': None}}"
        )
    return into or {}
