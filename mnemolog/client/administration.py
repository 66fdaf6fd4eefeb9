"""The methods of `memory.admin`: for those who run a memory, over all of a tenant."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from typing import IO, Any, ClassVar, Final, Unpack, cast
from uuid import UUID

from mnemolog.client.base import Blocking, Order, Read, checked_time
from mnemolog.client.commands import PLACEHOLDER_SCOPE, exact_scope
from mnemolog.client.files import ImportMixin
from mnemolog.client.inputs import (
    WHOLE_TENANT,
    CommandArgs,
    FactIds,
    ScopeArgs,
    Wait,
    When,
    as_ids,
    check_file,
    kind_of,
    names_owner,
    path_of,
    scope_and_filter,
    scope_filter,
    scope_ids,
    whole_id,
    wide_filter,
)
from mnemolog.client.search import SearchResult
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.context import Context, ContextFact
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.facts import IdCount, exported_lines, first_moments, named_ids
from mnemolog.projections.queries.ids import find_turn, short_ids
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, Result
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import Hit
from mnemolog.projections.stores.turns import fetch_policies
from mnemolog.schemas.command import TENANT_POLICY_AGENT, Edit
from mnemolog.schemas.filters import Filter, parse_filter, written_filter
from mnemolog.schemas.policy import Policy, StoredPolicies
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.turn import Turn

ShownFact = Hit | Fact | ContextFact | UUID | str
_PLACEHOLDER_RUN: Final = {"user_id": PLACEHOLDER_SCOPE.user_id, "run_id": "any run"}
"""Stands for the scope of the facts of a promotion while the tables have not been asked for it."""
Shown = SearchResult | Context | Iterable[ShownFact] | ShownFact
"""What was shown or used: a result, a fact or a whole id, or several of these."""


class AdminMethods(ImportMixin):
    """Who is remembered, policies, changes in bulk, export and import, figures, failed turns, and ids."""

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

    @Order
    async def update_many(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> Result:
        """Update up to 100 facts of a scope, all or none.

        An edit has fact_id, text, and perhaps key, value, categories and metadata, as in `update`.
        """
        given: object = edits
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise InvalidCommandError(f"edits must be a list of edits with fact_id and text, not {kind_of(given)}")
        read = []
        for number, one in enumerate(given):
            if not isinstance(one, Edit | Mapping):
                raise InvalidCommandError(f"edits.{number} must be an edit with fact_id and text, not {kind_of(one)}")
            fields = one.model_dump(exclude_unset=True) if isinstance(one, Edit) else dict(one)
            if "value" in fields and fields["value"] is None:
                fields["value"] = ""  # cleared; a command without it has none
            read.append(fields)
        return await self._issue("update", arguments, wait, edits=read)

    @Order
    async def promote(
        self,
        fact_ids: FactIds = (),
        *,
        turn_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        into: Mapping[str, str | None] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
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
        given: object = into
        if given is not None and not (isinstance(given, Mapping) and set(given) <= set(SCOPE_FIELDS)):
            known = ", ".join(SCOPE_FIELDS)
            raise InvalidCommandError(f"into must be ids of a scope ({known}), such as {{'agent_id': None}}")
        target = {**located.scope_ids, "run_id": None, **(into or {})}
        draft = replace(located, scope_ids=target, payload={**located.payload, "source": source})
        return await self._publish_one(draft, wait)

    @Order
    async def feedback(
        self,
        shown: Shown,
        *,
        used: Shown,
        query: str | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Say which of the facts that a search or a context showed were used, so that `quality` can tell hit rates.

        `shown` is the result of `search` or `context`, or facts or whole ids in the order shown; `used` are facts or
        whole ids, also such as were not shown: those were missed. It is no evidence and changes no fact. The scope need
        not be named where `shown` is a result, or has hits or facts.
        """
        ids, scope = read_shown("shown", shown)
        fields = {"shown": ids, "used": read_shown("used", used)[0], "query": query}
        if scope is not None and not names_owner(arguments):
            arguments = cast("CommandArgs", {**scope.model_dump(), **arguments})
        return await self._publish_one(self._draft("feedback", arguments, fields), wait)

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
        turn_id: str | None = None,
        reason: str | None = None,
        since: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here.

        Of this id, of one `reason` and with an end at or after `since`, where these are given. Dropped ones are not
        among them.
        """
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        from_then = None if since is None else checked_time(since)
        return await self._query(
            failed_turns, scope_filter(wide), limit=limit, turn_id=turn_id, reason=reason, since=from_then
        )

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


def read_shown(name: str, given: Shown) -> tuple[list[UUID], Scope | None]:
    """The whole ids in what was shown, each once, in their order, and the scope of the first one that is a fact.

    Raises `InvalidCommandError` that names the place of a wrong item.
    """
    shown: object = [given] if isinstance(given, ShownFact) else given
    shown = shown.facts if isinstance(shown, Context) else shown
    if isinstance(shown, bytes | Mapping) or not isinstance(shown, Iterable):
        raise InvalidCommandError(f"{name} must be a result, facts or whole ids, not {kind_of(given)}")
    found: dict[UUID, None] = {}
    scope = None
    for place, one in enumerate(shown):
        item = one.fact if isinstance(one, Hit) else one
        fact_id = whole_id(item) if isinstance(item, UUID | str) else None
        if isinstance(item, Fact | ContextFact):
            fact_id, scope = item.fact_id, scope or item.scope
        if fact_id is None:
            raise InvalidCommandError(f"{name}.{place} must be a fact or its whole id (32 hex digits)")
        found[fact_id] = None
    return list(found), scope
