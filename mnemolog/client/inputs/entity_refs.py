"""How a caller names an entity."""

from collections.abc import Iterable
from uuid import UUID

from mnemolog.projections.lists.entities import Entity

EntityRef = Entity | UUID | str
"""An entity that was read, one of its names, what it is to somebody ("my wife"), or the beginning of its id.

That has four characters or more."""
EntityNames = str | Iterable[str]
"""One name of an entity, or several."""
