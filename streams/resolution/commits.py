"""Builds the commit of a source: the record of `memory_events` with how the source ended and why."""

from datetime import datetime
from typing import Any, Final

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import MAX_DETAIL, MatchedFacts
from mnemolog.schemas.provenance import Provenance, Step, Thresholds

_FROM_ENVELOPE: Final = (
    *("source_id", "source_kind", "scope", "origin", "occurred_at", "published_at", "order", "actor", "speaker"),
    *("metadata", "attempt"),
)


def commit_of(
    envelope: MatchedFacts,
    *,
    decided_at: datetime,
    step: Step | None = None,
    thresholds: Thresholds | None = None,
    detail: str = "",
    **end: Any,
) -> Commit:
    """The commit of a source that ended as the fields of `end` say; `step` is what its decision cost."""
    return Commit(
        **{name: getattr(envelope, name) for name in _FROM_ENVELOPE},
        decided_at=decided_at,
        based_on=envelope.scope_version,
        provenance=Provenance(steps=(*envelope.steps, *([step] if step else [])), thresholds=thresholds),
        detail=detail[:MAX_DETAIL],
        **end,
    )
