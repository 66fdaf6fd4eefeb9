"""The method of the client that changes the texts of many facts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, Unpack, overload

from mnemolog.client.base import checked
from mnemolog.client.commands import CommandBase
from mnemolog.client.inputs.arguments import CommandArgs
from mnemolog.client.inputs.checks import Wait
from mnemolog.client.inputs.record_builder import CommandDraft, build_command
from mnemolog.client.inputs.scopes import scope_and_filter
from mnemolog.client.receipts import CommandReceipt
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.results import Fact, WriteResult
from mnemolog.schemas.command import MAX_ITEMS


@checked(InvalidCommandError)
class TextEditMixin(CommandBase):
    """Texts of all facts that a filter lets through."""

    @overload
    async def update_all(
        self,
        old: str,
        new: str,
        *,
        filters: Mapping[str, Any] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]: ...
    @overload
    async def update_all(
        self,
        old: str,
        new: str,
        *,
        filters: Mapping[str, Any] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> list[WriteResult]: ...
    async def update_all(
        self,
        old: str,
        new: str,
        *,
        filters: Mapping[str, Any] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt] | list[WriteResult]:
        """Put `new` in the place of `old` in the texts of a scope or a filter, from now on, as `update` does.

        The facts are those that `facts` of the same arguments lists now; a human's word is left as it is. Each command
        names up to 100 facts of one scope, and is rejected where one of them has changed until then: call it again.
        """
        if not old:
            raise InvalidCommandError("old is empty: give the part of the texts that is to be replaced")
        within, wanted = scope_and_filter(arguments, filters)
        listed = await self._query(facts, within, wanted, at=self._now())
        changed = [
            fact for fact in listed if old in fact.text and fact.status == "active" and fact.authority != "human"
        ]
        draft = self._draft("update", arguments, {})
        commands = [build_command(one) for one in _drafts(draft, changed, old, new)]
        return await self._publish(commands, wait)


def _drafts(draft: CommandDraft, changed: Sequence[Fact], old: str, new: str) -> Iterator[CommandDraft]:
    in_order = sorted(changed, key=lambda fact: tuple(fact.scope.columns.values()))
    for scope, group in groupby(in_order, lambda fact: fact.scope):
        edits = [{"fact_id": fact.fact_id, "text": fact.text.replace(old, new)} for fact in group]
        for place in range(0, len(edits), MAX_ITEMS):
            payload = {"kind": "update", "edits": edits[place : place + MAX_ITEMS]}
            yield replace(draft, payload=payload).for_scope(scope, place)
