"""Stores by more and more workers, each with all stages. Pure."""

from dataclasses import dataclass
from typing import Final

from tests.bench.markdown import table
from tests.bench.turn_throughput import Throughput

PARTITIONS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Smart stores by so many workers over 8 partitions."""

    workers: int
    stored: Throughput


def scaling_table(measured: tuple[Scaling, ...]) -> str:
    first = measured[0].stored.rate.per_second
    rows = [
        (
            str(one.workers),
            f"{one.stored.rate.per_second:.1f}",
            f"{one.stored.rate.per_second / first:.2f}",
            *(f"{one.stored.rate.cpu_milliseconds(name):.1f}" for name in ("worker", "kafka", "postgres")),
            f"{one.stored.rate.cores:.2f}",
        )
        for one in measured
    ]
    times = f"times that of {measured[0].workers}"
    return table(("workers", "turns/s", times, "CPU ms a turn: workers", "Kafka", "Postgres", "cores busy"), rows)
