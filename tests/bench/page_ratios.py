"""The head of the page: what a run found, beside what the machine itself did in that run."""

from typing import Final

from tests.bench.plan import Results
from tests.bench.query_speed import QueryFigures
from tests.bench.ratios import Ratio
from tests.bench.turn_throughput import Throughput

OWN_PROCESSES: Final = ("worker", "kafka", "postgres")


def ratios(results: Results) -> tuple[Ratio, ...]:
    stick = results.machine_baseline
    smart, raw = results.best_smart[1], results.best_raw[1]
    return (
        _worth("a smart store a second, in records", smart, stick.kafka, aim=40),
        _worth("a raw store a second, in records", raw, stick.kafka, aim=25),
        _cpu("CPU of a smart store", smart, stick.python),
        _cpu("CPU of a raw store", raw, stick.python),
        *_latencies(results),
        *_added(results),
        _within("CPU of workers without work", min(results.idle.values()), 1, unit="% of a core"),
        *_queries(max(results.queries, key=lambda one: one.facts), stick.sql.p50),
    )


def _worth(name: str, stored: Throughput, records: float, *, aim: float) -> Ratio:
    rate = stored.rate.per_second
    return Ratio(
        name=name,
        measured=f"{rate:.0f}/s",
        yardstick=f"plain aiokafka, {records:.0f} records of 1 kB/s",
        value=records / rate,
        aim=aim,
        at_most=True,
    )


def _cpu(name: str, stored: Throughput, loop: float) -> Ratio:
    spent = stored.rate.cpu_milliseconds(*OWN_PROCESSES)
    return Ratio(name=name, measured=f"{spent:.1f} ms", yardstick=f"the loop, {loop:.0f} ms", value=spent / loop)


def _latencies(results: Results) -> tuple[Ratio, ...]:
    slowest = [min(measured, key=lambda one: one.offered) for measured in results.latencies.values()]
    best = min(slowest, key=lambda one: one.without_model.p50)
    name = f"from turn to fact beyond the model, at {best.offered:g} turns/s"
    return (
        _within(f"{name}, p50", best.without_model.p50, 25),
        _within(f"{name}, p95", best.without_model.p95, 80),
    )


def _added(results: Results) -> tuple[Ratio, ...]:
    measured = [one for pairs in results.pairs.values() for one in pairs if not one.infer]
    best = min(measured, key=lambda one: one.added.p50)
    return (_within("what a user's second raw turn takes longer, p50", best.added.p50, 20),)


def _within(name: str, measured: float, aim: float, *, unit: str = "ms") -> Ratio:
    """A figure whose aim is an amount."""
    return Ratio(
        name=name,
        measured=f"{measured:.1f} {unit}",
        yardstick=f"the aim, {aim:g} {unit}",
        value=measured / aim,
        aim=1,
        at_most=True,
    )


def _queries(asked: QueryFigures, round_trip: float) -> tuple[Ratio, ...]:
    speed = asked.rebuild_speed
    kept = {one.source: one for one in speed.rebuilds if not one.full}
    fastest = max(one.facts_per_second for one in kept.values())
    return (
        _in_round_trips(f"a search among {asked.facts} facts, p50", asked.in_tables.p50, round_trip, aim=40),
        _in_round_trips(f"a search among {asked.facts} facts, p95", asked.in_tables.p95, round_trip),
        *(
            Ratio(
                name=f"a rebuild of {speed.facts} facts from {source}",
                measured=f"{one.seconds:.1f} s",
                yardstick=f"COPY by two connections, {speed.copy_by_two:.1f} s",
                value=one.seconds / speed.copy_by_two,
                aim=2,
                at_most=True,
            )
            for source, one in kept.items()
        ),
        Ratio(
            name="the live projector with a backlog",
            measured=f"{asked.projected_per_second:.0f} facts/s",
            yardstick=f"the faster rebuild, {fastest:.0f} facts/s",
            value=asked.projected_per_second / fastest,
            aim=0.5,
        ),
    )


def _in_round_trips(name: str, milliseconds: float, round_trip: float, *, aim: float | None = None) -> Ratio:
    return Ratio(
        name=name,
        measured=f"{milliseconds:.1f} ms",
        yardstick=f"`SELECT 1`, {round_trip:.2f} ms",
        value=milliseconds / round_trip,
        aim=aim,
        at_most=aim is not None,
    )
