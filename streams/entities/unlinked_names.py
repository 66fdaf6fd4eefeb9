"""Tells which names of a source link no fact, and why: a part of its trace."""

from collections.abc import Sequence

from mnemolog.schemas.entities.events import AnyEntityEvent, FactLinked
from mnemolog.schemas.entities.model import MAX_UNLINKED, EntityLink, UnlinkedName
from mnemolog.streams.entities.turn_entities import TurnEntities


def unlinked_names(found: TurnEntities | None, events: Sequence[AnyEntityEvent]) -> tuple[UnlinkedName, ...]:
    """The names that were left out, and those that no fact is linked by; the first 50. `events` are about entities."""
    if found is None:
        return ()
    linked = {link.entity_id for event in events if isinstance(event, FactLinked) for link in event.links}
    without_fact = (_without_fact(found, link) for link in found.links if link.entity_id not in linked)
    names = {(one.name, one.reason): one for one in (*found.names.unlinked, *without_fact) if one is not None}
    return tuple(names.values())[:MAX_UNLINKED]


def _without_fact(found: TurnEntities, link: EntityLink) -> UnlinkedName | None:
    """What is told of such a name. One that was new is not registered, so that nothing has its id."""
    if link.name is None:
        return None
    return UnlinkedName(
        name=link.name,
        reason="no_new_fact",
        step=link.step,
        entity_id=None if link.entity_id in found.new else link.entity_id,
        compared=tuple(one for one in link.compared if one not in found.new),
    )
