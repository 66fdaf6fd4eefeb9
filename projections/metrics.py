"""Every metric of this package: name, kind, unit and meaning; labels have few values and never name a user."""

from collections import Counter
from datetime import datetime
from typing import Final

from projections.catalogue import Catalogue
from projections.rows import Changes
from schemas.events import FactContradicted, FactReplaced, FactsMerged

CATALOGUE: Final = Catalogue()

COMMITS: Final = CATALOGUE.counter("mnemolog_commits_projected", "commits folded into the tables", labels=("outcome",))
EVENTS: Final = CATALOGUE.counter("mnemolog_events_projected", "events folded into the tables", labels=("event",))
OVERWRITES: Final = CATALOGUE.counter(
    "mnemolog_overwrites",
    "events that ended at least one known fact: replaced, contradicted or merged; "
    "divided by mnemolog_events_projected_total it is the overwrite rate",
    labels=("event",),
)
STALE: Final = CATALOGUE.counter(
    "mnemolog_stale_decisions", "events that met a target which no longer stood as the decision saw it"
)
REJECTIONS: Final = CATALOGUE.counter(
    "mnemolog_rejections",
    "records and events of the log that were not done as they say; duplicate_source counts repeated commits",
    labels=("reason",),
)
REPEATED: Final = CATALOGUE.counter(
    "mnemolog_projection_repeats", "records that were folded before and are delivered again"
)
BATCH_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_projection_seconds",
    "time to fold one batch of commits into the tables",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
BATCH_RECORDS: Final = CATALOGUE.histogram(
    "mnemolog_projection_batch_records",
    "records of one batch of the projector",
    unit="records",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
)
TURN_TO_FACT: Final = CATALOGUE.histogram(
    "mnemolog_turn_to_fact_seconds",
    "from the broker's time of a turn to its facts standing in the tables",
    buckets=(0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
RETRIES: Final = CATALOGUE.counter(
    "mnemolog_database_retries", "operations repeated because Postgres was away", labels=("operation",)
)
POOL_WAITING: Final = CATALOGUE.gauge(
    "mnemolog_pool_waiting", "requests that wait for a connection to Postgres", labels=("pool",)
)

_OVERWRITING: Final = (FactReplaced, FactContradicted, FactsMerged)


def count(changes: Changes, now: datetime) -> None:
    """Count what has been committed to the tables; `now` is when it was seen there."""
    for outcome, number in Counter(row.commit.outcome for row in changes.commits).items():
        COMMITS.labels(outcome=outcome).inc(number)
    for event, number in Counter(row.event.event for row in changes.events).items():
        EVENTS.labels(event=event).inc(number)
    for reason, number in Counter(row.reason for row in changes.rejections).items():
        REJECTIONS.labels(reason=reason).inc(number)
    ending = {row.fact.fact_id for row in changes.facts if row.supersedes}
    for row in changes.events:
        if isinstance(row.event, _OVERWRITING) and row.fact_id in ending:
            OVERWRITES.labels(event=row.event.event).inc()
    STALE.inc(sum(row.stale for row in changes.events))
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "facts":
            TURN_TO_FACT.observe(max(0.0, (now - commit.published_at).total_seconds()))
