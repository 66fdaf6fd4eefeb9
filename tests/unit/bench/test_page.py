from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mnemolog.admin import Source
from tests.bench import page as page_module
from tests.bench.environment import LAYOUTS, STAGES, worker_names
from tests.bench.figures import Percentiles, Rate
from tests.bench.machine import Machine, MachineBaseline
from tests.bench.markdown import WIDTH, aligned, wrapped
from tests.bench.page import page, ratios
from tests.bench.plan import FULL, Results
from tests.bench.query_speed import QueryFigures
from tests.bench.rebuild_speed import RebuildFigures, RebuildSpeed
from tests.bench.scope_cost import Cost, ScopeCost
from tests.bench.shared_calls import CALL_TURNS, LINGERS, BacklogCost, LingerCost
from tests.bench.stores import KINDS, Costs, Latency, Throughput
from tests.bench.understanding_cost import VARIANTS, WITHOUT_ENTITIES, Spent

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


def spent(seconds: float, *, rows: int) -> Spent:
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
    added_by_second={"one process": replace(SPREAD, p50=10.0), "two processes": replace(SPREAD, p50=11.0)},
    idle={"one process": 1.5, "two processes": 2.0},
    command_latencies={"one process": dict.fromkeys(KINDS, SPREAD)},
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
    scope_costs=(ScopeCost(facts=100, profile=COST, limits=COST, matches=(COST, COST), search=COST),),
    backlogs=tuple(
        BacklogCost(
            call_turns=call_turns,
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
    understanding={name: spent(2.0, rows=6) if name in WITHOUT_ENTITIES else spent(3.0, rows=18) for name in VARIANTS},
    scaling={1: stored(100), 2: stored(150)},
    load_at_the_end=1.0,
)


def test_each_figure_stands_beside_its_yardstick() -> None:
    assert {one.name: (round(one.value or 0.0, 6), one.reached) for one in ratios(RESULTS)} == {
        "a smart store a second, in records": (40.0, True),
        "a raw store a second, in records": (20.0, True),
        "CPU of a smart store": (1.0, None),
        "CPU of a raw store": (1.0, None),
        "from turn to fact beyond the model, at 20 turns/s, p50": (0.16, True),
        "from turn to fact beyond the model, at 20 turns/s, p95": (0.1, True),
        "what a user's second raw turn takes longer, p50": (0.5, True),
        "CPU of workers without work": (1.5, False),
        "a search among 1000 facts, p50": (40.0, True),
        "a search among 1000 facts, p95": (80.0, None),
        "a rebuild of 1000 facts from kafka": (2.4, False),
        "a rebuild of 1000 facts from table": (2.0, True),
        "the live projector with a backlog": (0.5, True),
    }


def test_the_page_has_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "FIGURES", page_module.TEMPLATE.with_name("missing.json"))
    lines = page(RESULTS).splitlines()
    first = (
        "a smart store a second, in records | 200/s | plain aiokafka, 8000 records of 1 kB/s | 40 | at most 40 | yes"
    )
    assert lines.index(f"| {first} |") < lines.index("## Stores")
    assert "for smart stores two processes, for raw stores one process." in page(RESULTS)
    for row in (
        "Not measured yet: `make bench-rival` does.",
        "Not measured, for lack of cores: 4, 8 workers.",
        "| two processes | 200.0 | 10.0 | 2.0 | 4.0 | 0.0 | 3.20 |",
        "| one process | 400.0 | 10.0 | 2.0 | 4.0 | 0.0 | 6.40 |",
        "| project | 1.67 | 1.67 |",
        "| 2 | 150.0 | 1.50 | 10.0 | 2.0 | 4.0 | 2.40 |",
        "| two processes | 2.00 |",
        "| one process | 20 | 20.0 | 4 | 8 | 4 | 8 | 8.0 | 5.0 |",
        "| one process | 4 | 8 | 4 | 8 | 4 | 8 |",
        "| 1000 | 4.0 | 8.0 | 4.0 | 8.0 | 31.7 | 5.3 | 4321 | 50 |",
        "| 100 | 4 | 4 | 4 | 4 | 4 | 8 | 0.25 | 0.25 | 0.25 |",
        "| 1 | 1000 | 2000000 | 100000 | 1500 |",
        "| 20 | 50 | 100000 | 100000 | 1500 |",
        "| 0 | 1000 | 1500 | 0.0 | 0.0 |",
        "| 5 | 165 | 1500 | 5.0 | 10.0 |",
        "| everything | 2250.00 | 1.50 | 500.00 | 1.00 | 1.50 | 200 | 10 | 1000 | 4.5 |",
        "| the turn alone | 1500.00 | 1.00 | 500.00 | 1.00 | 1.50 | 200 | 10 | 1000 | 1.5 |",
        "| 1000 | kafka | 12.0 | 83 | 1.50 (8.0 s) | 2.40 (5.0 s) |",
        "| 1000 | kafka, --full | 20.0 | 50 | 2.50 (8.0 s) | 4.00 (5.0 s) |",
    ):
        assert row in lines


def test_paragraphs_and_items_are_wrapped_and_stay_apart() -> None:
    words = " ".join(["word"] * 40)
    text = wrapped(f"# Title\n\n{words}\n\n* {words}\n* short\n\n| {words} |\n| --- |\n\n```\n{words}\n```\n")
    lines = text.splitlines()
    assert [line for line in lines if len(line) > WIDTH] == [f"| {words} |", words]
    assert [line for line in lines if line.startswith("*")] == [lines[5], "* short"]
    assert lines[6].startswith("  word")
    assert wrapped(text) == text


def test_a_table_for_a_terminal_has_columns_of_even_width() -> None:
    assert aligned("| a | number |\n| --- | ---: |\n| long | 1 |\n| b |  |") == "a     number\nlong       1\nb"
