"""The methods of the client that change memory: each publishes one command, or one for each scope."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Any, Literal, Unpack, overload

from mnemolog.client.arguments import CommandArgs, ScopeArgs, scope_ids
from mnemolog.client.base import ClientBase, scoped
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.record_builder import CommandDraft, FactId, FactIds, as_list, build_command, exact_scope
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.scope_filter import ScopeFilter, matching_scopes
from mnemolog.projections.stores.policies import fetch_policies
from mnemolog.schemas.command import TENANT_POLICY_AGENT, Command, DeleteAll, Edit, ResolveAction, Undo
from mnemolog.schemas.policy import Policy, StoredPolicies
from mnemolog.schemas.scope import Scope

PLACEHOLDER_SCOPE = Scope(user_id="anybody")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReceipt:
    """A command that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    command_id: str
    status: Literal["pending"] = "pending"


class CommandMixin(ClientBase):
    """Commands to the pipeline, in order with the turns of their owner.

    Every method returns once the broker has the command for good. It raises `InvalidCommandError` before anything is
    sent, and `PublishError` when no acknowledgement came in time: send the command again with the same `command_id`.
    What cannot be carried out ends as `rejected`, as a whole, with the reason; facts of other scopes are never touched.
    Every method takes the arguments of `CommandArgs` too: tenant, user_id, agent_id, app_id, run_id, actor, command_id.
    """

    @scoped
    async def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Replace the text of a fact from now on. A fact that a human corrected is changed by `correct` alone.

        Its key stays unless given. Without `value` its value is read from the new text where the two texts differ in
        the value alone, and cleared where that is not clear; None clears it.
        """
        return await self.batch_update([_edit(fact_id, text, key, value)], **arguments)

    @scoped
    async def batch_update(
        self, edits: Sequence[Edit | Mapping[str, Any]], **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Update up to 100 facts at once, all or none.

        An edit has fact_id, text, and perhaps key and value, as in `update`.
        """
        return await self._issue("update", arguments, edits=[_with_cleared_value(edit) for edit in edits])

    @scoped
    async def delete(self, fact_id: FactId, **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Delete a fact. The history keeps it, and `undo` restores it."""
        return await self.batch_delete([fact_id], **arguments)

    @scoped
    async def batch_delete(self, fact_ids: Sequence[FactId], **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Delete up to 100 facts at once, all or none."""
        return await self._issue("delete", arguments, fact_ids=list(fact_ids))

    @scoped
    async def delete_all(
        self, *, key: str | None = None, category: str | None = None, **arguments: Unpack[CommandArgs]
    ) -> list[CommandReceipt]:
        """Delete every active or pending fact of a scope, or those of a key or category.

        "*" stands for any value of an id, "**" also for none: then there is one command for each scope that the tables
        know now, in the list that is returned; with an exact scope it has one.
        """
        return await self._issue_for_scopes("delete_all", arguments, key=key, category=category)

    @scoped
    async def confirm(self, fact_ids: FactIds, **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Confirm pending facts and apply the changes they were held back from."""
        return await self._issue("confirm", arguments, fact_ids=as_list(fact_ids))

    @scoped
    async def reject(self, fact_ids: FactIds, **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Reject pending facts; the known facts stay active."""
        return await self._issue("reject", arguments, fact_ids=as_list(fact_ids))

    @scoped
    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        ended_at: datetime | None = None,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Correct a fact; only a human can change it afterwards.

        The old one never was true, or, where `ended_at` is given, was true until then. Key and value as in `update`.
        """
        edit = _with_cleared_value(_edit(fact_id, text, key, value))
        return await self._issue("correct", arguments, edit=edit, ended_at=ended_at)

    @scoped
    async def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = (),
        text: str | None = None,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Resolve the conflict of an unresolved fact with `targets`, by default all that it was added beside.

        `text` is the merged text of a `merge`, and of nothing else.
        """
        return await self._issue(
            "resolve", arguments, fact_id=fact_id, action=action, targets=as_list(targets), text=text
        )

    @overload
    async def undo(
        self, *, event_id: FactId, cascade: bool = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def undo(self, *, turn_id: str, cascade: bool = ..., **arguments: Unpack[CommandArgs]) -> CommandReceipt: ...
    @overload
    async def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: datetime,
        until: datetime,
        cascade: bool = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]: ...
    @scoped  # type: ignore[misc]  # mypy has no overloads of a decorated method
    async def undo(
        self,
        *,
        event_id: FactId | None = None,
        turn_id: str | None = None,
        model: str | None = None,
        prompt_version: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cascade: bool = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | list[CommandReceipt]:
        """Undo an event, a turn (or a command, by its command_id), or all that a model or prompt version decided.

        The latter from `since` up to `until`; there "*" and "**" are allowed, as in `delete_all`, and a list
        is returned. Where later decisions build on it the undo is rejected with their list, or with `cascade` undoes
        those too. An undo is undone by the id of its command.
        """
        aim: dict[str, Any] = {"event_id": event_id, "source_id": turn_id, "cascade": cascade}
        decided = {"model": model, "prompt_version": prompt_version, "since": since, "until": until}
        if event_id is None and turn_id is None:
            return await self._issue_for_scopes("undo", arguments, **aim, **decided)
        return await self._issue("undo", arguments, **aim, **decided)

    @scoped
    async def set_policy(self, policy: Policy | Mapping[str, Any], **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Set the policy of a scope, or of the whole tenant where neither user nor agent is named.

        It replaces the policy of this level: rules that are not given are unset, and the level above decides.
        """
        level = "scope" if _names_owner(arguments) else "tenant"
        named: CommandArgs = {**arguments, "agent_id": _policy_agent(arguments)}
        return await self._issue("set_policy", named, level=level, policy=policy)

    @scoped
    async def policies(self, **scope_args: Unpack[ScopeArgs]) -> StoredPolicies:
        """What has been set for a tenant, and for a scope where a user or an agent is named."""
        named: ScopeArgs = {**scope_args, "agent_id": _policy_agent(scope_args)}
        return await self._query(fetch_policies, exact_scope(scope_ids(named)))

    async def _issue(self, kind: str, arguments: CommandArgs, **fields: Any) -> CommandReceipt:
        command = build_command(self._draft(kind, arguments, fields))
        producer = await self._connections.producer()
        await producer.publish(OutgoingRecord.of(command))
        return CommandReceipt(command_id=command.command_id)

    async def _issue_for_scopes(self, kind: str, arguments: CommandArgs, **fields: Any) -> list[CommandReceipt]:
        draft = self._draft(kind, arguments, fields)
        commands = await self._commands_per_scope(draft) if draft.has_wildcard else [build_command(draft)]
        producer = await self._connections.producer()
        names = await producer.publish_batch(map(OutgoingRecord.of, commands))
        return [CommandReceipt(command_id=name) for name in names]

    async def _commands_per_scope(self, draft: CommandDraft) -> list[Command]:
        # Validated with any scope before the tables are asked for the real ones.
        payload = build_command(draft.for_scope(PLACEHOLDER_SCOPE)).order
        if not isinstance(payload, DeleteAll | Undo):
            raise InvalidCommandError(f"{payload.kind} takes one exact scope, without '*' or '**'")
        scopes = await self._query(matching_scopes, payload, ScopeFilter(**scope_ids(draft.scope_ids)))
        return [build_command(draft.for_scope(scope)) for scope in scopes]

    def _draft(self, kind: str, arguments: CommandArgs, fields: Mapping[str, Any]) -> CommandDraft:
        return CommandDraft(
            command_id=arguments.get("command_id") or self._new_id(),
            scope_ids=scope_ids(arguments),
            issued_at=self._now(),
            payload={"kind": kind, **fields},
            actor=arguments.get("actor"),
        )


def _edit(fact_id: FactId, text: str, key: str | None, value: str | EllipsisType | None) -> dict[str, Any]:
    return {"fact_id": fact_id, "text": text, "key": key, **({} if value is ... else {"value": value})}


def _with_cleared_value(edit: Edit | Mapping[str, Any]) -> Edit | Mapping[str, Any]:
    """The edit as a command has it: there a value that is cleared is empty, and none is one that was not given."""
    given = edit.model_dump(exclude_unset=True) if isinstance(edit, Edit) else edit
    return {**given, "value": ""} if "value" in given and given["value"] is None else edit


def _names_owner(scope_args: ScopeArgs) -> bool:
    return scope_args.get("user_id") is not None or scope_args.get("agent_id") is not None


def _policy_agent(scope_args: ScopeArgs) -> str | None:
    """The agent in whose scope a policy is set: one of its own for that of a whole tenant."""
    if _names_owner(scope_args):
        return scope_args.get("agent_id")
    if scope_args.get("app_id") is not None or scope_args.get("run_id") is not None:
        raise InvalidCommandError("a policy is for a tenant, or for a scope with a user_id or an agent_id: name one")
    return TENANT_POLICY_AGENT
