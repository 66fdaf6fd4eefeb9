"""The Grafana dashboard: its rows of panels in their order, and the JSON that Grafana reads."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from scripts.figures import (
    OVERWRITE_RATE,
    OVERWRITE_RATE_SHOWN,
    PROPOSER,
    SETTLED,
    STAGES_DOWN,
    STAGES_READY,
    WRONG,
    WRONG_OVERWRITE_RATE,
    WRONG_OVERWRITE_RATE_BY_MODEL,
    mean,
    or_zero,
    quantile,
    rate,
    recall_by_feedback,
    recent,
    share_of_each,
    total,
)

DATASOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
COLUMNS: Final = 24
HEIGHT: Final = {"stat": 4, "timeseries": 8}
CALL: Final = ("purpose", "model")
BATCH_RECORDS: Final = "mnemolog_projection_batch_records"
BATCH_SECONDS: Final = "mnemolog_projection_seconds"
TURN_TO_FACT: Final = "mnemolog_turn_to_fact_seconds"
READ: Final = ("operation", "outcome")
RECENT_PENDING: Final = "max by (settlement) (mnemolog_recent_held)"
TURN_LINKS: Final = "mnemolog_turn_entity_links"
SEARCH_HITS: Final = "mnemolog_client_search_hits_total"
QUERY_VECTORS: Final = "mnemolog_client_query_vectors_total"
CONTEXT_TOKENS: Final = "mnemolog_client_context_tokens"


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph or number; `unit` is Grafana's name of it, `description` its help text.

    `queries` gives PromQL by what Grafana calls the series, `{{label}}` being a label's value. `red_from` is the value
    from which a number is red; one that is missing says so and is not green.
    """

    title: str
    description: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: Literal["stat", "timeseries"] = "timeseries"
    width: int = 8
    red_from: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


ROWS: Final = (
    Row(
        "Overview",
        (
            Panel(
                "Turn to fact",
                "From the broker's time of a turn to its facts being in the tables.",
                {"p50": quantile(0.5, TURN_TO_FACT), "p95": quantile(0.95, TURN_TO_FACT)},
                unit="s",
                kind="stat",
                width=4,
            ),
            Panel(
                "Turns ended",
                "Turns a second that have ended, with any status.",
                {"turns": rate("mnemolog_commits_projected_total")},
                unit="cps",
                kind="stat",
                width=4,
            ),
            Panel(
                "Overwrite rate",
                "Of all decisions on statements in the time shown, the share by which a model ended a known fact.",
                {"overwritten": OVERWRITE_RATE_SHOWN},
                unit="percentunit",
                kind="stat",
                width=4,
            ),
            Panel(
                "Wrong overwrites",
                "Of the overwrites of models and rules in the last 30 days that are settled, the share undone, "
                "rejected or corrected.",
                {"wrong": WRONG_OVERWRITE_RATE},
                unit="percentunit",
                kind="stat",
                width=4,
                red_from=0.1,
            ),
            Panel(
                "Dead letters",
                "In the time shown. Each is in the topic dead_letters with its bytes and its reason.",
                {"letters": or_zero(total("mnemolog_dead_letters_total"))},
                kind="stat",
                width=4,
                red_from=0.5,
            ),
            Panel(
                "Stages without a worker",
                "Stages of which no process is a member of its consumer group, or none is scraped: their turns wait.",
                {"stages": STAGES_DOWN},
                kind="stat",
                width=4,
                red_from=1,
            ),
        ),
    ),
    Row(
        "Latency",
        (
            Panel(
                "Turn to fact over time",
                "From the broker's time of a turn to its facts being in the tables.",
                {"p50": quantile(0.5, TURN_TO_FACT), "p95": quantile(0.95, TURN_TO_FACT)},
                unit="s",
            ),
            Panel(
                "Seconds per stage, median",
                "From the start of a record in a stage to its durable output.",
                {"{{stage}}": quantile(0.5, "mnemolog_stage_seconds", "stage")},
                unit="s",
            ),
            Panel(
                "Seconds per stage, p95",
                "From the start of a record in a stage to its durable output.",
                {"{{stage}}": quantile(0.95, "mnemolog_stage_seconds", "stage")},
                unit="s",
            ),
        ),
    ),
    Row(
        "Backlog",
        (
            Panel(
                "Unread records",
                "Records of its topic that a stage has not committed, also while no process runs it.",
                {"{{stage}}": "sum by (stage) (max by (stage, partition) (mnemolog_backlog_records))"},
            ),
            Panel(
                "Oldest unread record",
                "Time since the broker appended the oldest record that the stage has not committed.",
                {"{{stage}}": "max by (stage) (mnemolog_backlog_oldest_seconds)"},
                unit="s",
            ),
            Panel(
                "Oldest unread record by partition",
                "A single late partition is one that waits for a record, or that nobody has.",
                {"{{stage}} {{partition}}": "max by (stage, partition) (mnemolog_backlog_oldest_seconds) > 5"},
                unit="s",
            ),
            Panel(
                "Stages with a worker",
                "1 while a process is a member of the stage's group; 0 also where no process is scraped.",
                {"{{stage}}": STAGES_READY},
            ),
            Panel(
                "Age of computed gauges",
                "Time since quality, lag and backlog were last computed; what is older shows what was.",
                {"{{figures}}": "time() - max by (figures) (mnemolog_figures_last_success_timestamp_seconds)"},
                unit="s",
            ),
            Panel(
                "Reading calls of clients, p95",
                "As the application waits for them; of applications that export their registry to this Prometheus.",
                {"{{operation}} {{outcome}}": quantile(0.95, "mnemolog_client_query_seconds", *READ)},
                unit="s",
            ),
            Panel(
                "HTTP requests, p95",
                "By route and status, with what they wait for.",
                {"{{route}} {{status}}": quantile(0.95, "mnemolog_http_request_seconds", "route", "status")},
                unit="s",
            ),
            Panel(
                "HTTP requests a second",
                "By route and status.",
                {"{{route}} {{status}}": rate("mnemolog_http_request_seconds_count", "route", "status")},
                unit="reqps",
            ),
        ),
    ),
    Row(
        "Parts of a search",
        (
            Panel(
                "Parts of a search, p95",
                "The vector of the question, other wordings from a model, the statement, and the order that a model "
                "gives; of applications that export their registry to this Prometheus.",
                {"{{phase}}": quantile(0.95, "mnemolog_client_search_seconds", "phase")},
                unit="s",
            ),
            Panel(
                "Hits by what found them",
                "The share of hits with a word in common, with a vector near enough, or both. Words and both are the "
                "lexical hit rate, vector and both the vector hit rate.",
                {"{{found_by}}": share_of_each(rate(SEARCH_HITS, "found_by"), rate(SEARCH_HITS))},
                unit="percentunit",
            ),
            Panel(
                "Vectors of questions",
                "Hits need no embedder: the same question was asked before.",
                {"{{outcome}}": rate(QUERY_VECTORS, "outcome")},
                unit="cps",
            ),
        ),
    ),
    Row(
        "Windows",
        (
            Panel(
                "Running",
                "Records or batches being processed.",
                {"{{stage}}": "sum by (stage) (mnemolog_window_running)"},
                width=6,
            ),
            Panel(
                "Pending",
                "Records delivered and not acknowledged. At MNEMOLOG_MAX_PENDING a stage fetches no more.",
                {"{{stage}}": "sum by (stage) (mnemolog_window_pending)"},
                width=6,
            ),
            Panel(
                "Oldest delivered",
                "Time since the oldest record that is not acknowledged was delivered to the stage.",
                {"{{stage}}": "max by (stage) (mnemolog_window_oldest_seconds)"},
                unit="s",
                width=6,
            ),
            Panel(
                "Stalled",
                "Time since a record was last finished while some wait. MNEMOLOG_WATCHDOG restarts a stage.",
                {"{{stage}}": "max by (stage) (mnemolog_window_stalled_seconds)"},
                unit="s",
                width=6,
            ),
            Panel(
                "Not fetched",
                "Time since Kafka answered a fetch of a partition that a worker has, while its window had room.",
                {"{{stage}} {{partition}}": "max by (stage, partition) (mnemolog_unfetched_seconds) > 5"},
                unit="s",
            ),
        ),
    ),
    Row(
        "Decisions",
        (
            Panel(
                "Decisions by kind",
                "Events folded into the tables.",
                {"{{event}}": rate("mnemolog_events_projected_total", "event")},
                unit="cps",
            ),
            Panel(
                "Overwrites",
                "Events that ended at least one known fact, by who proposed it: model, rule, person or timer.",
                {"{{event}} by {{by}} {{model}}": rate("mnemolog_overwrites_total", "event", "by", "model")},
                unit="cps",
            ),
            Panel(
                "Overwrite rate",
                "Overwrites that models proposed, divided by all decisions on statements. Check it after a change of "
                "model or prompt.",
                {"overwritten": OVERWRITE_RATE},
                unit="percentunit",
            ),
            Panel(
                "Wrong-overwrite rate",
                "Of the overwrites of models and rules in the last 30 days that are settled, the share that was "
                "wrong, by how.",
                {"all": WRONG_OVERWRITE_RATE, "{{result}}": share_of_each(recent(WRONG, "result"), recent(SETTLED))},
                unit="percentunit",
            ),
            Panel(
                "Wrong-overwrite rate by model",
                "The same for each model and prompt version that proposed overwrites.",
                {"{{model}} {{prompt_version}}": WRONG_OVERWRITE_RATE_BY_MODEL},
                unit="percentunit",
            ),
            Panel(
                "Overwrites undone, rejected or corrected",
                "Proposed by models and rules; by how: undone, rejected while pending, or corrected by a person.",
                {
                    "{{how}} {{model}} {{prompt_version}}": rate(
                        "mnemolog_overwrites_taken_back_total", "how", *PROPOSER
                    )
                },
                unit="cps",
            ),
            Panel(
                "Pending and unresolved",
                "Overwrites that wait for a confirmation, and facts whose conflict could not be decided.",
                {"pending": "max(mnemolog_pending)", "unresolved": "max(mnemolog_unresolved_facts)"},
            ),
            Panel(
                "Age of pending facts",
                "The oldest pending fact, and the median time until one was settled in the last 30 days.",
                {
                    "oldest": "max(mnemolog_pending_oldest_seconds)",
                    "median until settled": "max(mnemolog_pending_median_seconds)",
                },
                unit="s",
            ),
            Panel(
                "Pending facts by outcome",
                "Of the overwrites held back in the last 30 days, the share by settlement; confirmed and rejected "
                "together are the resolution rate.",
                {"{{settlement}}": share_of_each(RECENT_PENDING, f"sum({RECENT_PENDING})")},
                unit="percentunit",
            ),
            Panel(
                "Ends of turns",
                "Commits folded into the tables, by outcome.",
                {"{{outcome}}": rate("mnemolog_commits_projected_total", "outcome")},
                unit="cps",
            ),
            Panel(
                "Budgets of the day",
                "Turns that met a spent budget, by what became of them.",
                {"{{result}} a second": rate("mnemolog_over_budget_total", "result")},
            ),
            Panel(
                "Statements not stored",
                "Left out before anything was decided about them, by reason.",
                {"{{reason}}": rate("mnemolog_facts_dropped_total", "reason")},
                unit="cps",
            ),
            Panel(
                "Unresolved and stale decisions",
                "Unresolved: kept beside the known fact because no valid decision was made. Stale: the target had "
                "changed since.",
                {"unresolved": rate("mnemolog_unresolved_total"), "stale": rate("mnemolog_stale_decisions_total")},
                unit="cps",
            ),
        ),
    ),
    Row(
        "Entities",
        (
            Panel(
                "Names by what found their entity",
                "Links of facts to entities by step; new is an entity that was not known.",
                {"{{step}}": rate("mnemolog_entity_links_total", "step")},
                unit="cps",
            ),
            Panel(
                "New entities",
                "Entities that were registered, by type.",
                {"{{type}}": rate("mnemolog_entities_registered_total", "type")},
                unit="cps",
            ),
            Panel(
                "Possible twins",
                "Entities that were registered, by whether each may be the same as another one.",
                {"possible twin: {{possible_twin}}": rate("mnemolog_entities_registered_total", "possible_twin")},
                unit="cps",
            ),
            Panel(
                "Decisions about entities",
                "Merges, splits, names and undos, by who decided: a person, a model or a rule.",
                {"{{event}} by {{by}}": rate("mnemolog_entity_changes_total", "event", "by")},
                unit="cps",
            ),
            Panel(
                "Links per turn",
                "Links to entities that the facts of a turn have: mean and 95th percentile.",
                {"mean": mean(TURN_LINKS), "95 %": quantile(0.95, TURN_LINKS)},
            ),
        ),
    ),
    Row(
        "Searches and contexts",
        (
            Panel(
                "Top-k recall by feedback",
                "Of the facts that feedback of the last 30 days names as used, the share that was shown within the "
                "first 1, 5, 10 and 20.",
                {
                    "first 1": recall_by_feedback("1"),
                    "first 5": recall_by_feedback("1|2-5"),
                    "first 10": recall_by_feedback("1|2-5|6-10"),
                    "first 20": recall_by_feedback("1|2-5|6-10|11-20"),
                },
                unit="percentunit",
            ),
            Panel(
                "Tokens of a context",
                "Tokens of the contexts that applications made for prompts, as counted or estimated.",
                {"p50": quantile(0.5, CONTEXT_TOKENS), "p95": quantile(0.95, CONTEXT_TOKENS)},
            ),
            Panel(
                "Facts left out of contexts",
                "By reason: for want of room, or because no doubtful ones were wanted.",
                {"{{reason}}": rate("mnemolog_client_context_left_out_total", "reason")},
                unit="cps",
            ),
        ),
    ),
    Row(
        "Language and embedding models",
        (
            Panel(
                "Calls",
                "Calls that answered.",
                {"{{purpose}} {{model}}": rate("mnemolog_model_calls_total", *CALL)},
                unit="cps",
            ),
            Panel(
                "Tokens",
                "Tokens a second as the provider counted them.",
                {
                    "{{purpose}} {{model}} {{direction}}": rate("mnemolog_model_tokens_total", *CALL, "direction"),
                    "{{purpose}} {{model}} prompt, {{result}}": rate("mnemolog_prompt_tokens_total", *CALL, "result"),
                },
            ),
            Panel(
                "Money an hour",
                "What calls cost by the price table; calls without a price are counted, and are not in it.",
                {
                    "{{purpose}} {{model}}": f"3600 * {rate('mnemolog_model_cost_total', *CALL)}",
                    "calls without a price, {{model}}": rate("mnemolog_model_unpriced_calls_total", "model"),
                },
            ),
            Panel(
                "Seconds per call",
                "Until the answer, waits and retries included.",
                {
                    "{{purpose}} {{model}} p50": quantile(0.5, "mnemolog_model_seconds", *CALL),
                    "{{purpose}} {{model}} p95": quantile(0.95, "mnemolog_model_seconds", *CALL),
                },
                unit="s",
            ),
            Panel(
                "Errors",
                "Calls that failed, by kind of failure.",
                {"{{purpose}} {{model}} {{error}}": rate("mnemolog_model_errors_total", *CALL, "error")},
                unit="cps",
            ),
            Panel(
                "Re-prompts",
                "Questions asked again because the reply was invalid.",
                {"{{purpose}}": rate("mnemolog_reprompts_total", "purpose")},
                unit="cps",
            ),
            Panel(
                "Extractions without known facts",
                "Reading the known facts failed, or took too long.",
                {"blind": rate("mnemolog_blind_extractions_total")},
                unit="cps",
            ),
            Panel(
                "Turns per call",
                "How many waiting turns of a conversation an extraction asks about at once.",
                {"mean": mean("mnemolog_call_turns"), "p95": quantile(0.95, "mnemolog_call_turns")},
            ),
            Panel(
                "Turns asked alone",
                "A call for several turns failed, or its reply had no part for them.",
                {"{{reason}}": rate("mnemolog_turns_asked_alone_total", "reason")},
                unit="cps",
            ),
            Panel(
                "Texts per embedding call",
                "How well texts of many turns share a call.",
                {"mean": mean("mnemolog_embedding_texts"), "p95": quantile(0.95, "mnemolog_embedding_texts")},
            ),
        ),
    ),
    Row(
        "Projection",
        (
            Panel(
                "Commits sent and projected",
                "Where projected stays below sent, the tables fall behind the log.",
                {
                    "sent": rate('mnemolog_records_sent_total{topic=~".*memory_events"}'),
                    "projected": rate("mnemolog_commits_projected_total"),
                },
                unit="cps",
            ),
            Panel(
                "Lag",
                "Commits in the log that are not yet in the tables, by partition.",
                {"partition {{partition}}": "max by (partition) (mnemolog_projection_lag)"},
            ),
            Panel(
                "Seconds per batch",
                "Time to fold one batch of commits into the tables.",
                {"p50": quantile(0.5, BATCH_SECONDS), "p95": quantile(0.95, BATCH_SECONDS)},
                unit="s",
            ),
            Panel(
                "Records per batch",
                "Large batches mean that the projector catches up.",
                {"mean": mean(BATCH_RECORDS), "p95": quantile(0.95, BATCH_RECORDS)},
            ),
        ),
    ),
    Row(
        "Outages",
        (
            Panel(
                "Models that are paused",
                "1 while all calls of a purpose wait because the model fails for all; nothing ends meanwhile.",
                {"{{purpose}} {{model}}": "max by (purpose, model) (mnemolog_model_paused)"},
            ),
            Panel(
                "Failures held back",
                "Records whose failure is held back because too many failed in a row.",
                {"{{stage}}": "sum by (stage) (mnemolog_stage_held)"},
            ),
            Panel(
                "Operations that wait for Postgres",
                "Operations that are being repeated because Postgres is unavailable.",
                {"waiting": "sum(mnemolog_database_waiting)"},
            ),
        ),
    ),
    Row(
        "Errors and retries",
        (
            Panel(
                "Dead letters by stage and reason",
                "Since the processes started.",
                {"{{stage}} {{reason}}": "sum by (stage, reason) (mnemolog_dead_letters_total)"},
            ),
            Panel(
                "Crashes and failed starts",
                "Since the processes started. Each is followed by a restart of that stage alone.",
                {"{{stage}}": "sum by (stage) (mnemolog_stage_crashes_total)"},
            ),
            Panel(
                "Log records that could not be applied",
                "By reason. duplicate_source is harmless.",
                {"{{reason}}": "sum by (reason) (mnemolog_rejections_total)"},
            ),
            Panel(
                "Waiting for servers",
                "Sends and database operations that were repeated.",
                {
                    "send {{topic}}": rate("mnemolog_send_retries_total", "topic"),
                    "database {{operation}}": rate("mnemolog_database_retries_total", "operation"),
                    "background {{operation}}": rate("mnemolog_background_failures_total", "operation"),
                },
                unit="cps",
            ),
            Panel(
                "Paused and held",
                "Models that fail for all (1), records that are held, operations that wait for Postgres.",
                {
                    "model {{purpose}} {{model}}": "max by (purpose, model) (mnemolog_model_paused)",
                    "held by {{stage}}": "sum by (stage) (mnemolog_stage_held)",
                    "database": "sum(mnemolog_database_waiting)",
                },
            ),
            Panel(
                "Waiting for a connection",
                "Requests that wait for a connection to Postgres.",
                {"{{pool}}": "sum by (pool) (mnemolog_pool_waiting)"},
            ),
            Panel(
                "Repeated records",
                "Delivered again after a crash or a rebalance; each was dropped.",
                {
                    "dropped {{stage}}": rate("mnemolog_repeats_dropped_total", "stage"),
                    "begun and redone {{stage}}": rate("mnemolog_drain_redone_total", "stage"),
                    "already committed": rate("mnemolog_already_committed_total"),
                    "already projected": rate("mnemolog_projection_repeats_total"),
                    "published under a wrong key": rate("mnemolog_wrong_keys_total"),
                },
                unit="cps",
            ),
        ),
    ),
)


def dashboard() -> str:
    """What Grafana reads from grafana/dashboards/mnemolog.json."""
    content = {
        "uid": "mnemolog",
        "title": "Mnemolog",
        "description": "Latency, cost, decisions and errors of all stages. Written by `make generate`.",
        "tags": ["mnemolog"],
        "schemaVersion": 41,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "panels": [{"id": number, **panel} for number, panel in enumerate(_layout(), start=1)],
    }
    return json.dumps(content, indent=2) + "\n"


def _layout() -> Iterator[dict[str, Any]]:
    y = 0
    for row in ROWS:
        yield {"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _at(0, y, COLUMNS, 1)}
        x, y = 0, y + 1
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y = 0, y + HEIGHT[panel.kind]
            yield _panel_json(panel, _at(x, y, panel.width, HEIGHT[panel.kind]))
            x += panel.width
        y += HEIGHT[row.panels[-1].kind]


def _at(x: int, y: int, w: int, h: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def _panel_json(panel: Panel, position: dict[str, int]) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, **_colors(panel)}, "overrides": []},
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATASOURCE,
                "expr": expr,
                "legendFormat": legend,
            }
            for number, (legend, expr) in enumerate(panel.queries.items())
        ],
    }


def _colors(panel: Panel) -> dict[str, Any]:
    if panel.red_from is None:
        return {}
    steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.red_from}]
    return {
        "noValue": "no data",
        "color": {"mode": "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        color = "none" if panel.red_from is None else "background"
        # `last` and not `lastNotNull`: where the newest value is missing, an older one is not the figure.
        return {"reduceOptions": {"calcs": ["last"]}, "colorMode": color, "graphMode": "area"}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
