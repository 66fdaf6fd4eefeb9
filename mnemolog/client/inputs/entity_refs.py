"""How a caller names an entity."""

from collections.abc import Iterable
from uuid import UUID

EntityRef = UUID | str
"""One of the names of an entity, or its id, or the beginning of its id (four characters or more)."""
EntityNames = str | Iterable[str]
"""One name of an entity, or several."""
