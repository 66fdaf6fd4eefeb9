"""Asks about several turns in one call; where it fails while others succeed, about each half, down to turns alone."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeVar

from mnemolog.projections.db.faults import RECORD_ERRORS
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.logs import get_logger
from mnemolog.schemas.stored import ReplyNotStorableError
from mnemolog.streams import metrics
from mnemolog.streams.llm.errors import BatchSuspectError, PromptRefusedError

MIN_DIVIDED: Final = 3
"""A call for so many turns or fewer that fails is not divided: they are asked about alone."""
TURN_ERRORS: Final = (*RECORD_ERRORS, StatementTimeoutError, ReplyNotStorableError)
"""What a value of one of the turns can cause."""

Q = TypeVar("Q")

log = get_logger(__name__)


async def ask_divided(
    questions: Sequence[Q], ask: Callable[[Sequence[Q]], Awaitable[Sequence[bool]]]
) -> AsyncIterator[tuple[Q, bool]]:
    """Have all `questions` asked; gives each with whether it has a part of a reply. `ask` asks some in one call."""
    try:
        found, reason = await ask(questions), "no_part"
    except BatchSuspectError as error:
        log.info("shared_call_failed", turns=len(questions), error=str(error))
        if len(questions) > MIN_DIVIDED:
            middle = len(questions) // 2
            for half in (questions[:middle], questions[middle:]):
                async for answered in ask_divided(half, ask):
                    yield answered
            return
        found, reason = [False] * len(questions), "refused"
    except (PromptRefusedError, *TURN_ERRORS) as error:
        log.info("shared_call_failed", turns=len(questions), error=str(error))
        found, reason = [False] * len(questions), "refused"
    if alone := list(found).count(False):
        metrics.TURNS_ASKED_ALONE.labels(reason=reason).inc(alone)
    for answered in zip(questions, found, strict=True):
        yield answered
