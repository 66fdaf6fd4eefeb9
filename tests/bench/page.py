"""The page of results: the figures of a run, set into a text written by hand."""

from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Final

from tests.bench.command_latency import KINDS
from tests.bench.markdown import table, wrapped
from tests.bench.named_turns import SAID
from tests.bench.page_ratios import ratios
from tests.bench.plan import MODEL_SECONDS, Results
from tests.bench.ratios import ratio_table
from tests.bench.rival.comparison import FIGURES, Comparison
from tests.bench.rival.report import report
from tests.bench.sample_turns import USERS
from tests.bench.scaling import scaling_table
from tests.bench.scope_cost import ScopeCost
from tests.bench.shared_calls import BACKLOG, LINGER_SECONDS, LINGER_USERS, backlog_table, linger_table
from tests.bench.shared_calls import USERS as BACKLOG_USERS
from tests.bench.statistics import Percentiles, Rate
from tests.bench.turn_throughput import IN_FLIGHT, Throughput
from tests.bench.understanding_cost import USERS as NAMED_USERS
from tests.bench.understanding_cost import cost_table

TEMPLATE: Final = Path(__file__).with_name("performance.md.in")
STAGES: Final = "a process for each stage"


def page(results: Results) -> str:
    """Raises KeyError where the text asks for a figure that there is none of."""
    machine, plan, stick = results.machine, results.plan, results.machine_baseline
    best, smart = results.best_smart
    fields = {
        "when": f"{machine.at:%Y-%m-%d %H:%M} UTC",
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB, {machine.system}",
        "versions": ", ".join([f"Python {machine.python}", *(f"{name} {at}" for name, at in machine.packages.items())]),
        "load": f"{machine.load:.1f}",
        "load_end": f"{results.load_at_the_end:.1f}",
        "seconds": f"{plan.seconds:g}",
        "warm_up": f"{plan.warm_up:g}",
        "users": str(USERS),
        "in_flight": str(IN_FLIGHT),
        "model_ms": f"{MODEL_SECONDS * 1000:g}",
        "python_ms": f"{stick.python:.0f}",
        "kafka_rate": f"{stick.kafka:.0f}",
        "sql": _ms(stick.sql),
        "best": best,
        "raw_best": results.best_raw[0],
        "ratio_table": ratio_table("measured", "yardstick of the same run", ratios(results)),
        "comparison": _comparison(),
        **_scaling(results),
        "calls": f"{smart.costs.llm_calls:.2f}",
        "tokens": f"{smart.costs.prompt_tokens:.0f}",
        "said": f"{smart.costs.reply_tokens:.0f}",
        "embedding_calls": f"{smart.costs.embedding_calls:.3f}",
        "facts": f"{smart.costs.facts:.2f}",
        "acknowledged": _ms(results.publish_latency),
        "smart_table": _throughputs(results.smart.items()),
        "raw_table": _throughputs(results.raw.items()),
        "latency_table": _latencies(results),
        "stage_table": _stages(results),
        "idle_table": table(("workers", "% of a core"), [(name, f"{one:.2f}") for name, one in results.idle.items()]),
        "commands": str(plan.commands),
        "commands_table": _commands(results),
        "asked_table": _asked(results),
        "rebuild_table": _rebuilt(results),
        "scopes_table": scopes_table(results.scope_costs),
        "backlog": str(BACKLOG),
        "backlog_users": str(BACKLOG_USERS),
        "backlog_table": backlog_table(results.backlogs),
        "linger_users": str(LINGER_USERS),
        "linger_seconds": str(LINGER_SECONDS),
        "linger_table": linger_table(results.lingers),
        "named_rounds": str(plan.named_rounds),
        "named_users": str(NAMED_USERS),
        "named_turns": str(len(SAID)),
        "named_cost_table": cost_table(results.understanding[-1]),
    }
    return wrapped(Template(TEMPLATE.read_text()).substitute(fields))


def scopes_table(costs: Iterable[ScopeCost]) -> str:
    searches = ("search: p50", "p95")
    spent = ("CPU ms: match of 1", "of 5", "search")
    rows = [
        (
            str(one.facts),
            *(f"{each.trips.p50:.0f}" for each in (one.profile, one.limits, *one.matches)),
            *(f"{figure:.0f}" for figure in (one.search.trips.p50, one.search.trips.p95)),
            *(f"{each.cpu:.2f}" for each in (*one.matches, one.search)),
        )
        for one in costs
    ]
    return table(("facts", "profile", "limits", "match of 1", "of 5", *searches, *spent), rows)


def _throughputs(measured: Iterable[tuple[str, Throughput]]) -> str:
    head = ("workers", "turns/s", "CPU ms a turn: workers", "Kafka", "Postgres", "model server", "cores busy")
    return table(head, [(name, f"{one.rate.per_second:.1f}", *_cpu(one.rate)) for name, one in measured])


def _cpu(rate: Rate) -> tuple[str, ...]:
    spent = [f"{rate.cpu_milliseconds(name):.1f}" for name in ("worker", "kafka", "postgres", "model")]
    return (*spent, f"{rate.cores:.2f}")


def _latencies(results: Results) -> str:
    head = ("workers", "offered/s", "done/s", "p50", "p95", "beyond the model: p50", "p95", "publish p95", "CPU ms")
    return table(
        head,
        [
            (
                *(name, f"{one.offered:g}", f"{one.rate.per_second:.1f}"),
                *(
                    f"{one.total.p50:.0f}",
                    f"{one.total.p95:.0f}",
                    f"{one.without_model.p50:.0f}",
                    f"{one.without_model.p95:.0f}",
                ),
                *(f"{one.acknowledged.p95:.1f}", f"{one.rate.cpu_milliseconds('worker'):.1f}"),
            )
            for name, measured in results.latencies.items()
            for one in measured
        ],
    )


def _commands(results: Results) -> str:
    rows = [
        (name, *(figure for one in measured for figure in (f"{one.latency.p50:.0f}", f"{one.latency.p95:.0f}")))
        for name, measured in results.command_latencies.items()
    ]
    head = [figure for kind in KINDS for figure in (f"{kind}: p50", "p95")]
    return table(("workers", *head), rows)


def _stages(results: Results) -> str:
    if STAGES not in results.smart:
        return "Not measured in this run."
    rate = results.smart[STAGES].rate
    raw = results.raw[STAGES].rate
    names = [name for name in rate.cpu if name.startswith("worker:")]
    rows = [(name.partition(":")[2], *(f"{one.cpu_milliseconds(name):.2f}" for one in (rate, raw))) for name in names]
    return table(("stage", "CPU ms a smart store", "a raw store"), rows)


def _asked(results: Results) -> str:
    client = ("embedding too: p50", "p95", "embedding", "Postgres", "first search")
    head = ("facts", "p50", "p95", *client, "projected facts/s")
    return table(
        head,
        [
            (
                *(str(one.facts), f"{one.in_tables.p50:.1f}", f"{one.in_tables.p95:.1f}"),
                *(f"{one.through_client.p50:.1f}", f"{one.through_client.p95:.1f}"),
                *(f"{one.embed:.1f}", f"{one.sql:.1f}", f"{one.first:.0f}", f"{one.projected_per_second:.0f}"),
            )
            for one in results.queries
        ],
    )


def _rebuilt(results: Results) -> str:
    head = ("facts", "log read from", "seconds", "facts/s", "times COPY by one connection", "times COPY by two")
    return table(head, [row for asked in results.queries for row in asked.rebuild_speed.rows])


def _comparison() -> str:
    if not FIGURES.exists():
        return "Not measured yet: `make bench-rival` does."
    return report(Comparison.from_json(FIGURES.read_bytes()))


def _scaling(results: Results) -> dict[str, str]:
    left = [str(count) for count in results.plan.workers if count > results.machine.cores]
    return {
        "scaling_table": scaling_table(results.scaling),
        "scaling_left": f"Not measured, for lack of cores: {', '.join(left)} workers." if left else "",
    }


def _ms(spread: Percentiles) -> str:
    return f"{spread.p50:.2f} ms p50, {spread.p95:.2f} ms p95"
