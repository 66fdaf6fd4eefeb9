"""The states that filters ask about, and who ends what an immutable turn has stated, by the log."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args

from psycopg import AsyncConnection

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.filters import parse_filter
from tests.properties.log_reader import OPEN, LoggedFact
from tests.properties.telling import Told


async def state_faults(conn: AsyncConnection[Any], told: Told, scope: ScopeFilter) -> list[str]:
    """Filters on the state that find, or show, other facts than those that have it; each fact has one."""
    faults, now = list[str](), told.history.now
    left = set(told.log.facts)
    for state in get_args(FactStatus):
        found = {
            str(one.fact_id): one.status for one in await facts(conn, scope, parse_filter({"state": state}), at=now)
        }
        faults += [f"what is {state} is shown as {shown}" for shown in sorted(set(found.values()) - {state})]
        faults += [f"{told.log.facts[one].text!r} has two states" for one in sorted(set(found) - left)]
        left -= set(found)
        if state in OPEN:
            holding = {fact.id for fact in told.log.facts.values() if fact.status == state and not _is_over(fact, now)}
            faults += [
                f"a filter on the state {state} is wrong about {told.log.facts[one].text!r}"
                for one in sorted(holding.symmetric_difference(found))
            ]
    return [*faults, *(f"{told.log.facts[one].text!r} has no state" for one in sorted(left))]


def _is_over(fact: LoggedFact, now: datetime) -> bool:
    return fact.ends is not None and fact.ends <= now


def ended_human_words(told: Told) -> Iterator[str]:
    """What an immutable turn has stated, and another turn has ended: only a command may."""
    for fact in told.log.facts.values():
        if fact.fact.get("authority") == "human":
            for ending in fact.endings:
                turn = told.turns.get(ending.commit["source_id"])
                if turn is not None and ending.commit is not fact.commit:
                    yield f"{fact.text!r} was stated by an immutable turn, and {turn.turn_id} has ended it"
