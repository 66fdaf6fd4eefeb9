"""Finds whose memory a command is about, by the facts, the event or the turn that it names."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mnemolog.client.inputs.fact_ids import FactId, ids_in, whole_id, with_ids
from mnemolog.client.inputs.record_builder import (
    PLACEHOLDER_SCOPE,
    CommandDraft,
    build_command,
    exact_scope,
    names_owner,
)
from mnemolog.client.queries.arguments import wide_filter
from mnemolog.client.results import ResultMixin
from mnemolog.errors import (
    InvalidCommandError,
    NotConnectedError,
    QueryError,
    ServerUnavailableError,
    UnknownTurnError,
)
from mnemolog.projections.queries.errors import scope_in_words
from mnemolog.projections.queries.ids import IdMatch, find_event, find_facts, find_turn, first_id


class OwnerLookup(ResultMixin):
    """Completes drafts of commands by what the tables know of the facts, the event or the turn that they name.

    An id of the scope that a caller names has to agree with the tables. Where they cannot be asked, or do not know the
    turn yet, a scope that names its user or agent is taken as it stands: the pipeline checks it again.
    """

    async def _located(self, draft: CommandDraft) -> CommandDraft:
        """The draft with whole ids and the exact scope; validated before the tables are asked."""
        if draft.has_wildcard:
            exact_scope(draft.scope_ids)
        build_command(_with_ids(draft.for_scope(PLACEHOLDER_SCOPE), _first_id))
        try:
            return await self._looked_up(draft)
        except (NotConnectedError, ServerUnavailableError, UnknownTurnError):
            if not names_owner(draft.scope_ids):
                raise
            return _with_ids(draft, _as_whole)

    async def _looked_up(self, draft: CommandDraft) -> CommandDraft:
        payload, within = draft.payload, wide_filter(draft.scope_ids)
        if payload.get("event_id") is not None:
            match = await self._query(find_event, within, payload["event_id"])
            return _in_scope_of([match], replace(draft, payload={**payload, "event_id": match.id}))
        if (turn_id := payload.get("source_id")) is not None:
            match = await self._query(find_turn, within, turn_id)
            if match.id != turn_id:
                raise UnknownTurnError(within.tenant, turn_id)
            return _in_scope_of([match], draft)
        if not (given := ids_in(payload)):
            return draft
        matches = await self._query(find_facts, within, given, merges=payload["kind"] in ("confirm", "reject"))
        whole: Mapping[FactId, FactId] = {one: match.id for one, match in zip(given, matches, strict=True)}
        return _in_scope_of(matches, _with_ids(draft, whole.__getitem__))


def _in_scope_of(matches: list[IdMatch], draft: CommandDraft) -> CommandDraft:
    scopes = list(dict.fromkeys(match.scope for match in matches))
    if len(scopes) > 1:
        named = "; ".join(map(scope_in_words, scopes[:5]))
        raise InvalidCommandError(f"these facts are of {len(scopes)} scopes ({named}): send a command for each")
    return replace(draft, scope_ids=scopes[0].model_dump())


def _with_ids(draft: CommandDraft, change: Callable[[FactId], FactId]) -> CommandDraft:
    payload = with_ids(draft.payload, change)
    if payload.get("event_id") is not None:
        payload["event_id"] = change(payload["event_id"])
    return replace(draft, payload=payload)


def _first_id(given: FactId) -> FactId:
    """Any id that `given` may stand for, to validate the rest of a command before the tables are asked."""
    try:
        return first_id(given)
    except QueryError as error:
        raise InvalidCommandError(str(error)) from error


def _as_whole(given: FactId) -> FactId:
    """The id as it is. Raises `InvalidCommandError` for the beginning of one, which only the tables can complete."""
    if (whole := whole_id(given)) is None:
        raise InvalidCommandError(
            f"{given!r} is the beginning of an id, and Postgres cannot be asked for the whole: give all of it"
        )
    return whole
