import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from tests.bench.figures import Percentiles, Rate
from tests.bench.query_speed import asked_fact
from tests.bench.rival import mem0_client
from tests.bench.rival.comparison import Comparison, SearchFigures, Side, StoreFigures, Trial, ratios, report
from tests.bench.rival.measure import search_figures
from tests.bench.rival.mem0_client import Tally, Turns

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
    trials=(Trial(side="mem0", kind="smart", how="16 threads", per_second=14.0),),
)
CONNECT = """
import runpy, socket, sys
hook = runpy.run_path(sys.argv[1])["refuse_other_hosts"]
sys.addaudithook(hook)
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
def connect():
    with socket.socket() as outside:
        outside.settimeout(1)
        outside.connect(("192.0.2.1", 9))
for attempt in (connect, lambda: socket.getaddrinfo("a.invalid", 9)):
    try:
        attempt()
    except PermissionError as error:
        print(error)
"""


def test_a_store_costs_the_cpu_of_every_process_but_the_models() -> None:
    assert STORE.own_cpu == 6.0
    rate = Rate(seconds=2.0, done=100, cpu={"client:1": 1.0, "client:2": 2.0, "postgres": 0.5})
    assert StoreFigures.cpu_of(rate) == {"client": 30.0, "postgres": 5.0}


def test_ratios_are_ours_to_theirs() -> None:
    assert {one.name: (one.value, one.reached) for one in ratios(BOTH)} == {
        "smart stores a second": (20, True),
        "raw stores a second": (1, False),
        "CPU ms a smart store": (pytest.approx(0.2), True),
        "CPU ms a raw store": (1, False),
        "search p50, ms": (0.25, None),
        "search p95, ms": (0.25, None),
        "hits of 10": (20, None),
        "share of searches whose first hit is right": (4, None),
        "model calls a smart turn": (1, None),
        "prompt tokens a smart turn": (1, None),
        "reply tokens a smart turn": (1, None),
        "memories a smart turn": (1, None),
        "memories a raw turn": (1, None),
    }


def test_the_report_has_both_columns_and_the_figures_come_back_from_their_file() -> None:
    lines = report(BOTH).splitlines()
    assert "| smart stores a second | 300.0 | 15.0 | 20 | at least 15 | yes |" in lines
    assert "| mem0, smart | 20.0 |  |  | 10.0 |  |" in lines
    assert Comparison.from_json(BOTH.to_json()) == BOTH
    with pytest.raises(ValidationError):
        Comparison.from_json(b'{"rival": "mem0"}')


def test_a_search_is_right_where_the_asked_fact_comes_first() -> None:
    texts = [[asked_fact(3), "x"], ["x", asked_fact(4)], []]
    found = search_figures([1.0, 2.0, 3.0], texts, [3, 4, 5])
    assert (found.found, found.hits) == pytest.approx((1 / 3, 4 / 3))
    with pytest.raises(ValueError, match="longer"):
        search_figures([1.0], [[]], [1, 2])


def test_mem0_reaches_loopback_alone() -> None:
    program = str(Path(mem0_client.__file__))
    done = subprocess.run([sys.executable, "-c", CONNECT, program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "mem0 connects to 192.0.2.1: only loopback is allowed",
        "mem0 looks up a.invalid: only loopback is allowed",
    ]


def test_a_turn_without_a_memory_ends_the_measurement() -> None:
    tally = Tally()
    tally.stored({"results": [{}, {}]})
    tally.called(None, SimpleNamespace(usage=SimpleNamespace(prompt_tokens=30, completion_tokens=4)), None)
    with pytest.raises(RuntimeError, match="no memory"):
        tally.stored({"results": []})
    expected = {"done": 1, "memories": 2, "calls": 1, "prompt_tokens": 30, "reply_tokens": 4, "error": None}
    assert tally.report() == expected


def test_turns_run_until_they_are_stopped_and_never_out(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps({"user_id": f"u{number}"}) + "\n" for number in range(2)))
    turns = Turns(str(file))
    assert [turns.next(), turns.next()] == [{"user_id": "u0"}, {"user_id": "u1"}]
    with pytest.raises(RuntimeError, match="too few"):
        turns.next()
    turns.stopped = True
    assert turns.next() is None
