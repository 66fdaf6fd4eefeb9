"""The methods of `memory.admin`: for those who run a memory, over all of a tenant."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from os import PathLike
from typing import IO, Any, ClassVar, Unpack
from uuid import UUID

from mnemolog.client.base import Blocking, Order, Read, checked_time
from mnemolog.client.commands import exact_scope
from mnemolog.client.files import ImportMixin
from mnemolog.client.inputs import (
    WHOLE_TENANT,
    CommandArgs,
    ScopeArgs,
    Wait,
    When,
    check_file,
    names_owner,
    path_of,
    scope_and_filter,
    scope_filter,
    scope_ids,
    wide_filter,
)
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.facts import IdCount, exported_lines, first_moments, named_ids
from mnemolog.projections.queries.ids import find_turn, short_ids
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.stores.turns import fetch_policies
from mnemolog.schemas.command import TENANT_POLICY_AGENT
from mnemolog.schemas.filters import Filter
from mnemolog.schemas.policy import Policy, StoredPolicies
from mnemolog.schemas.turn import Turn


class AdminMethods(ImportMixin):
    """Who is remembered, policies, export and import, figures, failed turns, and ids."""

    _namespace: ClassVar[str] = "admin."

    @Read
    async def users(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The users of the tenant of whom something is known, each with the number of active and pending facts.

        In order of their ids: all, or `limit` of them, from the first or from the one that follows the id `after`. An
        id that is not given is "**" here: with `agent_id="bot"` they are the users of this agent.
        """
        return await self._query(named_ids, "user_id", wide_filter(scope), limit=limit, after=after)

    @Read
    async def agents(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The agents, as `users` lists users."""
        return await self._query(named_ids, "agent_id", wide_filter(scope), limit=limit, after=after)

    @Read
    async def runs(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The runs, as `users` lists users: with `user_id="alice"` those of Alice."""
        return await self._query(named_ids, "run_id", wide_filter(scope), limit=limit, after=after)

    @Order
    async def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> Result:
        """Set the policy of a scope, or of the whole tenant where neither user nor agent is named.

        It replaces the policy of this level: rules that are not given are unset, and the level above decides.
        """
        level = "scope" if names_owner(arguments) else "tenant"
        named: CommandArgs = {**arguments, "agent_id": _policy_agent(arguments)}
        return await self._issue("set_policy", named, wait, level=level, policy=policy)

    @Read
    async def policies(self, **scope_args: Unpack[ScopeArgs]) -> StoredPolicies:
        """What has been set for a tenant, and for a scope where a user or an agent is named."""
        named: ScopeArgs = {**scope_args, "agent_id": _policy_agent(scope_args)}
        return await self._query(fetch_policies, exact_scope(scope_ids(named)))

    @Read
    async def export(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> int:
        """Write what `facts` of the same arguments lists into a file: a line of JSON for each, as `to_dict` has it.

        Returns how many there are. They are read in batches, all as of one moment. A file that is named is there once
        it is whole; until then its name ends in `.part`. Raises `QueryError` where it cannot be written.
        """
        within, wanted = scope_and_filter(scope, filters)
        if not isinstance(file, str | PathLike):
            check_file(file, "write", QueryError)
            return await self._export(file, within, wanted, all_versions=all_versions)
        whole = path_of(file, QueryError)
        part = whole.with_name(f"{whole.name}.part")
        try:
            with part.open("wb") as stream:
                written = await self._export(stream, within, wanted, all_versions=all_versions)
            part.replace(whole)
        except OSError as error:
            raise QueryError(f"{whole} cannot be written ({error.strerror}): name a file that can be") from error
        return written

    async def _export(self, stream: IO[bytes], within: ScopeFilter, wanted: Filter, *, all_versions: bool) -> int:
        written = 0
        async with self._connections.read_pool().connection() as connection:
            found = exported_lines(connection, within, wanted, all_versions=all_versions, at=self._now())
            async with aclosing(found):
                async for lines in found:
                    await asyncio.to_thread(stream.write, b"".join(lines))
                    written += len(lines)
        return written

    @Read
    async def quality(
        self, since: When | None = None, until: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, what is pending, and what models cost.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """
        end = checked_time(until or self._now())
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(
            decision_quality,
            scope_filter(wide),
            checked_time(since or end - timedelta(days=30)),
            end,
            prices=self._prices,
        )

    @Read
    async def first_moments(self, **scope: Unpack[ScopeArgs]) -> tuple[datetime, datetime] | None:
        """When the first fact of a scope was learned, and since when the first one was true; None where none is."""
        return await self._query(first_moments, scope_filter(scope))

    @Read
    async def failed_turns(
        self,
        *,
        limit: int = 100,
        reason: str | None = None,
        since: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here.

        Of one `reason` and with an end at or after `since`, where these are given. Dropped ones are not among them.
        """
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        from_then = None if since is None else checked_time(since)
        return await self._query(failed_turns, scope_filter(wide), limit=limit, reason=reason, since=from_then)

    @Read
    async def received_turn(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""
        return await self._query(received_turn, tenant or "", turn_id, user_id)

    @Read
    async def short_ids(self, whole_ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""
        given: object = whole_ids
        if not (isinstance(given, Collection) and all(isinstance(one, UUID) for one in given)):
            raise QueryError("whole_ids must be a list of UUIDs: those of the facts or events to be shown")
        return await self._query(short_ids, whole_ids)

    @Read
    async def find_turn_id(self, beginning: str, *, user_id: str | None = None, tenant: str | None = None) -> str:
        """The whole id of the only turn or command whose id begins so (four characters or more), or is just this.

        Raises `UnknownTurnError`, `AmbiguousIdError` that names the candidates, and `AmbiguousTurnError`.
        """
        return (await self._query(find_turn, wide_filter({"tenant": tenant, "user_id": user_id}), beginning)).id


class Admin(Blocking, AdminMethods):
    """The methods of `memory.admin`."""


def _policy_agent(scope_args: ScopeArgs) -> str | None:
    """The agent in whose scope a policy is stored: the policy of a whole tenant has an agent of its own."""
    if names_owner(scope_args):
        return scope_args.get("agent_id")
    if scope_args.get("app_id") is not None or scope_args.get("run_id") is not None:
        raise InvalidCommandError("a policy is for a tenant, or for a scope with a user_id or an agent_id: name one")
    return TENANT_POLICY_AGENT
