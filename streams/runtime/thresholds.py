"""Cosine similarities that decide, by embedding model: a number of one model means nothing to another."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

import structlog

from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.turn import Overrides

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdDefaults:
    """Above `duplicate` (raw store: `raw_duplicate`) a fact is skipped, from `conflict` on somebody has to decide.

    Above `near_duplicate` two facts of one turn are one. From `ending` on a known fact may be the one that a statement
    ends. `source` tells where the numbers come from.
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
    duplicate=0.995,
    raw_duplicate=0.995,
    conflict=0.60,
    near_duplicate=0.97,
    ending=0.40,
    source="measured: tests/unit/streams/llm/test_thresholds.py, 164 pairs of facts",
)
"""Why they differ: MiniLM puts "on Thursdays" and "on Tuesdays" at .991, nearer than any two wordings of one fact
(.981), so only equal texts may be skipped unseen; and it puts two editors of one person as low as .62."""

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
