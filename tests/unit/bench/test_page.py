from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mnemolog.admin import Source
from tests.bench import page as page_module
from tests.bench.command_latency import KINDS, CommandLatency
from tests.bench.machine import Machine
from tests.bench.machine_baseline import MachineBaseline
from tests.bench.page import STAGES, page, scopes_table
from tests.bench.page_ratios import ratios
from tests.bench.plan import FULL, Results
from tests.bench.processes import worker_names
from tests.bench.query_speed import QueryFigures
from tests.bench.rebuild_speed import RebuildFigures, RebuildSpeed
from tests.bench.scaling import Scaling, scaling_table
from tests.bench.scope_cost import Cost, ScopeCost
from tests.bench.shared_calls import CALL_TURNS, LINGERS, BacklogCost, LingerCost, backlog_table, linger_table
from tests.bench.statistics import Percentiles, Rate
from tests.bench.turn_pairs import TurnPairs
from tests.bench.turn_throughput import Costs, Latency, Throughput
from tests.bench.understanding_cost import (
    NO_ENTITIES,
    PROVIDERS,
    TURN_ALONE,
    Spent,
    UnderstandingCost,
    cost_table,
    rows_table,
    variants_of,
)
from tests.bench.worker_layouts import LAYOUTS

SPREAD = Percentiles(count=100, p50=4.0, p95=8.0, highest=9.0)
COST = Cost(trips=SPREAD, cpu=0.25)
COSTS = Costs(turns=100, llm_calls=1.1, prompt_tokens=600.0, reply_tokens=180.0, embedding_calls=0.1, facts=1.5)
LATENCY = Latency(
    offered=20.0,
    rate=Rate(seconds=10.0, done=200, cpu={"worker": 1.0}),
    total=SPREAD,
    without_model=SPREAD,
    acknowledged=SPREAD,
)


def spent(seconds: float, *, entities: int) -> Spent:
    rows = {"facts": 6, "entities": entities}
    cpu = {"stages": [seconds, seconds * 2], "postgres": [1.0, 1.0]}
    return Spent(turns=4, cpu=cpu, calls=6, prompt_tokens=800, reply_tokens=40, commit_bytes=4000, rows=rows)


def stored(per_second: int, layout: str = "one process") -> Throughput:
    """10 ms of CPU a turn for the workers together, 2 for Kafka and 4 for Postgres."""
    names = worker_names(LAYOUTS[layout])
    cpu = {name: per_second / 10 / len(names) for name in names}
    rate = Rate(seconds=10.0, done=per_second * 10, cpu=cpu | {"kafka": per_second / 50, "postgres": per_second / 25})
    return Throughput(rate=rate, costs=COSTS)


def rebuilt(source: Source, seconds: float, *, full: bool = False) -> RebuildFigures:
    return RebuildFigures(source=source, full=full, seconds=seconds, facts_per_second=1000 / seconds)


RESULTS = Results(
    plan=FULL,
    machine=Machine(
        at=datetime(2026, 11, 23, tzinfo=UTC),
        processor="a processor",
        cores=2,
        memory_gib=24.0,
        system="Linux",
        python="3.11.7",
        packages={"faust-streaming": "0.15.3"},
        load=0.1,
    ),
    machine_baseline=MachineBaseline(
        python=16.0, kafka=8000.0, sql=Percentiles(count=1000, p50=0.1, p95=0.2, highest=1.0)
    ),
    publish_latency=SPREAD,
    smart={"one process": stored(100), "two processes": stored(200), STAGES: stored(150, STAGES)},
    raw={"one process": stored(400), "two processes": stored(300), STAGES: stored(100, STAGES)},
    latencies={"one process": (replace(LATENCY, offered=50.0, without_model=replace(SPREAD, p50=1.0)), LATENCY)},
    pairs={"one process": (TurnPairs(infer=False, first=SPREAD, second=SPREAD, added=replace(SPREAD, p50=10.0)),)},
    idle={"one process": 1.5, "two processes": 2.0},
    command_latencies={"one process": tuple(CommandLatency(kind=kind, latency=SPREAD) for kind in KINDS)},
    queries=(
        QueryFigures(
            facts=1000,
            projected_per_second=50.0,
            in_tables=SPREAD,
            through_client=SPREAD,
            first=4321.0,
            embed=31.7,
            sql=5.3,
            rebuild_speed=RebuildSpeed(
                facts=1000,
                copy_by_one=8.0,
                copy_by_two=5.0,
                rebuilds=(rebuilt("kafka", 12.0), rebuilt("table", 10.0), rebuilt("kafka", 20.0, full=True)),
            ),
        ),
    ),
    scope_costs=(
        ScopeCost(facts=100, profile=COST, limits=COST, matches=(COST, COST), search=COST, search_at_once=COST),
    ),
    backlogs=tuple(
        BacklogCost(
            call_turns=call_turns,
            seconds=60.0,
            turns=800,
            facts=1200,
            extractions=800 // call_turns,
            asked=1_600_000 // call_turns,
            said=80_000,
        )
        for call_turns in CALL_TURNS
    ),
    lingers=tuple(
        LingerCost(
            linger=linger,
            to_commit=Percentiles(count=400, p50=1000.0 * linger, p95=2000.0 * linger, highest=9000.0),
            turns=400,
            facts=600,
            extractions=400 // (linger + 1),
            asked=400_000 // (linger + 1),
            said=80_000,
        )
        for linger in LINGERS
    ),
    understanding=tuple(
        UnderstandingCost(
            provider=one,
            spent={
                name: spent(2.0, entities=0) if name in (NO_ENTITIES, TURN_ALONE) else spent(3.0, entities=12)
                for name in variants_of(one)
            },
        )
        for one in PROVIDERS
    ),
    scaling=(Scaling(workers=1, stored=stored(100)), Scaling(workers=2, stored=stored(150))),
    load_at_the_end=1.0,
)


def test_each_figure_stands_beside_its_yardstick() -> None:
    by_name = {one.name: (round(one.value or 0.0, 6), one.reached) for one in ratios(RESULTS)}
    assert by_name["a smart store a second, in records"] == (40.0, True)
    assert by_name["a raw store a second, in records"] == (20.0, True)
    assert by_name["CPU of a smart store"] == (1.0, None)
    assert by_name["from turn to fact beyond the model, at 20 turns/s, p50"] == (0.16, True)
    assert by_name["from turn to fact beyond the model, at 20 turns/s, p95"] == (0.1, True)
    assert by_name["what a user's second raw turn takes longer, p50"] == (0.5, True)
    assert by_name["CPU of workers without work"] == (1.5, False)
    assert by_name["a search among 1000 facts, p50"] == (40.0, True)
    assert by_name["a rebuild of 1000 facts from kafka"] == (2.4, False)
    assert by_name["a rebuild of 1000 facts from table"] == (2.0, True)
    assert by_name["the live projector with a backlog"] == (0.5, True)


def test_more_workers_are_told_as_multiples_of_the_first_measurement() -> None:
    assert scaling_table(RESULTS.scaling).splitlines()[-1] == "| 2 | 150.0 | 1.50 | 10.0 | 2.0 | 4.0 | 2.40 |"


def test_the_cost_of_a_scope_is_told_in_round_trips_and_in_cpu() -> None:
    assert scopes_table(RESULTS.scope_costs).splitlines()[-1] == (
        "| 100 | 4 | 4 | 4 | 4 | 4 | 8 | 0.25 | 0.25 | 0.25 |"
    )


def test_the_page_has_every_figure_that_its_text_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "FIGURES", page_module.TEMPLATE.with_name("missing.json"))
    text = page(RESULTS)
    assert text.index("| a smart store a second, in records | 200/s |") < text.index("## Stores")
    assert "Not measured yet: `make bench-rival` does." in text
    assert "Not measured, for lack of cores: 4, 8 workers." in text
    assert "| project | 1.67 | 1.67 |" in text
    assert " | 31.7 | 5.3 | 4321 | 50 |" in text


def test_a_backlog_is_told_for_a_thousand_turns() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in backlog_table(RESULTS.backlogs).splitlines()]
    assert rows[2] == ["1", "1000", "2000000", "100000", "1500"]
    assert rows[-1] == ["20", "50", "100000", "100000", "1500"]


def test_turns_that_wait_for_each_other_are_told_with_the_seconds_that_it_takes() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in linger_table(RESULTS.lingers).splitlines()]
    assert rows[2] == ["0", "1000", "1500", "0.0", "0.0"]
    assert rows[-1] == ["5", "165", "1500", "5.0", "10.0"]


def test_what_each_part_of_understanding_costs_is_told_for_one_turn_beside_the_turn_alone() -> None:
    offline, server = ([line.split(" | ") for line in cost_table(one).splitlines()] for one in RESULTS.understanding)
    assert [row[0] for row in offline[2:]] == ["| everything", *("| " + name for name in variants_of("offline")[1:])]
    assert len(server) > len(offline)
    assert offline[2][1:] == ["2250.00", "1.50", "500.00", "1.00", "1.50", "200", "10", "1000", "4.5 |"]
    assert offline[-1][1:3] == ["1500.00", "1.00"]


def test_rows_are_told_with_entities_and_without() -> None:
    rows = rows_table(RESULTS.understanding[:1])
    assert "| `entities` | 3.00 | 0.00 | - |" in rows
    assert "| all tables | 4.50 | 1.50 | 3.00 |" in rows
    assert "`facts`" not in rows
