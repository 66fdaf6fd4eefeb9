"""The similarity thresholds of each known embedding model: a similarity of one model means nothing for another."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

import structlog

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdDefaults:
    """Above `duplicate` (raw store: `raw_duplicate`) a fact is skipped, from `conflict` on the LLM decides.

    Above `near_duplicate` two facts of one turn are one. From `ending` on, a known fact may be the one that a statement
    ends. The similarities are those of search texts; in raw stores these are the plain texts. `source` says where the
    numbers come from.
    """

    duplicate: float
    raw_duplicate: float
    conflict: float
    near_duplicate: float
    ending: float
    source: str


MEMLIB_DEFAULTS: Final = ThresholdDefaults(
    duplicate=0.98,
    raw_duplicate=0.95,
    conflict=0.65,
    near_duplicate=0.85,
    ending=0.40,
    source="MemLib, smart store pipeline, made for text-embedding-3-small with 1536 dimensions (`ending` is ours)",
)
MINILM_DEFAULTS: Final = ThresholdDefaults(
    duplicate=0.999,
    raw_duplicate=0.995,
    conflict=0.58,
    near_duplicate=0.98,
    ending=0.35,
    source="measured by python -m tests.quality.thresholds on 518 pairs of search texts of the offline provider"
    " (`raw_duplicate`: on 445 pairs of plain texts)",
)
"""MiniLM puts two dates of one appointment at .9985, nearer than most repetitions in other words: only texts that are
nearly equal may be skipped without a question."""

DEFAULTS_BY_MODEL: Final[dict[str, ThresholdDefaults]] = {
    "text-embedding-3-small": MEMLIB_DEFAULTS,
    "all-MiniLM-L6-v2-int8": MINILM_DEFAULTS,
}


def thresholds_for(model: str, overrides: Overrides) -> Thresholds:
    """The thresholds that hold for vectors of `model`, where `overrides` sets no other.

    An unknown model gets MemLib's and is warned about once a process.
    """
    known = DEFAULTS_BY_MODEL.get(model)
    if known is None:
        _warn_unknown_model(model)
    numbers = {name: value for name, value in asdict(known or MEMLIB_DEFAULTS).items() if name != "source"}
    chosen = overrides.model_dump(include=set(numbers), exclude_none=True)
    return Thresholds(embedding_model=model, **numbers | chosen)


@cache  # once a model
def _warn_unknown_model(model: str) -> None:
    _log.warning("embedding_model_without_thresholds", model=model, used=MEMLIB_DEFAULTS.source)
