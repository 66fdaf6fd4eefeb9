"""Reasons without names that readers do not see: of changes of entities, and of a model which was asked about names."""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.events import AnyEntityEvent, FactLinked
from mnemolog.schemas.entities.model import AnsweredName, EntityLink
from mnemolog.schemas.provenance import Step

HIDDEN: Final = "(hidden)"


def shown_reason(reason: str, names: Mapping[str, bool]) -> str:
    """The reason with `HIDDEN` for each name that is not shown. `names` are all that it may have, and whether they are.

    A name counts as whole words alone, and not as a part of another one: "Ana" is none of "Diana" or "Ana Keller".
    """
    if all(names.values()):
        return reason
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    listed = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    return listed.sub(lambda found: found[0] if names[found[0]] else HIDDEN, reason)


async def with_shown_reasons(conn: AsyncConnection[TupleRow], commit: Commit) -> Commit:
    """The commit, with `HIDDEN` for what a model said of entities of which readers do not see a name.

    A model may write a name in any way, and what facts say of its bearer: nothing of such a reason is shown.
    """
    answers = [answer for step in commit.provenance.steps for answer in step.answered_names]
    asked = {twin for answer in answers for twin in answer.twins}
    asked |= {entity_id for link in _explained_links(commit) for entity_id in _named(link)}
    if not asked:
        return commit
    rows = await conn.execute(queries("entities")["with_hidden_names"], {"entity_ids": list(asked)})
    hidden = {entity_id for (entity_id,) in await rows.fetchall()}
    return _without_reasons(commit, hidden) if hidden else commit


def _explained_links(commit: Commit) -> list[EntityLink]:
    linked = (event for event in commit.entity_events if isinstance(event, FactLinked))
    return [link for event in linked for link in event.links if link.reason is not None]


def _named(link: EntityLink) -> tuple[UUID, ...]:
    return link.entity_id, *link.compared


def _without_reasons(commit: Commit, hidden: set[UUID]) -> Commit:
    def shown_answer(answer: AnsweredName) -> AnsweredName:
        return answer.model_copy(update={"reason": HIDDEN}) if not hidden.isdisjoint(answer.twins) else answer

    def shown_step(step: Step) -> Step:
        return step.model_copy(update={"answered_names": tuple(map(shown_answer, step.answered_names))})

    def shown_link(link: EntityLink) -> EntityLink:
        is_hidden = link.reason is not None and not hidden.isdisjoint(_named(link))
        return link.model_copy(update={"reason": HIDDEN}) if is_hidden else link

    def shown_event(event: AnyEntityEvent) -> AnyEntityEvent:
        if not isinstance(event, FactLinked):
            return event
        return event.model_copy(update={"links": tuple(map(shown_link, event.links))})

    steps = tuple(map(shown_step, commit.provenance.steps))
    update: dict[str, Any] = {
        "provenance": commit.provenance.model_copy(update={"steps": steps}),
        "entity_events": tuple(map(shown_event, commit.entity_events)),
    }
    return commit.model_copy(update=update)
