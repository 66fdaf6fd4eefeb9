"""Finds facts, events and turns by their ids, or by the beginning of an id where only one has it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from mnemolog.projections import errors
from mnemolog.projections.database import fetch_rows
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter, read_query
from mnemolog.projections.sql import queries
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

MIN_ID_CHARACTERS: Final = 4
"""Of the beginning of an id; hyphens are not counted."""
SHORT_ID_CHARACTERS: Final = 8
"""The fewest characters of a short id."""
MAX_CANDIDATES: Final = 6
_HEX_CHARACTERS: Final = 32
_HEX: Final = re.compile(r"[0-9a-f]+")

GivenId = UUID | str
"""An id, or the beginning of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdMatch:
    """What an id stands for: the whole id, what it says (a fact's text, an event's name), and its scope."""

    id: str
    text: str
    scope: Scope


async def resolve_fact_id(conn: AsyncConnection[TupleRow], within: ScopeFilter, given: GivenId) -> UUID:
    """The id of the only fact of `within` whose id is `given` or begins so. Raises as `find_facts` does."""
    (found,) = await find_facts(conn, within, [given])
    return UUID(found.id)


async def find_facts(
    conn: AsyncConnection[TupleRow], within: ScopeFilter, given: Iterable[GivenId], *, merges: bool = False
) -> list[IdMatch]:
    """The fact of each id, in the order given; or, with `merges`, the proposed merge.

    An id may be cut after four or more characters where only one fact of `within` has it. Raises `QueryError` for what
    is no id, `AmbiguousIdError` that names the candidates, and `UnknownFactError`, which says so where the fact is of
    another scope of the tenant.
    """
    asked = [parsed_id("fact_id", one) for one in given]
    kind = "facts_and_merges" if merges else "facts"
    found = await _find(conn, kind, within, asked)
    for number, one in enumerate(asked):
        if number not in found:
            whole_tenant = replace(within, **{name: ANY_OR_NONE for name in SCOPE_FIELDS if name != "tenant"})
            elsewhere = await _find(conn, kind, whole_tenant, [one])
            scopes = [match.scope for match in elsewhere.get(0, [])]
            raise errors.UnknownFactError(
                within.tenant, one.given, within=within.named, scope=scopes[0] if scopes else None
            )
    return [only_match("fact", one.given, found[number]) for number, one in enumerate(asked)]


async def find_event(conn: AsyncConnection[TupleRow], within: ScopeFilter, given: GivenId) -> IdMatch:
    """The event of an id, as `find_facts` finds a fact. Raises `UnknownEventError`, and else as that does."""
    asked = parsed_id("event_id", given)
    found = await _find(conn, "events", within, [asked])
    if not found:
        raise errors.UnknownEventError(within.tenant, asked.given)
    return only_match("event", asked.given, found[0])


async def find_turn(conn: AsyncConnection[TupleRow], within: ScopeFilter, given: str) -> IdMatch:
    """The turn or command of an id; where there is none, the only one whose id begins so (four or more characters).

    Raises `UnknownTurnError`, `AmbiguousIdError` for a beginning of several ids, and `AmbiguousTurnError` where several
    owners have a turn of this id.
    """
    errors.check_id_text(turn_id=given)
    named = {**within.parameters, "beginning": given, "bound": MAX_CANDIDATES}
    matches = (await _fetch_matches(conn, read_query("ids", "turns", scope=within.parameters, row="t"), named)).get(
        0, []
    )
    exact = [one for one in matches if one.id == given]
    if not matches or not (exact or len(given) >= MIN_ID_CHARACTERS):
        raise errors.UnknownTurnError(within.tenant, given)
    if len({one.id for one in exact or matches}) > 1:
        raise errors.AmbiguousIdError("turn", given, [(one.id, one.text) for one in matches])
    owners = list(dict.fromkeys(one.scope.owner for one in exact or matches))
    if len(owners) > 1:
        raise errors.AmbiguousTurnError(given, owners)
    return matches[0]


def first_id(given: GivenId, name: str = "fact_id") -> UUID:
    """The first id that begins as `given` does. Raises `QueryError` that has the argument's `name` for what is none."""
    return parsed_id(name, given).low


async def short_ids(conn: AsyncConnection[TupleRow], ids: Collection[UUID]) -> dict[UUID, str]:
    """The shortest beginning of each id, of eight characters or more, that no other fact or event of any tenant has.

    All of them get the same length. They are unique now: a later fact may begin as one of
    them does, and then the longer id has to be given.
    """
    if not ids:
        return {}
    found = await (await conn.execute(queries("ids")["neighbours"], {"ids": list(ids)})).fetchall()
    pairs = ((str(one), str(other)) for one, others in found for other in others if other is not None)
    lengths = (_shared(*pair) + 1 for pair in pairs)
    length = max(lengths, default=0)
    return {one: str(one)[: max(length, SHORT_ID_CHARACTERS)] for one in ids}


@dataclass(frozen=True, slots=True)
class ParsedId:
    given: str
    low: UUID
    high: UUID


def parsed_id(name: str, given: object) -> ParsedId:
    """From the first to the last id that begins as `given` does."""
    if isinstance(given, UUID):
        return ParsedId(str(given), given, given)
    errors.check_id_text(**{name: given})
    shown = str(given).strip()
    digits = shown.lower().replace("-", "")
    if not _HEX.fullmatch(digits) or not MIN_ID_CHARACTERS <= len(digits) <= _HEX_CHARACTERS:
        raise errors.QueryError(
            f"{name} {shown!r:.80} is not an id: give all of it, or at least its first {MIN_ID_CHARACTERS} characters "
            "(digits and a to f)"
        )
    return ParsedId(shown, UUID(digits.ljust(_HEX_CHARACTERS, "0")), UUID(digits.ljust(_HEX_CHARACTERS, "f")))


async def _find(
    conn: AsyncConnection[TupleRow], name: str, within: ScopeFilter, asked: Sequence[ParsedId]
) -> dict[int, list[IdMatch]]:
    """A few matches of each range that has any, by its place in `asked`."""
    named = {
        **within.parameters,
        "low": [one.low for one in asked],
        "high": [one.high for one in asked],
        "bound": MAX_CANDIDATES,
    }
    query = read_query("ids", name, scope=within.parameters, row="e" if name == "events" else "f")
    return await _fetch_matches(conn, query, named)


async def _fetch_matches(
    conn: AsyncConnection[TupleRow], query: SQL, named: Mapping[str, Any]
) -> dict[int, list[IdMatch]]:
    found: dict[int, list[IdMatch]] = {}
    for row in await fetch_rows(conn, dict, query, named):
        scope = Scope.from_columns(row[name] for name in SCOPE_FIELDS)
        found.setdefault(row["number"] - 1, []).append(IdMatch(id=row["id"], text=row["text"], scope=scope))
    return found


def only_match(kind: str, given: str, matches: Sequence[IdMatch]) -> IdMatch:
    if len(matches) > 1:
        raise errors.AmbiguousIdError(kind, given, [(one.id, one.text) for one in matches])
    return matches[0]


def _shared(one: str, other: str) -> int:
    """How many characters two ids begin with in common."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))
