"""Errors of the Kafka side, of stages and of models, grouped by what the caller can do."""

# ruff: noqa: N818 -- the names say what happened; "Error" would add nothing

from typing import Literal

from mnemolog.schemas.envelopes import MAX_DETAIL, End
from mnemolog.schemas.errors import MnemologError
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import Step


class StreamsError(MnemologError):
    """Base of every error that this package raises."""


class StartRefused(StreamsError):
    """The broker's state and the declaration disagree; a person has to decide."""


class TopicsDiffer(StartRefused):
    """A topic has another number of partitions than the setting asks for, or would lose records."""


class TopicNotCreated(StartRefused):
    """The broker refused to create a topic, or did not show it in time."""


class MixedLayouts(StartRefused):
    """Workers that chain the deciding stages and workers that run them singly exclude one another."""


class RecordTooLarge(StreamsError):
    """A record exceeds what its topic takes and can never be sent: its origin goes to the dead letters."""


class StageCrash(StreamsError):
    """The stage cannot continue in this App: it stops without acknowledging and a new App is started."""


class ProducerDead(StageCrash):
    """The producer is closed, fenced or out of sequence, and stays so."""


class OffsetRegression(StageCrash):
    """A partition delivered an offset that the window already holds."""


class StaleProjection(StageCrash):
    """The tables stand before commits that this stage wrote: a failover or a restored backup lost them."""


class LogTruncated(StageCrash):
    """A topic ends before records that were delivered from it: the broker has lost them."""


class NoProgress(StageCrash):
    """Records are pending and none was finished for too long."""


class BatcherClosedError(StreamsError):
    """A micro-batcher was closed before it ran this item: the caller's record stays unacknowledged."""


class ResultCountMismatch(StreamsError):
    """A batch call answered for fewer or more items than it was given: none of its results can be trusted."""


class LogMismatch(StartRefused):
    """The log does not hold what the tables were built from: it was lost, cut or created again."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(
            f"offset {offset} of partition {partition} of memory_events is not what the tables were built from: "
            "the log was lost, cut short or created again. Stop all workers and run `mnemolog restore-log`, which "
            "appends what is missing from the tables; or point MNEMOLOG_POSTGRES to a database of this log"
        )


class WorkersRunning(StartRefused):
    """Something must not be done while stages run."""


class LogNotRestored(StartRefused):
    """The lost commits could not be appended."""


class SourceEndedError(StreamsError):
    """This source cannot go on, others can: its bytes go to the dead letters and its end to the log.

    `step` is what the stage has spent on it. `possibly_systemic` marks what may be no fault of this source: a model
    whose replies are never valid is the wrong one. `raw_facts` are stored for want of better ones.
    """

    raw_facts: tuple[ExtractedFact, ...] = ()

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
