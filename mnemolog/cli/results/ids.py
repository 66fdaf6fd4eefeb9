"""How ids of facts and events are shown: a beginning that no other one has, or whole."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient


class ShortIds:
    """Shows an id by its known short form, and whole where it has none."""

    def __init__(self, short: Mapping[UUID, str] | None = None) -> None:
        self._short = short or {}

    def __call__(self, fact_or_event: UUID | None) -> str:
        return "" if fact_or_event is None else self._short.get(fact_or_event, str(fact_or_event))


WHOLE_IDS: Final = ShortIds()


def ids_in(result: Any) -> Iterator[UUID]:
    """Every id of a fact or event in a result, however deep; in JSON columns they are text."""
    if isinstance(result, UUID):
        yield result
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            yield from ids_in(getattr(result, field.name))
    elif isinstance(result, Mapping):
        for name, value in result.items():
            yield from ids_in(UUID(value) if name == "fact_id" and isinstance(value, str) else value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from ids_in(value)


async def shown_ids(client: "AsyncMemoryClient", result: Any, *, whole: bool) -> ShortIds:
    """How the ids in a result are shown: each by the shortest beginning that is unique now, or `whole`."""
    found = () if whole else tuple(dict.fromkeys(ids_in(result)))
    return ShortIds(await client.short_ids(found)) if found else WHOLE_IDS
