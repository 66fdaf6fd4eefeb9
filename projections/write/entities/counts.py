"""Counts what a batch of commits told of entities, for Prometheus."""

from collections import Counter

from mnemolog.projections import metrics
from mnemolog.projections.write.entities.rows import EntityChangeRow, EntityRow, LinkRow
from mnemolog.projections.write.rows import Changes
from mnemolog.schemas.entities.events import FactLinked
from mnemolog.schemas.entities.model import ENTITY_TYPES


def count_entities(changes: Changes) -> None:
    """Count what has been committed to the tables. A type of its own, which any word can be, is "custom"."""
    new = [row for row in changes.entities if isinstance(row, EntityRow)]
    kinds = Counter((row.event.type, "yes" if row.possible_twins else "no") for row in new)
    for (kind, is_twin), number in kinds.items():
        shown = kind if kind in ENTITY_TYPES else "custom"
        metrics.ENTITIES.labels(type=shown, possible_twin=is_twin).inc(number)
    for step, number in Counter(row.link.step for row in changes.entities if isinstance(row, LinkRow)).items():
        metrics.ENTITY_LINKS.labels(step=step).inc(number)
    decided = (row.event for row in changes.entities if isinstance(row, EntityChangeRow))
    for (event, by), number in Counter((one.event, one.decision.by) for one in decided).items():
        metrics.ENTITY_CHANGES.labels(event=event, by=by).inc(number)
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "facts" and commit.source_kind == "turn":
            links = (len(event.links) for event in commit.entity_events if isinstance(event, FactLinked))
            metrics.TURN_LINKS.observe(sum(links))
