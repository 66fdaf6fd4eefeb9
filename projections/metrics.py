"""Every metric of this package: name, kind, unit and meaning; labels have few values and never name a user."""

from typing import Final

from mnemolog.common.metric_catalogue import MetricCatalogue

CATALOGUE: Final = MetricCatalogue()
TURN_TO_FACT_BUCKETS: Final = (
    *(0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
    *(900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0),
)
"""Up to a day: turns wait while a model, Postgres or Kafka is unavailable."""

COMMITS: Final = CATALOGUE.counter("mnemolog_commits_projected", "commits applied to the tables", labels=("outcome",))
EVENTS: Final = CATALOGUE.counter(
    "mnemolog_events_projected",
    "events applied to the tables, by who decided",
    labels=("event", "by"),
)
OVERWRITES: Final = CATALOGUE.counter(
    "mnemolog_overwrites",
    "overwrites carried out, counted at the event that ended a known fact; by, model and prompt_version are of who "
    "proposed it: of a held one the model, whoever confirmed it",
    labels=("event", "by", "model", "prompt_version"),
)
OVERWRITES_TAKEN_BACK: Final = CATALOGUE.counter(
    "mnemolog_overwrites_taken_back",
    "times that an overwrite proposed by a model or rule was undone, rejected while pending, or corrected by a person",
    labels=("how", "model", "prompt_version"),
)
HELD_OVERWRITES: Final = CATALOGUE.gauge(
    "mnemolog_recent_held",
    "overwrites held for confirmation in the last 30 days, from the tables: confirmed, rejected, overtaken or open",
    labels=("settlement",),
)
RECENT_OVERWRITES: Final = CATALOGUE.gauge(
    "mnemolog_recent_overwrites",
    "overwrites that models proposed in the last 30 days, from the tables, by result: kept, undone, rejected, "
    "corrected, open (held back and not settled) or overtaken (held back, and settled without a decision on it)",
    labels=("result", "model", "prompt_version"),
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
FEEDBACK: Final = CATALOGUE.gauge(
    "mnemolog_recent_feedback_facts",
    "facts that feedback of the last 30 days names as used, from the tables, by the rank at which a search or a "
    "context showed them (1, 2-5, 6-10, 11-20, 21+, or missed)",
    labels=("rank",),
)
ENTITIES: Final = CATALOGUE.counter(
    "mnemolog_entities_registered",
    "entities that were new, by type; possible_twin says whether one may be the same as another one (yes or no)",
    labels=("type", "possible_twin"),
)
ENTITY_LINKS: Final = CATALOGUE.counter(
    "mnemolog_entity_links",
    "links of facts to the entities that they name, by the step that found the entity; new for one that was not known",
    labels=("step",),
)
ENTITY_CHANGES: Final = CATALOGUE.counter(
    "mnemolog_entity_changes",
    "merges, splits, names and other decisions about entities, and what was undone of them, by who decided",
    labels=("event", "by"),
)
TURN_LINKS: Final = CATALOGUE.histogram(
    "mnemolog_turn_entity_links",
    "links to entities that the facts of one turn have, of turns with facts",
    unit="links",
    buckets=(0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89),
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
    buckets=TURN_TO_FACT_BUCKETS,
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
