"""The exception that ends one source without stopping the stage."""

from typing import Literal

from mnemolog.schemas.envelopes import MAX_DETAIL, End
from mnemolog.schemas.provenance import Step
from mnemolog.streams.errors import StreamsError


class SourceEndedError(StreamsError):
    """This source cannot go on, others can: its bytes go to the dead letters and its end to the log.

    `step` is what the stage has spent on it. `possibly_systemic` marks what may be no fault of this source: a model
    whose replies are never valid is the wrong one.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        outcome: Literal["rejected", "failed"] = "failed",
        step: Step | None = None,
        possibly_systemic: bool = False,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.step = step
        self.possibly_systemic = possibly_systemic
        self.end = End(outcome=outcome, reason=reason, detail=detail[:MAX_DETAIL])
