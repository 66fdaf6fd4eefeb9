"""Every metric of this package. Labels have few values and never name a user."""

from typing import Final

from mnemolog.common.metric_catalogue import MetricCatalogue

CATALOGUE: Final = MetricCatalogue()

RECORDS_SENT: Final = CATALOGUE.counter(
    "mnemolog_records_sent", "records acknowledged by the broker", labels=("topic",)
)
SEND_RETRIES: Final = CATALOGUE.counter(
    "mnemolog_send_retries", "sends retried after a temporary failure", labels=("topic",)
)
DEAD_LETTERED: Final = CATALOGUE.counter(
    "mnemolog_dead_letters", "records written to the topic dead_letters", labels=("stage", "reason")
)
REPEATS_DROPPED: Final = CATALOGUE.counter(
    "mnemolog_repeats_dropped", "records skipped because their origin was already processed", labels=("stage",)
)
STAGE_HELD: Final = CATALOGUE.gauge(
    "mnemolog_stage_held",
    "records whose failure is held back because too many failed in a row; one of them is tried again now and then",
    labels=("stage",),
)
STAGE_CRASHES: Final = CATALOGUE.counter(
    "mnemolog_stage_crashes", "crashes and failed starts of a stage, each followed by a restart", labels=("stage",)
)
STAGE_READY: Final = CATALOGUE.gauge(
    "mnemolog_stage_ready", "1 while the stage is a member of its consumer group", labels=("stage",)
)
WINDOW_RUNNING: Final = CATALOGUE.gauge(
    "mnemolog_window_running", "records or batches being processed", labels=("stage",)
)
WINDOW_PENDING: Final = CATALOGUE.gauge(
    "mnemolog_window_pending",
    "records in memory that the stage has not finished; in a chain, without those that a later stage has",
    labels=("stage",),
)
WINDOW_OLDEST: Final = CATALOGUE.gauge(
    "mnemolog_window_oldest_seconds",
    "time since the oldest record that is not acknowledged was delivered to the stage; in a chain, a record is "
    "acknowledged by all stages when the last has finished it; what is not fetched yet is in "
    "mnemolog_backlog_oldest_seconds",
    unit="seconds",
    labels=("stage",),
)
WINDOW_STALLED: Final = CATALOGUE.gauge(
    "mnemolog_window_stalled_seconds",
    "time since a record was last finished, or handed on to the next stage of the same worker, while some are pending",
    unit="seconds",
    labels=("stage",),
)
UNFETCHED: Final = CATALOGUE.gauge(
    "mnemolog_unfetched_seconds",
    "time since Kafka answered a fetch of a partition that this worker's stage has, while its window had room for more",
    unit="seconds",
    labels=("stage", "partition"),
)
DRAIN_REDONE: Final = CATALOGUE.counter(
    "mnemolog_drain_redone",
    "records started before a rebalance or stop that will be processed again",
    labels=("stage",),
)
STAGE_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_stage_seconds",
    "time from the start of processing until the output is durable, or handed on to the next stage of the same worker; "
    "journal and project measure batches",
    labels=("stage",),
)
MODEL_CALLS: Final = CATALOGUE.counter(
    "mnemolog_model_calls", "calls of language and embedding models that answered", labels=("purpose", "model")
)
MODEL_ERRORS: Final = CATALOGUE.counter(
    "mnemolog_model_errors", "calls that failed, by kind of failure", labels=("purpose", "model", "error")
)
MODEL_PAUSED: Final = CATALOGUE.gauge(
    "mnemolog_model_paused",
    "1 while all calls of a purpose wait because the model fails for all; nothing ends meanwhile",
    labels=("purpose", "model"),
)
MODEL_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_model_seconds", "time until a call's answer, waits and retries included", labels=("purpose", "model")
)
MODEL_TOKENS: Final = CATALOGUE.counter(
    "mnemolog_model_tokens",
    "tokens as the provider counted them",
    unit="tokens",
    labels=("purpose", "model", "direction"),
)
MODEL_COST: Final = CATALOGUE.counter(
    "mnemolog_model_cost",
    "money for the calls of models that have a price, in the currency of the price table",
    labels=("purpose", "model"),
)
UNPRICED_CALLS: Final = CATALOGUE.counter(
    "mnemolog_model_unpriced_calls",
    "calls whose cost is unknown, because their model has no price or its server counts no tokens",
    labels=("purpose", "model"),
)
OVER_BUDGET: Final = CATALOGUE.counter(
    "mnemolog_over_budget",
    "turns that met a budget of the day that was spent, by what became of them: reject or raw",
    labels=("result",),
)
PROMPT_TOKENS: Final = CATALOGUE.counter(
    "mnemolog_prompt_tokens",
    "tokens of prompts that the server had in its cache, or read fresh; only of servers that tell",
    unit="tokens",
    labels=("purpose", "model", "result"),
)
EMBEDDING_TEXTS: Final = CATALOGUE.histogram(
    "mnemolog_embedding_texts",
    "texts in one embedding call",
    unit="texts",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
)
CALL_TURNS: Final = CATALOGUE.histogram(
    "mnemolog_call_turns",
    "turns that one call for an extraction asks about",
    unit="turns",
    buckets=(1, 2, 3, 5, 8, 12, 20, 35, 60, 100),
)
TURNS_ASKED_ALONE: Final = CATALOGUE.counter(
    "mnemolog_turns_asked_alone",
    "turns that a call for several turns gave no part for, so that they are asked about alone: the call was refused, "
    "or its reply has no part for the turn",
    labels=("reason",),
)
REPROMPTS: Final = CATALOGUE.counter(
    "mnemolog_reprompts", "questions asked again because the reply was invalid", labels=("purpose",)
)
BLIND_EXTRACTIONS: Final = CATALOGUE.counter(
    "mnemolog_blind_extractions",
    "extractions without known facts, because reading these failed or took too long",
    unit="turns",
)
FACTS_DROPPED: Final = CATALOGUE.counter(
    "mnemolog_facts_dropped", "extracted statements dropped before the decision", unit="facts", labels=("reason",)
)
UNRESOLVED: Final = CATALOGUE.counter(
    "mnemolog_unresolved",
    "conflicting facts added as unresolved because no valid LLM decision was available",
    unit="facts",
)
WRONG_KEYS: Final = CATALOGUE.counter(
    "mnemolog_wrong_keys",
    "turns and commands found without their owner's key or outside its partition, and published again there",
)
ALREADY_COMMITTED: Final = CATALOGUE.counter(
    "mnemolog_already_committed", "turns and commands that reached resolve after their commit"
)
BACKLOG_RECORDS: Final = CATALOGUE.gauge(
    "mnemolog_backlog_records",
    "records of the stage's topic that it has not committed; what a chain holds counts for its first stage",
    unit="records",
    labels=("stage", "partition"),
)
BACKLOG_OLDEST: Final = CATALOGUE.gauge(
    "mnemolog_backlog_oldest_seconds",
    "time since the broker appended the oldest record that the stage has not committed; 0 where there is none",
    unit="seconds",
    labels=("stage", "partition"),
)
FIGURES_SUCCEEDED: Final = CATALOGUE.gauge(
    "mnemolog_figures_last_success_timestamp_seconds",
    "when gauges that are computed from time to time were last computed, as Unix time, 0 where never: quality "
    "(mnemolog_recent_*, mnemolog_pending*, mnemolog_unresolved_facts), lag (mnemolog_projection_lag), backlog "
    "(mnemolog_backlog_*)",
    unit="seconds",
    labels=("figures",),
)
PROJECTION_LAG: Final = CATALOGUE.gauge(
    "mnemolog_projection_lag",
    "commits in the log that are not yet in the tables",
    unit="commits",
    labels=("partition",),
)
BACKGROUND_FAILURES: Final = CATALOGUE.counter(
    "mnemolog_background_failures",
    "failed rounds of what a worker does beside its stages",
    labels=("operation",),
)
