"""The methods of the client that change a whole scope, and how every command is published."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Literal, Unpack, cast, overload

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import CommandArgs, ScopeArgs, scope_ids
from mnemolog.client.inputs.checks import Wait, When
from mnemolog.client.inputs.fact_ids import FactId
from mnemolog.client.inputs.feedback import Shown, all_shown, scope_of_shown, shown_ids
from mnemolog.client.inputs.record_builder import (
    PLACEHOLDER_SCOPE,
    CommandDraft,
    build_command,
    exact_scope,
    names_owner,
)
from mnemolog.client.inputs.scopes import scope_and_filter
from mnemolog.client.owners import OwnerLookup
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.receipts import CommandReceipt
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.scope_filter import ScopeFilter, matching_scopes
from mnemolog.projections.stores.policies import fetch_policies
from mnemolog.schemas.admission import RESERVED_ID
from mnemolog.schemas.command import TENANT_POLICY_AGENT, Command, DeleteAll, Undo
from mnemolog.schemas.filters.model import written_filter
from mnemolog.schemas.ids import is_follow_up_id
from mnemolog.schemas.policy import Policy, StoredPolicies
from mnemolog.schemas.scope import SCOPE_FIELDS


class CommandBase(OwnerLookup):
    """Publishes commands in order with the turns of their owner, and waits for their ends on request."""

    async def _issue(
        self, kind: str, arguments: CommandArgs, wait: float, **fields: Any
    ) -> CommandReceipt | WriteResult:
        """One command about the facts, event or turn in `fields`, in the scope that these have."""
        draft = self._draft(kind, arguments, fields)
        located = await self._located(draft)
        return (await self._publish([build_command(located)], wait))[0]

    async def _publish(self, commands: list[Command], wait: float) -> list[CommandReceipt] | list[WriteResult]:
        if wait:
            self._connections.read_pool()  # raises before anything is published where nothing says where Postgres is
        producer = await self._connections.producer()
        if len(commands) == 1:
            delivered = [await producer.publish(OutgoingRecord.of(commands[0]))]
        else:
            delivered = await producer.publish_batch(map(OutgoingRecord.of, commands))
        receipts = [
            CommandReceipt(
                command_id=one.command_id,
                tenant=one.scope.tenant,
                user_id=one.scope.user_id,
                agent_id=one.scope.agent_id,
                position=report.position,
            )
            for one, report in zip(commands, delivered, strict=True)
        ]
        return await self._wait_for_all(receipts, timeout_seconds=wait) if wait else receipts

    def _draft(self, kind: str, arguments: CommandArgs, fields: Mapping[str, Any]) -> CommandDraft:
        command_id = arguments.get("command_id") or self._new_id()
        if is_follow_up_id(str(command_id)):
            raise InvalidCommandError(f"command_id is {command_id!r:.300}: {RESERVED_ID}")
        return CommandDraft(
            command_id=command_id,
            scope_ids=scope_ids(arguments),
            issued_at=self._now(),
            payload={"kind": kind, **fields},
            actor=arguments.get("actor"),
        )


@checked(InvalidCommandError)
class ScopeCommandMixin(CommandBase):
    """Commands about whole scopes, and undo."""

    @overload
    async def delete_all(
        self,
        *,
        key: str | None = ...,
        category: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]: ...
    @overload
    async def delete_all(
        self,
        *,
        key: str | None = ...,
        category: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> list[WriteResult]: ...
    async def delete_all(
        self,
        *,
        key: str | None = None,
        category: str | None = None,
        filters: Mapping[str, Any] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt] | list[WriteResult]:
        """Delete every active or pending fact of a scope, or those of a key, a category or a filter.

        "*" stands for any value of an id, "**" also for none: then there is one command for each scope that the tables
        know now, in the list that is returned; with an exact scope it has one. Where no id is named, the filter says
        whose facts, as in `facts`. Which facts it lets through is decided where the command is carried out.
        """
        asked = {"key": key, "category": category}
        if filters is None:
            return await self._issue_for_scopes("delete_all", arguments, wait, **asked)
        within, wanted = scope_and_filter(arguments, filters)
        ids = {name: getattr(within, name) for name in SCOPE_FIELDS}
        named = cast("CommandArgs", {**arguments, **ids})
        return await self._issue_for_scopes("delete_all", named, wait, **asked, filters=written_filter(wanted))

    @overload
    async def undo(
        self,
        *,
        event_id: FactId,
        cascade: bool = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def undo(
        self, *, event_id: FactId, cascade: bool = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    async def undo(
        self, *, turn_id: str, cascade: bool = ..., wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def undo(
        self, *, turn_id: str, cascade: bool = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    async def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: When,
        until: When,
        cascade: bool = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]: ...
    @overload
    async def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: When,
        until: When,
        cascade: bool = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> list[WriteResult]: ...
    async def undo(
        self,
        *,
        event_id: FactId | None = None,
        turn_id: str | None = None,
        model: str | None = None,
        prompt_version: str | None = None,
        since: When | None = None,
        until: When | None = None,
        cascade: bool = False,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult | list[CommandReceipt] | list[WriteResult]:
        """Undo an event, a turn (or a command, by its command_id), or all that a model or prompt version decided.

        The latter from `since` up to `until`; there "*" and "**" are allowed, as in `delete_all`, and a list
        is returned. Where later decisions build on it the undo is rejected with their list, or with `cascade` undoes
        those too. An undo is undone by the id of its command. Whose event or turn it is need not be named.
        """
        aim: dict[str, Any] = {"event_id": event_id, "source_id": turn_id, "cascade": cascade}
        decided = {"model": model, "prompt_version": prompt_version, "since": since, "until": until}
        if event_id is None and turn_id is None:
            return await self._issue_for_scopes("undo", arguments, wait, **aim, **decided)
        return await self._issue("undo", arguments, wait, **aim, **decided)

    @overload
    async def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    async def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    async def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Set the policy of a scope, or of the whole tenant where neither user nor agent is named.

        It replaces the policy of this level: rules that are not given are unset, and the level above decides.
        """
        level = "scope" if names_owner(arguments) else "tenant"
        named: CommandArgs = {**arguments, "agent_id": _policy_agent(arguments)}
        return await self._issue("set_policy", named, wait, level=level, policy=policy)

    @overload
    async def feedback(
        self,
        shown: Shown,
        *,
        used: Shown,
        query: str | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt: ...
    @overload
    async def feedback(
        self, shown: Shown, *, used: Shown, query: str | None = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    async def feedback(
        self,
        shown: Shown,
        *,
        used: Shown,
        query: str | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt | WriteResult:
        """Say which of the facts that a search or a context showed were used, so that `quality` can tell hit rates.

        `shown` is the result of `search` or `context`, or facts or whole ids in the order shown; `used` are facts or
        whole ids, also such as were not shown: those were missed. It is no evidence and changes no fact. The scope need
        not be named where `shown` is a result, or has hits or facts.
        """
        given = all_shown("shown", shown)
        named: CommandArgs = {**scope_of_shown(given, arguments), **arguments}
        fields = {"shown": shown_ids("shown", given), "used": shown_ids("used", used), "query": query}
        return (await self._publish([build_command(self._draft("feedback", named, fields))], wait))[0]

    @overload
    async def end_session(self, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]) -> CommandReceipt: ...
    @overload
    async def end_session(self, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    async def end_session(
        self, *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt | WriteResult:
        """Say that a session of this scope has ended: what its turns until now have changed is published.

        It matters where a policy has `publish_profile` "session_end" or "every_turns": `profile` then shows what was
        known when it was last published.
        """
        return (await self._publish([build_command(self._draft("end_session", arguments, {}))], wait))[0]

    async def policies(self, **scope_args: Unpack[ScopeArgs]) -> StoredPolicies:
        """What has been set for a tenant, and for a scope where a user or an agent is named."""
        named: ScopeArgs = {**scope_args, "agent_id": _policy_agent(scope_args)}
        return await self._query(fetch_policies, exact_scope(scope_ids(named)))

    async def _issue_for_scopes(
        self, kind: str, arguments: CommandArgs, wait: float, **fields: Any
    ) -> list[CommandReceipt] | list[WriteResult]:
        draft = self._draft(kind, arguments, fields)
        if not draft.has_wildcard:
            return await self._publish([build_command(draft)], wait)
        receipts = list[CommandReceipt]()
        # Validated with any scope before the tables are asked for the real ones.
        payload = build_command(draft.for_scope(PLACEHOLDER_SCOPE)).order
        if not isinstance(payload, DeleteAll | Undo):
            raise InvalidCommandError(f"{payload.kind} takes one exact scope, without '*' or '**'")
        async with (
            self._connections.read_pool().connection() as connection,
            aclosing(matching_scopes(connection, payload, ScopeFilter(**scope_ids(draft.scope_ids)))) as pages,
        ):
            async for scopes in pages:
                commands = [build_command(draft.for_scope(scope)) for scope in scopes]
                receipts += cast("list[CommandReceipt]", await self._publish(commands, 0))
        return await self._wait_for_all(receipts, timeout_seconds=wait) if wait else receipts


def _policy_agent(scope_args: ScopeArgs) -> str | None:
    """The agent in whose scope a policy is set: one of its own for that of a whole tenant."""
    if names_owner(scope_args):
        return scope_args.get("agent_id")
    if scope_args.get("app_id") is not None or scope_args.get("run_id") is not None:
        raise InvalidCommandError("a policy is for a tenant, or for a scope with a user_id or an agent_id: name one")
    return TENANT_POLICY_AGENT
