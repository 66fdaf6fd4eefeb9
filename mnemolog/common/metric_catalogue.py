"""Metrics that are declared where they are made, and listed for the documentation."""

from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """One metric as the catalogue shows it; `labels` are label names with few values."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS_BUCKETS


class MetricCatalogue(list[MetricDefinition]):
    """The metrics of one package; making one adds it."""

    def counter(self, name: str, meaning: str, *, unit: str = "1", labels: tuple[str, ...] = ()) -> Counter:
        """Add a counter; Prometheus shows its name with `_total`."""
        self.append(MetricDefinition(name=f"{name}_total", kind="counter", unit=unit, meaning=meaning, labels=labels))
        return Counter(name, meaning, labels)

    def gauge(self, name: str, meaning: str, *, unit: str = "1", labels: tuple[str, ...] = ()) -> Gauge:
        self.append(MetricDefinition(name=name, kind="gauge", unit=unit, meaning=meaning, labels=labels))
        return Gauge(name, meaning, labels)

    def histogram(
        self,
        name: str,
        meaning: str,
        *,
        unit: str = "seconds",
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = SECONDS_BUCKETS,
    ) -> Histogram:
        definition = MetricDefinition(
            name=name, kind="histogram", unit=unit, meaning=meaning, labels=labels, buckets=buckets
        )
        self.append(definition)
        return Histogram(name, meaning, labels, buckets=buckets)
