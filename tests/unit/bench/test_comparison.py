from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from tests.bench.query_speed import asked_fact
from tests.bench.rival.comparison import Comparison, SearchFigures, Side, StoreFigures, Trial, ratios
from tests.bench.rival.report import report
from tests.bench.rival.searches import search_figures
from tests.bench.statistics import Percentiles, Rate

STORE = StoreFigures(
    how="one process",
    per_second=300.0,
    cpu={"client": 1.0, "worker": 3.0, "kafka": 0.5, "postgres": 1.5, "model": 9.0},
    model_calls=1.1,
    prompt_tokens=600.0,
    reply_tokens=180.0,
    memories=1.5,
)
SIDE = Side(smart=STORE, raw=STORE, search=SearchFigures(waits=Percentiles.of([3.0]), hits=10.0, found=1.0))
BOTH = Comparison(
    at=datetime(2026, 11, 23, 4, tzinfo=UTC),
    machine="two cores",
    load=0.1,
    rival="mem0ai 2.2.1",
    seconds=60.0,
    model_seconds=0.3,
    users=2000,
    facts=10_000,
    ours=SIDE,
    theirs=replace(
        SIDE,
        smart=replace(STORE, how="16 threads", per_second=15.0, cpu={"client": 20.0, "postgres": 10.0}),
        search=SearchFigures(waits=Percentiles.of([12.0]), hits=0.5, found=0.25),
    ),
    trials=(
        Trial(side="mem0", kind="smart", how="16 threads", per_second=14.0),
        Trial(side="mem0", kind="raw", how="16 threads", per_second=90.0),
    ),
)


def test_a_store_costs_the_cpu_of_every_process_but_the_models() -> None:
    assert STORE.own_cpu == 6.0


def test_cpu_is_told_a_turn_for_all_processes_of_a_kind_together() -> None:
    rate = Rate(seconds=2.0, done=100, cpu={"client:1": 1.0, "client:2": 2.0, "postgres": 0.5})
    assert StoreFigures.cpu_of(rate) == {"client": 30.0, "postgres": 5.0}


def test_ratios_are_ours_to_theirs() -> None:
    by_name = {one.name: one for one in ratios(BOTH)}
    assert by_name["smart stores a second"].value == 20.0
    assert by_name["smart stores a second"].reached is True
    assert by_name["raw stores a second"].reached is False
    assert by_name["CPU ms a smart store"].value == pytest.approx(0.2)
    assert by_name["CPU ms a smart store"].reached is True
    assert by_name["search p50, ms"].value == 0.25


def test_a_comparison_comes_back_from_its_file() -> None:
    assert Comparison.from_json(BOTH.to_json()) == BOTH
    with pytest.raises(ValidationError):
        Comparison.from_json(b'{"rival": "mem0"}')


def test_the_report_has_both_columns() -> None:
    lines = report(BOTH).splitlines()
    assert "| smart stores a second | 300.0 | 15.0 | 20 | at least 15 | yes |" in lines
    assert "| mem0, smart | 20.0 |  |  | 10.0 |  |" in lines


def test_a_search_is_right_where_the_asked_fact_comes_first() -> None:
    texts = [[asked_fact(3), "x"], ["x", asked_fact(4)], []]
    found = search_figures([1.0, 2.0, 3.0], texts, [3, 4, 5])
    assert found.found == pytest.approx(1 / 3)
    assert found.hits == pytest.approx(4 / 3)
    with pytest.raises(ValueError, match="longer"):
        search_figures([1.0], [[]], [1, 2])
