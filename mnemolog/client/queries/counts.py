"""The methods of the client that count facts, list whose they are, and write them into a file."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from os import PathLike
from typing import IO, Any, Unpack

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.inputs.files import check_file, path_of
from mnemolog.client.inputs.scopes import scope_and_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader, wide_filter
from mnemolog.projections.lists.counts import IdCount, count_facts, named_ids
from mnemolog.projections.lists.export import exported_lines
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters.model import Filter


@measured
@checked(QueryError)
class CountQueryMixin(FactIdReader):
    """How many facts there are, and of whom. No method needs Kafka."""

    async def count(
        self, *, all_versions: bool = False, filters: Mapping[str, Any] | None = None, **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""
        within, wanted = scope_and_filter(scope, filters)
        return await self._query(count_facts, within, wanted, all_versions=all_versions, at=self._now())

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

    async def users(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The users of the tenant of whom something is known, each with the number of active and pending facts.

        In order of their ids: all, or `limit` of them, from the first or from the one that follows the id `after`. An
        id that is not given is "**" here: with `agent_id="bot"` they are the users of this agent.
        """
        return await self._query(named_ids, "user_id", wide_filter(scope), limit=limit, after=after)

    async def agents(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The agents, as `users` lists users."""
        return await self._query(named_ids, "agent_id", wide_filter(scope), limit=limit, after=after)

    async def runs(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The runs, as `users` lists users: with `user_id="alice"` those of Alice."""
        return await self._query(named_ids, "run_id", wide_filter(scope), limit=limit, after=after)
