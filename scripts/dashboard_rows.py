"""The dashboard's rows of panels, in their order."""

from typing import Final

from scripts.backlog_row import BACKLOG
from scripts.decision_row import DECISIONS
from scripts.entity_row import ENTITIES
from scripts.figures import OVERWRITE_RATE_SHOWN, STAGES_DOWN, WRONG_OVERWRITE_RATE
from scripts.panel_model import Panel, Row
from scripts.promql import mean, or_zero, quantile, rate, total
from scripts.search_phases_row import SEARCH_PHASES
from scripts.search_row import SEARCH

CALL: Final = ("purpose", "model")
BATCH_RECORDS: Final = "mnemolog_projection_batch_records"
BATCH_SECONDS: Final = "mnemolog_projection_seconds"
TURN_TO_FACT: Final = "mnemolog_turn_to_fact_seconds"

OVERVIEW: Final = Row(
    title="Overview",
    panels=(
        Panel(
            title="Turn to fact",
            description="From the broker's time of a turn to its facts being in the tables.",
            unit="s",
            queries={"p50": quantile(0.5, TURN_TO_FACT), "p95": quantile(0.95, TURN_TO_FACT)},
            kind="stat",
            width=4,
        ),
        Panel(
            title="Turns ended",
            description="Turns a second that have ended, with any status.",
            unit="cps",
            queries={"turns": rate("mnemolog_commits_projected_total")},
            kind="stat",
            width=4,
        ),
        Panel(
            title="Overwrite rate",
            description="Of all decisions on statements in the time shown, the share by which a model ended a known "
            "fact.",
            unit="percentunit",
            queries={"overwritten": OVERWRITE_RATE_SHOWN},
            kind="stat",
            width=4,
        ),
        Panel(
            title="Wrong overwrites",
            description="Of the overwrites that models proposed in the last 30 days and that are settled, the share "
            "undone, rejected or corrected.",
            unit="percentunit",
            queries={"wrong": WRONG_OVERWRITE_RATE},
            kind="stat",
            width=4,
            red_from=0.1,
        ),
        Panel(
            title="Dead letters",
            description="In the time shown. Each is in the topic dead_letters with its bytes and its reason.",
            queries={"letters": or_zero(total("mnemolog_dead_letters_total"))},
            kind="stat",
            width=4,
            red_from=0.5,
        ),
        Panel(
            title="Stages without a worker",
            description="Stages of which no process is a member of its consumer group, or none is scraped: their turns "
            "wait.",
            queries={"stages": STAGES_DOWN},
            kind="stat",
            width=4,
            red_from=1,
        ),
    ),
)

LATENCY: Final = Row(
    title="Latency",
    panels=(
        Panel(
            title="Turn to fact over time",
            description="From the broker's time of a turn to its facts being in the tables.",
            unit="s",
            queries={"p50": quantile(0.5, TURN_TO_FACT), "p95": quantile(0.95, TURN_TO_FACT)},
        ),
        Panel(
            title="Seconds per stage, median",
            description="From the start of a record in a stage to its durable output.",
            unit="s",
            queries={"{{stage}}": quantile(0.5, "mnemolog_stage_seconds", "stage")},
        ),
        Panel(
            title="Seconds per stage, p95",
            description="From the start of a record in a stage to its durable output.",
            unit="s",
            queries={"{{stage}}": quantile(0.95, "mnemolog_stage_seconds", "stage")},
        ),
    ),
)

WINDOWS: Final = Row(
    title="Windows",
    panels=(
        Panel(
            title="Running",
            description="Records or batches being processed.",
            queries={"{{stage}}": "sum by (stage) (mnemolog_window_running)"},
            width=6,
        ),
        Panel(
            title="Pending",
            description="Records delivered and not acknowledged. At MNEMOLOG_MAX_PENDING a stage fetches no more.",
            queries={"{{stage}}": "sum by (stage) (mnemolog_window_pending)"},
            width=6,
        ),
        Panel(
            title="Oldest delivered",
            description="Time since the oldest record that is not acknowledged was delivered to the stage.",
            unit="s",
            queries={"{{stage}}": "max by (stage) (mnemolog_window_oldest_seconds)"},
            width=6,
        ),
        Panel(
            title="Stalled",
            description="Time since a record was last finished while some wait. MNEMOLOG_WATCHDOG restarts a stage.",
            unit="s",
            queries={"{{stage}}": "max by (stage) (mnemolog_window_stalled_seconds)"},
            width=6,
        ),
    ),
)

MODELS: Final = Row(
    title="Language and embedding models",
    panels=(
        Panel(
            title="Calls",
            description="Calls that answered.",
            unit="cps",
            queries={"{{purpose}} {{model}}": rate("mnemolog_model_calls_total", *CALL)},
        ),
        Panel(
            title="Tokens",
            description="Tokens a second as the provider counted them.",
            queries={
                "{{purpose}} {{model}} {{direction}}": rate("mnemolog_model_tokens_total", *CALL, "direction"),
                "{{purpose}} {{model}} prompt, {{result}}": rate("mnemolog_prompt_tokens_total", *CALL, "result"),
            },
        ),
        Panel(
            title="Money an hour",
            description="What calls cost by the price table; calls without a price are counted, and are not in it.",
            queries={
                "{{purpose}} {{model}}": f"3600 * {rate('mnemolog_model_cost_total', *CALL)}",
                "calls without a price, {{model}}": rate("mnemolog_model_unpriced_calls_total", "model"),
            },
        ),
        Panel(
            title="Seconds per call",
            description="Until the answer, waits and retries included.",
            unit="s",
            queries={
                "{{purpose}} {{model}} p50": quantile(0.5, "mnemolog_model_seconds", *CALL),
                "{{purpose}} {{model}} p95": quantile(0.95, "mnemolog_model_seconds", *CALL),
            },
        ),
        Panel(
            title="Errors",
            description="Calls that failed, by kind of failure.",
            unit="cps",
            queries={"{{purpose}} {{model}} {{error}}": rate("mnemolog_model_errors_total", *CALL, "error")},
        ),
        Panel(
            title="Re-prompts",
            description="Questions asked again because the reply was invalid.",
            unit="cps",
            queries={"{{purpose}}": rate("mnemolog_reprompts_total", "purpose")},
        ),
        Panel(
            title="Extractions without known facts",
            description="Reading the known facts failed, or took too long.",
            unit="cps",
            queries={"blind": rate("mnemolog_blind_extractions_total")},
        ),
        Panel(
            title="Turns per call",
            description="How many waiting turns of a conversation an extraction asks about at once.",
            queries={"mean": mean("mnemolog_call_turns"), "p95": quantile(0.95, "mnemolog_call_turns")},
        ),
        Panel(
            title="Turns asked alone",
            description="A call for several turns failed, or its reply had no part for them.",
            unit="cps",
            queries={"{{reason}}": rate("mnemolog_turns_asked_alone_total", "reason")},
        ),
        Panel(
            title="Texts per embedding call",
            description="How well texts of many turns share a call.",
            queries={"mean": mean("mnemolog_embedding_texts"), "p95": quantile(0.95, "mnemolog_embedding_texts")},
        ),
    ),
)

PROJECTION: Final = Row(
    title="Projection",
    panels=(
        Panel(
            title="Commits sent and projected",
            description="Where projected stays below sent, the tables fall behind the log.",
            unit="cps",
            queries={
                "sent": rate('mnemolog_records_sent_total{topic=~".*memory_events"}'),
                "projected": rate("mnemolog_commits_projected_total"),
            },
        ),
        Panel(
            title="Lag",
            description="Commits in the log that are not yet in the tables, by partition.",
            unit="short",
            queries={"partition {{partition}}": "max by (partition) (mnemolog_projection_lag)"},
        ),
        Panel(
            title="Seconds per batch",
            description="Time to fold one batch of commits into the tables.",
            unit="s",
            queries={"p50": quantile(0.5, BATCH_SECONDS), "p95": quantile(0.95, BATCH_SECONDS)},
        ),
        Panel(
            title="Records per batch",
            description="Large batches mean that the projector catches up.",
            queries={"mean": mean(BATCH_RECORDS), "p95": quantile(0.95, BATCH_RECORDS)},
        ),
    ),
)

TROUBLE: Final = Row(
    title="Errors and retries",
    panels=(
        Panel(
            title="Dead letters by stage and reason",
            description="Since the processes started.",
            queries={"{{stage}} {{reason}}": "sum by (stage, reason) (mnemolog_dead_letters_total)"},
        ),
        Panel(
            title="Crashes and failed starts",
            description="Since the processes started. Each is followed by a restart of that stage alone.",
            queries={"{{stage}}": "sum by (stage) (mnemolog_stage_crashes_total)"},
        ),
        Panel(
            title="Log records that could not be applied",
            description="By reason. duplicate_source is harmless.",
            queries={"{{reason}}": "sum by (reason) (mnemolog_rejections_total)"},
        ),
        Panel(
            title="Waiting for servers",
            description="Sends and database operations that were repeated.",
            unit="cps",
            queries={
                "send {{topic}}": rate("mnemolog_send_retries_total", "topic"),
                "database {{operation}}": rate("mnemolog_database_retries_total", "operation"),
                "background {{operation}}": rate("mnemolog_background_failures_total", "operation"),
            },
        ),
        Panel(
            title="Paused and held",
            description="Models that fail for all (1), records that are held, operations that wait for Postgres.",
            queries={
                "model {{purpose}} {{model}}": "max by (purpose, model) (mnemolog_model_paused)",
                "held by {{stage}}": "sum by (stage) (mnemolog_stage_held)",
                "database": "sum(mnemolog_database_waiting)",
            },
        ),
        Panel(
            title="Waiting for a connection",
            description="Requests that wait for a connection to Postgres.",
            queries={"{{pool}}": "sum by (pool) (mnemolog_pool_waiting)"},
        ),
        Panel(
            title="Repeated records",
            description="Delivered again after a crash or a rebalance; each was dropped.",
            unit="cps",
            queries={
                "dropped {{stage}}": rate("mnemolog_repeats_dropped_total", "stage"),
                "begun and redone {{stage}}": rate("mnemolog_drain_redone_total", "stage"),
                "already committed": rate("mnemolog_already_committed_total"),
                "already projected": rate("mnemolog_projection_repeats_total"),
                "published under a wrong key": rate("mnemolog_wrong_keys_total"),
            },
        ),
    ),
)

OUTAGES: Final = Row(
    title="Outages",
    panels=(
        Panel(
            title="Models that are paused",
            description="1 while all calls of a purpose wait because the model fails for all; nothing ends meanwhile.",
            queries={"{{purpose}} {{model}}": "max by (purpose, model) (mnemolog_model_paused)"},
        ),
        Panel(
            title="Failures held back",
            description="Records whose failure is held back because too many failed in a row.",
            queries={"{{stage}}": "sum by (stage) (mnemolog_stage_held)"},
        ),
        Panel(
            title="Operations that wait for Postgres",
            description="Operations that are being repeated because Postgres is unavailable.",
            queries={"waiting": "sum(mnemolog_database_waiting)"},
        ),
    ),
)

ROWS: Final = (
    *(OVERVIEW, LATENCY, BACKLOG, SEARCH_PHASES, WINDOWS, DECISIONS, ENTITIES, SEARCH, MODELS),
    *(PROJECTION, OUTAGES, TROUBLE),
)
