"""Every metric of this package: name, kind, unit and meaning; labels have few values and never name a user."""

from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import Counter, Gauge, Histogram

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One metric as the catalogue shows it; `labels` are label names."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = SECONDS_BUCKETS


CATALOGUE: Final[list[Definition]] = []


def counter(name: str, meaning: str, *, unit: str = "1", labels: tuple[str, ...] = ()) -> Counter:
    """Add a counter to the catalogue; Prometheus shows its name with `_total`."""
    CATALOGUE.append(Definition(name=f"{name}_total", kind="counter", unit=unit, meaning=meaning, labels=labels))
    return Counter(name, meaning, labels)


def gauge(name: str, meaning: str, *, unit: str = "1", labels: tuple[str, ...] = ()) -> Gauge:
    """Add a gauge to the catalogue."""
    CATALOGUE.append(Definition(name=name, kind="gauge", unit=unit, meaning=meaning, labels=labels))
    return Gauge(name, meaning, labels)


def histogram(
    name: str,
    meaning: str,
    *,
    unit: str = "seconds",
    labels: tuple[str, ...] = (),
    buckets: tuple[float, ...] = SECONDS_BUCKETS,
) -> Histogram:
    """Add a histogram to the catalogue."""
    CATALOGUE.append(
        Definition(name=name, kind="histogram", unit=unit, meaning=meaning, labels=labels, buckets=buckets)
    )
    return Histogram(name, meaning, labels, buckets=buckets)


RECORDS_SENT: Final = counter("mnemolog_records_sent", "records that the broker has confirmed", labels=("topic",))
SEND_RETRIES: Final = counter("mnemolog_send_retries", "sends that failed for now and were repeated", labels=("topic",))
DEAD_LETTERED: Final = counter("mnemolog_dead_letters", "records put into dead_letters", labels=("stage", "reason"))
REPEATS_DROPPED: Final = counter(
    "mnemolog_repeats_dropped", "records whose origin was handled before", labels=("stage",)
)
STAGE_CRASHES: Final = counter(
    "mnemolog_stage_crashes", "crashes and failed starts of a stage, each followed by a restart", labels=("stage",)
)
STAGE_READY: Final = gauge(
    "mnemolog_stage_ready", "1 while the stage is a member of its consumer group", labels=("stage",)
)
WINDOW_RUNNING: Final = gauge("mnemolog_window_running", "records or batches being processed", labels=("stage",))
WINDOW_PENDING: Final = gauge("mnemolog_window_pending", "records delivered and not acknowledged", labels=("stage",))
WINDOW_OLDEST: Final = gauge(
    "mnemolog_window_oldest_seconds",
    "age of the oldest record that is not acknowledged",
    unit="seconds",
    labels=("stage",),
)
WINDOW_STALLED: Final = gauge(
    "mnemolog_window_stalled_seconds",
    "time since a record was last finished while some are pending",
    unit="seconds",
    labels=("stage",),
)
DRAIN_REDONE: Final = counter(
    "mnemolog_drain_redone", "records begun before a rebalance or stop and to be done again", labels=("stage",)
)
STAGE_SECONDS: Final = histogram(
    "mnemolog_stage_seconds", "time from a record's turn in a stage to its durable output", labels=("stage",)
)
MODEL_CALLS: Final = counter(
    "mnemolog_model_calls", "calls of language and embedding models that answered", labels=("purpose", "model")
)
MODEL_ERRORS: Final = counter(
    "mnemolog_model_errors", "calls that failed, by kind of failure", labels=("purpose", "model", "error")
)
MODEL_SECONDS: Final = histogram(
    "mnemolog_model_seconds", "time until a call's answer, waits and retries included", labels=("purpose", "model")
)
MODEL_TOKENS: Final = counter(
    "mnemolog_model_tokens",
    "tokens as the provider counted them",
    unit="tokens",
    labels=("purpose", "model", "direction"),
)
EMBEDDING_TEXTS: Final = histogram(
    "mnemolog_embedding_texts",
    "texts in one embedding call",
    unit="texts",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
)
REPROMPTS: Final = counter(
    "mnemolog_reprompts", "questions asked again because the reply was invalid", labels=("purpose",)
)
FACTS_DROPPED: Final = counter(
    "mnemolog_facts_dropped", "statements that became no fact before matching", unit="facts", labels=("reason",)
)
UNRESOLVED: Final = counter(
    "mnemolog_unresolved", "contested facts kept beside the known ones for want of a valid decision", unit="facts"
)
WRONG_KEYS: Final = counter("mnemolog_wrong_keys", "turns published without their owner's key, or with another one")
ALREADY_COMMITTED: Final = counter("mnemolog_already_committed", "turns that reached resolve again after their commit")
