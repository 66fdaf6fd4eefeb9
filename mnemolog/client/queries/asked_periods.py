"""The period of a search: the time that its question names, or that of an event in it, which is looked up."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from mnemolog.client.inputs.search_aids import WhenAsked
from mnemolog.errors import QueryError
from mnemolog.projections.search.hits import Findings
from mnemolog.projections.search.options import SearchOptions

if TYPE_CHECKING:
    from mnemolog.streams.text.asked_period import Period, PeriodEvent

EventTime = Callable[[str], Awaitable[datetime | None]]
"""When what some words tell of was so; None where nothing tells."""
MIN_SHARE: Final = 0.5
"""The share of an event's words that a fact must have to tell when it was, rare words counting more."""
NO_TIME: Final = "the question names no time to narrow the search to"


async def with_asked_period(
    question: str, options: SearchOptions, when: WhenAsked, at: datetime, event_time: EventTime
) -> tuple[SearchOptions, str | None]:
    """The options with the period that the question names, counted from `at`; or as they are, with a notice if need be.

    Raises `QueryError` where the search is to be narrowed and the package that reads times is missing.
    """
    if when == "ignore" or options.period is not None:
        return options, None
    try:
        period, event = await asyncio.to_thread(_read, question, at)
    except ImportError as error:
        if when == "boost":
            return options, None
        raise QueryError(f"times of questions cannot be read ({error}): pip install 'mnemolog[offline]'") from error
    if event is not None and (happened_at := await event_time(event.words)):
        period = event.period_from(happened_at)
    if period is None or period[0] >= period[1]:
        return options, NO_TIME if when == "narrow" else None
    return options.model_copy(update={"period": period, "only_period": when == "narrow"}), None


def time_of_event(found: Findings) -> datetime | None:
    """When the best of what was found for an event happened, where it has enough of its words."""
    if not found.hits or (found[0].score.text_score or 0) < MIN_SHARE:
        return None
    return found[0].fact.event_time or found[0].fact.true_from


def _read(question: str, at: datetime) -> tuple["Period | None", "PeriodEvent | None"]:
    """In a thread: the first question with a date loads the words of six languages."""
    from mnemolog.streams.text.asked_period import asked_event, asked_period  # noqa: PLC0415 - needs an extra

    period = asked_period(question, at)
    return period, None if period else asked_event(question)
