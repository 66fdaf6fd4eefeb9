"""Commands: made of a caller's arguments, validated as the pipeline will, and published by the methods of the client.

Here are the commands about facts and whole scopes.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from types import EllipsisType
from typing import Any, Final, Unpack, cast

import orjson
from pydantic import BaseModel, ValidationError

from mnemolog.client.base import Order
from mnemolog.client.inputs import (
    NOBODY,
    CommandArgs,
    FactId,
    FactIds,
    Wait,
    When,
    as_id,
    as_ids,
    names_owner,
    scope_and_filter,
    scope_ids,
    whole_id,
    wide_filter,
)
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.results import ResultBase, published, summed_up
from mnemolog.errors import InvalidCommandError, NotConnectedError, QueryError, ServerUnavailableError, UnknownTurnError
from mnemolog.projections.errors import scope_in_words
from mnemolog.projections.queries.ids import find_event, find_facts, find_turn, first_id
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, WILDCARDS, ScopeFilter, matching_scopes
from mnemolog.schemas.admission import RESERVED_ID, Refusal, parse_command
from mnemolog.schemas.command import Command, DeleteAll, ResolveAction, Undo
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.filters import written_filter
from mnemolog.schemas.ids import is_follow_up_id
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from mnemolog.schemas.turn import Turn

PLACEHOLDER_SCOPE: Final = Scope.model_construct(user_id="anybody")
"""Stands for the scope of a command while it is not known, so that the rest can be validated."""
_DIGEST_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDraft:
    """The parts of a command; `payload` holds its own fields, its kind among them."""

    command_id: str
    scope_ids: Mapping[str, str | None]
    issued_at: datetime
    payload: Mapping[str, Any]
    actor: str | None = None

    @property
    def has_wildcard(self) -> bool:
        return not WILDCARDS.isdisjoint(self.scope_ids.values())

    def for_scope(self, scope: Scope) -> "CommandDraft":
        """The same command for one of the scopes that match, under an id that follows from both."""
        ids = {name: getattr(scope, name) for name in SCOPE_FIELDS}
        digest = hashlib.sha256(orjson.dumps(list(ids.values()))).hexdigest()[:_DIGEST_CHARACTERS]
        return replace(self, command_id=f"{self.command_id}/{digest}", scope_ids=ids)


def with_ids(draft: CommandDraft, change: Callable[[FactId], FactId]) -> CommandDraft:
    """The command with each id of a fact or event changed."""

    def changed(name: str, value: Any) -> Any:
        match name:
            case "fact_id":
                return change(as_id(name, value))
            case "event_id":
                return None if value is None else change(value)
            case "fact_ids" | "targets":
                return [change(one) for one in value]
            case "edit":
                return {field: changed(field, one) for field, one in value.items()}
            case "edits":
                return [changed("edit", one) for one in value]
        return value

    return replace(draft, payload=changed("edit", draft.payload))


def ids_in(draft: CommandDraft) -> Sequence[FactId]:
    """The ids of facts and of the event in a command, in their order."""
    found: list[FactId] = []

    def note(one: FactId) -> FactId:
        found.append(one)
        return one

    with_ids(draft, note)
    return found


def build_command(draft: CommandDraft) -> Command:
    """Make a command of `draft`. Raises `InvalidCommandError` that names the field at fault and the remedy."""
    document = {
        "command_id": draft.command_id,
        "scope": exact_scope(draft.scope_ids).model_dump(),
        "issued_at": draft.issued_at,
        "order": dict(draft.payload),
        "actor": draft.actor,
    }

    def plain(value: object) -> object:
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json")
        if isinstance(value, Mapping):
            return dict(value)
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    try:
        data = orjson.dumps(document, default=plain)
    except TypeError as error:
        raise InvalidCommandError(
            f"the command cannot be written as JSON ({error}): use text, numbers, lists, dicts"
        ) from error
    judged = parse_command(data, position="")
    if isinstance(judged, Refusal):
        # A command's own fields are in the field `order` of its record, which callers do not know.
        faults = re.sub(r"(^|; )order\.", r"\1", judged.detail)
        raise InvalidCommandError(f"{judged.reason}: {faults}: nothing was published")
    return judged


def exact_scope(scope_ids: Mapping[str, str | None]) -> Scope:
    """The scope that `scope_ids` names. Raises `InvalidCommandError` for "*" or "**" and where it names nobody."""
    if any(value == wildcard for value in scope_ids.values() for wildcard in WILDCARDS):
        raise InvalidCommandError(
            "this command takes one exact scope: give each id or leave it out; '*' and '**' are not allowed"
        )
    if not names_owner(scope_ids):
        raise InvalidCommandError(NOBODY)
    try:
        return Scope.model_validate(scope_ids)
    except ValidationError as error:
        raise InvalidCommandError(f"the scope is not valid: {describe_faults(error)}") from error


class CommandBase(ResultBase):
    """Publishes commands in order with the turns of their owner, and waits for their ends on request."""

    async def _issue(self, kind: str, arguments: CommandArgs, wait: float, **fields: Any) -> Result:
        """One command about the facts, event or turn in `fields`, in the scope that these have."""
        return await self._publish_one(await self._located(self._draft(kind, arguments, fields)), wait)

    async def _issue_for_scopes(self, kind: str, arguments: CommandArgs, wait: float, **fields: Any) -> Result:
        """A command for each scope that the arguments match: an exact scope, or all matches that the tables know."""
        draft = self._draft(kind, arguments, fields)
        if not draft.has_wildcard:
            return await self._publish_one(draft, wait)
        sent: list[Result] = []
        # Validated with any scope before the tables are asked for the real ones.
        payload = build_command(draft.for_scope(PLACEHOLDER_SCOPE)).order
        if not isinstance(payload, DeleteAll | Undo):
            raise InvalidCommandError(f"{payload.kind} takes one exact scope, without '*' or '**'")
        async with (
            self._connections.read_pool().connection() as connection,
            aclosing(matching_scopes(connection, payload, ScopeFilter(**scope_ids(draft.scope_ids)))) as pages,
        ):
            async for scopes in pages:
                sent += await self._publish([build_command(draft.for_scope(scope)) for scope in scopes])
        return summed_up(draft.command_id, await self._wait_for_all(sent, wait) if wait else sent)

    async def _publish_one(self, draft: CommandDraft, wait: float) -> Result:
        command = build_command(draft)
        if wait:
            self._connections.read_pool()  # raises before anything is published where nothing says where Postgres is
        sent = await self._publish([command])
        return (await self._wait_for_all(sent, wait) if wait else sent)[0]

    async def _publish(self, records: Sequence[Command | Turn]) -> list[Result]:
        producer = await self._connections.producer()
        if len(records) == 1:
            reports = [await producer.publish(OutgoingRecord.of(records[0]))]
        else:
            reports = await producer.publish_batch(map(OutgoingRecord.of, records))
        sent = [published(one, position=report.position) for one, report in zip(records, reports, strict=True)]
        self._watch_ends(sent)
        return sent

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

    async def _located(self, draft: CommandDraft) -> CommandDraft:
        """The draft with whole ids and the exact scope of the facts, event or turn that it names.

        The command is validated before the tables are asked. An id of the scope that a caller names has to agree with
        the tables. Where they cannot be asked, or do not know the turn yet, a scope that names its user or agent is
        taken as it stands: the pipeline checks it again.
        """
        if draft.has_wildcard:
            exact_scope(draft.scope_ids)
        build_command(with_ids(draft.for_scope(PLACEHOLDER_SCOPE), _first_id))
        payload, within = draft.payload, wide_filter(draft.scope_ids)
        try:
            if payload.get("event_id") is not None:
                matches = [await self._query(find_event, within, payload["event_id"])]
                payload = {**payload, "event_id": matches[0].id}
            elif (turn_id := payload.get("source_id")) is not None:
                matches = [await self._query(find_turn, within, turn_id)]
                if matches[0].id != turn_id:
                    raise UnknownTurnError(within.tenant, turn_id)  # noqa: TRY301 - as `find_turn` itself raises it
            elif given := ids_in(draft):
                matches = await self._query(find_facts, within, given, merges=payload["kind"] in ("confirm", "reject"))
                whole: Mapping[FactId, FactId] = {one: match.id for one, match in zip(given, matches, strict=True)}
                payload = with_ids(draft, whole.__getitem__).payload
            else:
                return draft
        except (NotConnectedError, ServerUnavailableError, UnknownTurnError):
            if not names_owner(draft.scope_ids):
                raise
            return with_ids(draft, _as_whole)
        scopes = list(dict.fromkeys(match.scope for match in matches))
        if len(scopes) > 1:
            named = "; ".join(map(scope_in_words, scopes[:5]))
            raise InvalidCommandError(f"these facts are of {len(scopes)} scopes ({named}): send a command for each")
        return replace(draft, scope_ids=scopes[0].model_dump(), payload=payload)


def _first_id(given: FactId) -> FactId:
    """Any id that `given` may stand for, to validate the rest of a command before the tables are asked."""
    try:
        return first_id(given)
    except QueryError as error:
        raise InvalidCommandError(str(error)) from error


def _as_whole(given: FactId) -> FactId:
    """The id as it is. Raises `InvalidCommandError` for the beginning of an id, which only the tables can complete."""
    if (whole := whole_id(given)) is None:
        raise InvalidCommandError(
            f"{given!r} is the beginning of an id, and Postgres cannot be asked for the whole: give all of it"
        )
    return whole


def as_edit(fact_id: FactId, text: str, value: str | EllipsisType | None, **more: Any) -> dict[str, Any]:
    """One edit as a command has it: there a value that is cleared is empty, and `...`, not given, is none at all."""
    cleared = {} if value is ... else {"value": value or ""}
    return {"fact_id": fact_id, "text": text, **more, **cleared}


class CommandMixin(CommandBase):
    """Commands about facts and whole scopes. Whose facts are need not be named; a user_id that is named must be theirs.

    Every method returns once the broker has the command for good; with `wait` (True or seconds) it returns the result.
    It raises `InvalidCommandError`, `UnknownFactError` or `AmbiguousIdError` before anything is sent, and
    `PublishError` when no acknowledgement came in time: send the command again with the same `command_id`. What cannot
    be carried out ends as `rejected`, as a whole, with the reason; facts of other scopes are never touched.
    Every method takes the arguments of `CommandArgs` too: tenant, user_id, agent_id, app_id, run_id, actor, command_id.
    """

    @Order
    async def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        value_json: Any = None,
        categories: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Replace the text of a fact from now on. A fact that a human corrected is changed by `correct` alone.

        Key, value and categories that are not given are those of the new text where that is a plain English sentence,
        or those of the fact as far as the texts say the same; metadata stay unless given. Without `value` its value is
        read from the new text where the two texts differ in the value alone, and cleared where that is not clear; None
        clears it. The id may be that of a former
        version: what took its place is updated, and the `notes` of the result say so.
        """
        edit = as_edit(fact_id, text, value, key=key, value_json=value_json, categories=categories, metadata=metadata)
        return await self._issue("update", arguments, wait, edits=[edit])

    @Order
    async def delete(self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]) -> Result:
        """Delete a fact, with all that took its place since; or up to 100 of a scope, all or none.

        So the id of a former version deletes it, and each version after it; the `notes` of the result say so. The
        history keeps them, and `undo` restores them.
        """
        return await self._issue("delete", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @Order
    async def confirm(self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]) -> Result:
        """Confirm pending facts and apply the changes they were held back from."""
        return await self._issue("confirm", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @Order
    async def reject(self, fact_ids: FactIds, *, wait: Wait = False, **arguments: Unpack[CommandArgs]) -> Result:
        """Reject pending facts; the known facts stay active."""
        return await self._issue("reject", arguments, wait, fact_ids=as_ids("fact_ids", fact_ids))

    @Order
    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | EllipsisType | None = ...,
        value_json: Any = None,
        categories: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        true_from: When | None = None,
        ended_at: When | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Correct a fact; only a human can change it afterwards.

        The old one never was true, or, where `ended_at` is given, was true until then. All else is as in `update`.
        The new one is true since `true_from`; without it since the old one was, or since the date that its text has in
        the place of another one. What the old one had ended, ends with the beginning of the new one.
        """
        more = {"key": key, "value_json": value_json, "categories": categories, "metadata": metadata}
        edit = as_edit(fact_id, text, value, **more, true_from=true_from)
        return await self._issue("correct", arguments, wait, edit=edit, ended_at=ended_at)

    @Order
    async def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = (),
        text: str | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Resolve the conflict of an unresolved fact with `targets`, by default all that it was added beside.

        `text` is the merged text of a `merge`, and of nothing else.
        """
        beside = as_ids("targets", targets)
        return await self._issue("resolve", arguments, wait, fact_id=fact_id, action=action, targets=beside, text=text)

    @Order
    async def delete_all(
        self,
        *,
        key: str | None = None,
        category: str | None = None,
        filters: Mapping[str, Any] | None = None,
        wait: Wait = False,
        **arguments: Unpack[CommandArgs],
    ) -> Result:
        """Delete every active or pending fact of a scope, or those of a key, a category or a filter.

        "*" stands for any value of an id, "**" also for none: then there is one command for each scope that the tables
        know now, and `parts` of the result are theirs. `run_id` or `app_id` without a user and
        an agent is all of that run or application, whoever's it is. Where no id is named, the filter says whose facts,
        as in `facts`. Which facts it lets through is decided where the command is carried out.
        """
        asked = {"key": key, "category": category}
        if not names_owner(arguments) and (arguments.get("run_id") or arguments.get("app_id")):
            whole = {name: value or ANY_OR_NONE for name, value in scope_ids(arguments).items() if name != "tenant"}
            arguments = cast("CommandArgs", {**arguments, **whole})
        if filters is None:
            return await self._issue_for_scopes("delete_all", arguments, wait, **asked)
        within, wanted = scope_and_filter(arguments, filters)
        ids = {name: getattr(within, name) for name in SCOPE_FIELDS}
        named = cast("CommandArgs", {**arguments, **ids})
        return await self._issue_for_scopes("delete_all", named, wait, **asked, filters=written_filter(wanted))

    @Order
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
    ) -> Result:
        """Undo an event, a turn (or a command, by its command_id), or all that a model or prompt version decided.

        The latter from `since` up to `until`; there "*" and "**" are allowed, as in `delete_all`. A prompt version
        stands for its variants too: "extract-6" for "extract-6-turns-1". Where later decisions build on it the undo is
        rejected with their list, or with `cascade` undoes those too. An undo is undone by the id of its command. Whose
        event or turn it is need not be named.
        """
        aim: dict[str, Any] = {"event_id": event_id, "source_id": turn_id, "cascade": cascade}
        decided = {"model": model, "prompt_version": prompt_version, "since": since, "until": until}
        if event_id is None and turn_id is None:
            return await self._issue_for_scopes("undo", arguments, wait, **aim, **decided)
        return await self._issue("undo", arguments, wait, **aim, **decided)

    @Order
    async def end_session(self, *, wait: Wait = False, **arguments: Unpack[CommandArgs]) -> Result:
        """Say that a session of this scope has ended: what its turns until now have changed is published.

        It matters where a policy has `publish_profile` "session_end" or "every_turns": `profile` then shows what was
        known when it was last published.
        """
        return await self._publish_one(self._draft("end_session", arguments, {}), wait)
