"""What all events about entities have in common."""

from uuid import UUID

from mnemolog.schemas.base import Count, Record


class EntityEvent(Record):
    """Their ordinals go on where those of the events about facts end."""

    event_id: UUID
    ordinal: Count
