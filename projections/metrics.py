"""Every metric of this package: name, kind, unit and meaning; labels have few values and never name a user."""

from typing import Final

from mnemolog.projections.metric_catalogue import MetricCatalogue

CATALOGUE: Final = MetricCatalogue()

COMMITS: Final = CATALOGUE.counter("mnemolog_commits_projected", "commits applied to the tables", labels=("outcome",))
EVENTS: Final = CATALOGUE.counter("mnemolog_events_projected", "events applied to the tables", labels=("event",))
OVERWRITES: Final = CATALOGUE.counter(
    "mnemolog_overwrites",
    "events that ended at least one known fact, by who decided; those of a model, divided by "
    "mnemolog_events_projected_total, are the overwrite rate",
    labels=("event", "by"),
)
OVERWRITES_TAKEN_BACK: Final = CATALOGUE.counter(
    "mnemolog_overwrites_taken_back",
    "overwrites that were undone, rejected while pending, or corrected by a human",
    labels=("how",),
)
HELD_OVERWRITES: Final = CATALOGUE.gauge(
    "mnemolog_recent_held",
    "overwrites held for confirmation in the last 30 days, from the tables: confirmed, rejected, overtaken or open",
    labels=("settlement",),
)
RECENT_OVERWRITES: Final = CATALOGUE.gauge(
    "mnemolog_recent_overwrites",
    "overwrites that models decided in the last 30 days, from the tables: kept, undone, rejected or corrected; "
    "the share of those not kept is the wrong-overwrite rate",
    labels=("result",),
)
PENDING: Final = CATALOGUE.gauge("mnemolog_pending", "overwrites that wait for a confirmation, from the tables")
PENDING_OLDEST: Final = CATALOGUE.gauge(
    "mnemolog_pending_oldest_seconds", "age of the oldest pending overwrite", unit="seconds"
)
PENDING_MEDIAN: Final = CATALOGUE.gauge(
    "mnemolog_pending_median_seconds",
    "median time until an overwrite held in the last 30 days was settled",
    unit="seconds",
)
UNRESOLVED: Final = CATALOGUE.gauge(
    "mnemolog_unresolved_facts", "active facts kept beside others because there was no valid decision, from the tables"
)
STALE: Final = CATALOGUE.counter("mnemolog_stale_decisions", "events whose target was no longer as the decision saw it")
REJECTIONS: Final = CATALOGUE.counter(
    "mnemolog_rejections",
    "records and events of the log that could not be applied; duplicate_source counts repeated commits",
    labels=("reason",),
)
REPEATED_RECORDS: Final = CATALOGUE.counter(
    "mnemolog_projection_repeats", "log records delivered again after they were applied"
)
BATCH_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_projection_seconds",
    "time to apply one batch of commits to the tables",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
BATCH_RECORDS: Final = CATALOGUE.histogram(
    "mnemolog_projection_batch_records",
    "records of one batch of the projector",
    unit="records",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
)
TURN_TO_FACT_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_turn_to_fact_seconds",
    "from the broker's timestamp of a turn to the commit of its facts in the tables",
    buckets=(0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
RETRIES: Final = CATALOGUE.counter(
    "mnemolog_database_retries",
    "operations repeated because Postgres was unavailable or a statement timed out",
    labels=("operation",),
)
WAITING: Final = CATALOGUE.gauge(
    "mnemolog_database_waiting", "operations that are being repeated because Postgres is unavailable or too slow"
)
POOL_WAITING: Final = CATALOGUE.gauge(
    "mnemolog_pool_waiting", "requests that wait for a connection to Postgres", labels=("pool",)
)
