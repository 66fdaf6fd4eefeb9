"""The methods of the client that change many facts, in as many commands as that takes."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, Literal, TypeVar, Unpack, cast, overload

import orjson

from mnemolog.client.base import checked
from mnemolog.client.commands import CommandBase
from mnemolog.client.inputs.arguments import CommandArgs
from mnemolog.client.inputs.checks import Wait
from mnemolog.client.inputs.record_builder import CommandDraft, build_command
from mnemolog.client.inputs.scopes import scope_and_filter
from mnemolog.client.queries.arguments import wide_filter
from mnemolog.client.receipts import CommandReceipt
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.results import Fact, WriteResult
from mnemolog.projections.queries.scope_filter import DeletionShare, deletion_shares
from mnemolog.schemas.admission import MAX_COMMAND_BYTES
from mnemolog.schemas.command import MAX_COMMAND_TEXT

T = TypeVar("T")
RESET_SHARE: Final = 1000
"""How many facts a command of `reset` is for: one command may delete 2 000, and more may come until then."""
RESET_BATCH: Final = 500
"""How many of its commands are on their way at a time."""
EDITS: Final = 25
EDIT_BYTES: Final = MAX_COMMAND_BYTES // 2
"""Of one command. Its commit has each new text several times and its vector, of up to 11 kB, in a megabyte."""


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
        names some facts of one scope, and is rejected where one of them has changed until then: call it again. Raises
        `InvalidCommandError` that names a fact whose text would be empty or too long; then nothing is sent.
        """
        if not old:
            raise InvalidCommandError("old is empty: give the part of the texts that is to be replaced")
        if old == new:
            raise InvalidCommandError("old and new are the same: give the text that is to stand in its place")
        within, wanted = scope_and_filter(arguments, filters)
        listed = await self._query(facts, within, wanted, at=self._now())
        changed = [
            fact for fact in listed if old in fact.text and fact.status == "active" and fact.authority != "human"
        ]
        draft = self._draft("update", arguments, {})
        commands = [build_command(one) for one in _drafts(draft, changed, old, new)]
        return await self._publish(commands, wait)


@checked(InvalidCommandError)
class ResetMixin(CommandBase):
    """The deletion of all that is known."""

    @overload
    async def reset(
        self, *, confirm: str, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> list[CommandReceipt]: ...
    @overload
    async def reset(self, *, confirm: str, wait: float, **arguments: Unpack[CommandArgs]) -> list[WriteResult]: ...
    async def reset(
        self, *, confirm: str, wait: Wait = False, **arguments: Unpack[CommandArgs]
    ) -> list[CommandReceipt] | list[WriteResult]:
        """Delete all that is known of a tenant, or of the scopes that ids name; `confirm` repeats the tenant.

        An id that is not given is "**" here. There is a command for each scope, and several for one of more than
        1 000 facts. Nothing is known afterwards but what is still on its way or told later; history and log keep what
        was deleted, and `undo` of a command restores it.
        """
        within = wide_filter(arguments)
        if confirm != within.tenant:
            raise InvalidCommandError(
                f"confirm is {confirm!r}: repeat the tenant, {within.tenant!r}, of which all that matches is deleted"
            )
        draft, receipts = self._draft("delete_all", arguments, {}), list[CommandReceipt]()
        async with (
            self._connections.read_pool().connection() as connection,
            aclosing(deletion_shares(connection, within, most=RESET_SHARE)) as shares,
        ):
            async for batch in _batches(_numbered(shares), RESET_BATCH):
                commands = [build_command(_deletion(draft, *numbered)) for numbered in batch]
                receipts += cast("list[CommandReceipt]", await self._publish(commands, 0))
        return await self._wait_for_all(receipts, timeout_seconds=wait) if wait else receipts


async def _numbered(shares: AsyncIterable[DeletionShare]) -> AsyncIterator[tuple[DeletionShare, int, bool]]:
    """Each share with its number in its scope, and whether it is the last one there."""
    before: DeletionShare | None = None
    place = 0
    async for share in shares:
        if before is not None:
            is_same = before.scope == share.scope
            yield before, place, not is_same
            place = place + 1 if is_same else 0
        before = share
    if before is not None:
        yield before, place, True


def _deletion(draft: CommandDraft, share: DeletionShare, place: int, is_last: bool) -> CommandDraft:
    """The command that deletes a share: what is stored up to its time, and the last one all that is left.

    None leaves out what stands before it: a fact that has ended before would be active again without its ender.
    """
    times = {} if is_last else {"filters": {"created_at": {"lte": share.until}}}
    return replace(draft, payload={"kind": "delete_all", **times}).for_scope(share.scope, place)


async def _batches(items: AsyncIterable[T], size: int) -> AsyncIterator[list[T]]:
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _drafts(draft: CommandDraft, changed: Sequence[Fact], old: str, new: str) -> Iterator[CommandDraft]:
    in_order = sorted(changed, key=lambda fact: tuple(fact.scope.columns.values()))
    for scope, group in groupby(in_order, lambda fact: fact.scope):
        edits = ({"fact_id": fact.fact_id, "text": _new_text(fact, old, new)} for fact in group)
        for place, share in enumerate(_shares(edits)):
            yield replace(draft, payload={"kind": "update", "edits": share}).for_scope(scope, place)


def _new_text(fact: Fact, old: str, new: str) -> str:
    """The changed text. Raises `InvalidCommandError` for one that no update can have."""
    text = fact.text.replace(old, new)
    if not text.strip():
        fault = "would have no text"
    elif len(text) > MAX_COMMAND_TEXT:
        fault = f"would have {len(text)} characters, and an update takes {MAX_COMMAND_TEXT}"
    else:
        return text
    raise InvalidCommandError(f"{fact.fact_id} {fault}: leave it out by a filter; nothing was published")


def _shares(edits: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The edits in lists of at most `EDITS`, and of `EDIT_BYTES` as JSON; one edit is always smaller than that."""
    share: list[dict[str, Any]] = []
    used = 0
    for edit in edits:
        size = len(orjson.dumps(edit)) + 1
        if share and (len(share) == EDITS or used + size > EDIT_BYTES):
            yield share
            share, used = [], 0
        share.append(edit)
        used += size
    if share:
        yield share
