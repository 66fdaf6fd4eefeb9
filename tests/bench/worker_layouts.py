"""Which worker processes share the stages."""

from collections.abc import Mapping
from typing import Final

from mnemolog.schemas.provenance import Stage
from mnemolog.streams.runtime.worker import ALL_STAGES

__all__ = ["ALL_STAGES", "LAYOUTS", "Layout"]

Layout = tuple[tuple[Stage, ...], ...]
LAYOUTS: Final[Mapping[str, Layout]] = {
    "one process": (ALL_STAGES,),
    "two processes": (("journal", "extract"), ("embed", "match", "resolve", "project")),
    "a process for each stage": tuple((stage,) for stage in ALL_STAGES),
}
"""The stages of each process, by the layout's name."""
