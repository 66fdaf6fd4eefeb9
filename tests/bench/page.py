"""docs/performance.md: the figures of a run, set into a text written by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.bench.environment import MODEL_SECONDS, STAGES
from tests.bench.figures import Percentiles, Ratio, ratio_table
from tests.bench.gateway import gateway_table
from tests.bench.markdown import filled, table
from tests.bench.plan import Results
from tests.bench.rebuild_speed import rebuild_table
from tests.bench.rival.comparison import FIGURES, Comparison, report
from tests.bench.samples import USERS
from tests.bench.scope_cost import scopes_table
from tests.bench.shared_calls import BACKLOG, LINGER_SECONDS, LINGER_USERS, backlog_table, linger_table
from tests.bench.shared_calls import USERS as BACKLOG_USERS
from tests.bench.stores import IN_FLIGHT, KINDS, Throughput
from tests.bench.understanding_cost import SAID, cost_table, cousins_line
from tests.bench.understanding_cost import USERS as NAMED_USERS

TEMPLATE: Final = Path(__file__).with_name("performance.md.in")


def page(results: Results) -> str:
    """Raises KeyError where the text asks for a figure that there is none of."""
    machine, plan, stick = results.machine, results.plan, results.machine_baseline
    best, smart = results.best_smart
    unmeasured = [str(count) for count in plan.workers if count > machine.cores]
    fields = {
        "when": f"{machine.at:%Y-%m-%d %H:%M} UTC",
        "machine": f"{machine.hardware}, {machine.system}",
        "versions": ", ".join([f"Python {machine.python}", *(f"{name} {at}" for name, at in machine.packages.items())]),
        "load": f"{machine.load:.1f}",
        "load_end": f"{results.load_at_the_end:.1f}",
        "seconds": f"{plan.seconds:g}",
        "warm_up": f"{plan.warm_up:g}",
        "users": USERS,
        "in_flight": IN_FLIGHT,
        "model_ms": f"{MODEL_SECONDS * 1000:g}",
        "python_ms": f"{stick.python:.0f}",
        "kafka_rate": f"{stick.kafka:.0f}",
        "sql": _spread(stick.sql),
        "best": best,
        "raw_best": results.best_raw[0],
        "ratio_table": ratio_table("measured", "yardstick of the same run", ratios(results)),
        "comparison": "Not measured yet: `make bench-rival` does.",
        "calls": f"{smart.costs.llm_calls:.2f}",
        "tokens": f"{smart.costs.prompt_tokens:.0f}",
        "said": f"{smart.costs.reply_tokens:.0f}",
        "embedding_calls": f"{smart.costs.embedding_calls:.3f}",
        "facts": f"{smart.costs.facts:.2f}",
        "acknowledged": _spread(results.publish_latency),
        "smart_table": throughput_table(results.smart),
        "raw_table": throughput_table(results.raw),
        "latency_table": latency_table(results),
        "stage_table": stage_table(results),
        "scaling_table": scaling_table(results.scaling),
        "scaling_left": f"Not measured, for lack of cores: {', '.join(unmeasured)} workers." if unmeasured else "",
        "idle_table": table(("workers", "% of a core"), [(name, f"{one:.2f}") for name, one in results.idle.items()]),
        "commands": plan.commands,
        "commands_table": commands_table(results),
        "asked_table": asked_table(results),
        "gateway_facts": plan.sizes[-1],
        "gateway_table": gateway_table(results.gateway),
        "rebuild_table": rebuild_table([asked.rebuild_speed for asked in results.queries]),
        "scopes_table": scopes_table(results.scope_costs),
        "backlog": BACKLOG,
        "backlog_users": BACKLOG_USERS,
        "backlog_table": backlog_table(results.backlogs),
        "linger_users": LINGER_USERS,
        "linger_seconds": LINGER_SECONDS,
        "linger_table": linger_table(results.lingers),
        "named_rounds": plan.named_rounds,
        "named_users": NAMED_USERS,
        "named_turns": len(SAID),
        "named_cost_table": cost_table(results.understanding),
        "cousins_line": cousins_line(results.cousins),
    }
    if FIGURES.exists():
        fields["comparison"] = report(Comparison.from_json(FIGURES.read_bytes()))
    return filled(TEMPLATE, fields)


def _spread(waits: Percentiles) -> str:
    return f"{waits.p50:.2f} ms p50, {waits.p95:.2f} ms p95"


def ratios(results: Results) -> list[Ratio]:
    """The head of the page: what a run found, beside what the machine itself did in that run."""
    stick, asked = results.machine_baseline, max(results.queries, key=lambda one: one.facts)
    found: list[Ratio] = []

    def add(
        name: str, measured: str, yardstick: str, value: float, aim: float | None = None, *, least: bool = False
    ) -> None:
        at_most = aim is not None and not least
        found.append(Ratio(name=name, measured=measured, yardstick=yardstick, value=value, aim=aim, at_most=at_most))

    stores = {"smart": results.best_smart[1].rate, "raw": results.best_raw[1].rate}
    for (kind, rate), aim in zip(stores.items(), (40, 25), strict=True):
        records = f"plain aiokafka, {stick.kafka:.0f} records of 1 kB/s"
        add(
            f"a {kind} store a second, in records",
            f"{rate.per_second:.0f}/s",
            records,
            stick.kafka / rate.per_second,
            aim,
        )
    for kind, rate in stores.items():
        spent = rate.cpu_milliseconds("worker", "kafka", "postgres")
        add(f"CPU of a {kind} store", f"{spent:.1f} ms", f"the loop, {stick.python:.0f} ms", spent / stick.python)

    slowest = [min(measured, key=lambda one: one.offered) for measured in results.latencies.values()]
    best = min(slowest, key=lambda one: one.without_model.p50)
    load = f"from turn to fact beyond the model, at {best.offered:g} turns/s"
    added = min(one.p50 for one in results.added_by_second.values())
    for name, amount, aim, unit in (
        (f"{load}, p50", best.without_model.p50, 25, "ms"),
        (f"{load}, p95", best.without_model.p95, 80, "ms"),
        ("what a user's second raw turn takes longer, p50", added, 20, "ms"),
        ("CPU of workers without work", min(results.idle.values()), 1, "% of a core"),
    ):
        add(name, f"{amount:.1f} {unit}", f"the aim, {aim:g} {unit}", amount / aim, 1)

    for name, waited, most in (("p50", asked.in_tables.p50, 40), ("p95", asked.in_tables.p95, None)):
        trip = f"`SELECT 1`, {stick.sql.p50:.2f} ms"
        add(f"a search among {asked.facts} facts, {name}", f"{waited:.1f} ms", trip, waited / stick.sql.p50, most)

    speed = asked.rebuild_speed
    kept = {one.source: one for one in speed.rebuilds if not one.full}
    for source, one in kept.items():
        copy = f"COPY by two connections, {speed.copy_by_two:.1f} s"
        name = f"a rebuild of {speed.facts} facts from {source}"
        add(name, f"{one.seconds:.1f} s", copy, one.seconds / speed.copy_by_two, 2)
    fastest, live = max(one.facts_per_second for one in kept.values()), asked.projected_per_second
    yardstick = f"the faster rebuild, {fastest:.0f} facts/s"
    add("the live projector with a backlog", f"{live:.0f} facts/s", yardstick, live / fastest, 0.5, least=True)
    return found


def throughput_table(measured: Mapping[str, Throughput]) -> str:
    head = ("workers", "turns/s", "CPU ms a turn: workers", "Kafka", "Postgres", "model server", "cores busy")
    rows = []
    for name, one in measured.items():
        spent = [f"{one.rate.cpu_milliseconds(process):.1f}" for process in ("worker", "kafka", "postgres", "model")]
        rows.append((name, f"{one.rate.per_second:.1f}", *spent, f"{one.rate.cores:.2f}"))
    return table(head, rows)


def scaling_table(measured: Mapping[int, Throughput]) -> str:
    """Smart stores by more and more workers, and multiples of the first measurement."""
    least, first = next(iter(measured.items()))
    rows = []
    for workers, one in measured.items():
        spent = [f"{one.rate.cpu_milliseconds(process):.1f}" for process in ("worker", "kafka", "postgres")]
        speed = (f"{one.rate.per_second:.1f}", f"{one.rate.per_second / first.rate.per_second:.2f}")
        rows.append((str(workers), *speed, *spent, f"{one.rate.cores:.2f}"))
    head = ("workers", "turns/s", f"times that of {least}", "CPU ms a turn: workers", "Kafka", "Postgres", "cores busy")
    return table(head, rows)


def stage_table(results: Results) -> str:
    """The CPU of each stage, from the layout with a process for each."""
    if STAGES not in results.smart:
        return "Not measured in this run."
    smart, raw = results.smart[STAGES].rate, results.raw[STAGES].rate
    rows = [
        (name.partition(":")[2], *(f"{one.cpu_milliseconds(name):.2f}" for one in (smart, raw)))
        for name in smart.cpu
        if name.startswith("worker:")
    ]
    return table(("stage", "CPU ms a smart store", "a raw store"), rows)


def latency_table(results: Results) -> str:
    head = ("workers", "offered/s", "done/s", "p50", "p95", "beyond the model: p50", "p95", "publish p95", "CPU ms")
    rows = [
        (
            *(name, f"{one.offered:g}", f"{one.rate.per_second:.1f}"),
            *(*one.total.cells(0), *one.without_model.cells(0)),
            *(f"{one.acknowledged.p95:.1f}", f"{one.rate.cpu_milliseconds('worker'):.1f}"),
        )
        for name, measured in results.latencies.items()
        for one in measured
    ]
    return table(head, rows)


def commands_table(results: Results) -> str:
    head = [figure for kind in KINDS for figure in (f"{kind}: p50", "p95")]
    rows = [
        (name, *(cell for kind in KINDS for cell in waits[kind].cells(0)))
        for name, waits in results.command_latencies.items()
    ]
    return table(("workers", *head), rows)


def asked_table(results: Results) -> str:
    client = ("embedding too: p50", "p95", "embedding", "Postgres", "first search")
    rows = [
        (
            *(str(one.facts), *one.in_tables.cells(1), *one.through_client.cells(1)),
            *(f"{one.embed:.1f}", f"{one.sql:.1f}", f"{one.first:.0f}", f"{one.projected_per_second:.0f}"),
        )
        for one in results.queries
    ]
    return table(("facts", "p50", "p95", *client, "projected facts/s"), rows)
