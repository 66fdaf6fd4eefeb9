"""What was measured on, and what else ran there."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

PACKAGES = ("faust-streaming", "aiokafka", "psycopg", "pydantic", "openai", "uvloop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine; `load` is the average of running and waiting processes over the minute before."""

    at: datetime
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    packages: dict[str, str]
    load: float


def describe() -> Machine:
    return Machine(
        at=datetime.now(UTC),
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={name: version(name) for name in PACKAGES},
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
