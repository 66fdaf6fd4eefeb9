"""The view, the counters and the figures count every kind of end as a reader of the events' JSON does."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.streams.runtime import loops
from scripts.figures import OVERWRITE_RATE_SHOWN, WRONG_OVERWRITE_RATE
from tests.support.builders.commits import day
from tests.support.databases import fresh_database
from tests.support.harnesses.overwrite_stories import STORIES, live_all
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.overwrite_reader import DIRECT, WRONG, carried_out_counts, overwrites, taken_back_counts
from tests.support.promtool import check_value

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]
Key = tuple[str, ...]
SETTLED = ("fact_pending", "pending_confirmed", "pending_rejected", "conflict_resolved", "decision_undone")
COUNTED = ("mnemolog_overwrites_total", "mnemolog_overwrites_taken_back_total", "mnemolog_events_projected_total")


class Lived:
    """The tables after all stories, with what the counters rose by; the events as JSON, commit by commit."""

    def __init__(self, db: ProjectedDatabase, counters: dict[str, Counter[Key]], commits: list[list[Any]]) -> None:
        self.db = db
        self.counters = counters
        self.commits = commits
        self.log = [event for commit in commits for event in commit]

    async def quality(self) -> DecisionQuality:
        return await decision_quality(self.db.conn, None, day(-30), day(30 * len(STORIES)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lived(postgres_admin_url: str, template_database: str) -> AsyncIterator[Lived]:
    """For all tests of this module, which only read."""
    with fresh_database(postgres_admin_url, template=template_database) as database:
        async with ProjectedDatabase.open(database) as db:
            yield await _lived(db)


async def _lived(db: ProjectedDatabase) -> Lived:
    before = {name: _counter(name) for name in COUNTED}
    await live_all(db)
    counters = {name: _counter(name) - before[name] for name in COUNTED}
    rows = await db.rows("SELECT log_offset, payload FROM memory_events ORDER BY partition, log_offset, ordinal")
    commits = [[event for _, event in rows] for _, rows in itertools.groupby(rows, key=lambda row: row[0])]
    return Lived(db, counters, commits)


def _counter(name: str) -> Counter[Key]:
    """The samples of a counter by the values of its labels, in the order of the catalogue."""
    order = ("event", "how", "by", "model", "prompt_version")
    return Counter(
        {
            tuple(sample.labels[label] for label in order if label in sample.labels): int(sample.value)
            for family in REGISTRY.collect()
            for sample in family.samples
            if sample.name == name
        }
    )


async def test_every_overwrite_has_its_proposer_and_its_result(lived: Lived) -> None:
    assert {*DIRECT, *SETTLED} <= {event["event"] for event in lived.log}
    expected = Counter((one.event["event"], *one.proposer, one.result) for one in overwrites(lived.log).values())
    query = "SELECT event, decided_by, coalesce(model, ''), coalesce(prompt_version, ''), result FROM overwrites"
    assert Counter(tuple(row) for row in await lived.db.rows(query)) == expected
    assert {key[1] for key in expected} == {"model", "person", "timer"}
    assert {key[2] for key in expected} == {"", "reader-1", "reader-2"}
    assert {key[4] for key in expected} == {"kept", *WRONG, "open", "overtaken"}


async def test_the_counters_agree_with_the_log(lived: Lived) -> None:
    assert lived.counters["mnemolog_overwrites_total"] == carried_out_counts(lived.log)
    assert lived.counters["mnemolog_overwrites_taken_back_total"] == taken_back_counts(lived.commits)
    assert lived.counters["mnemolog_events_projected_total"] == Counter(
        (event["event"], event["decision"]["by"]) for event in lived.log
    )


async def test_the_rates_agree_with_the_log(lived: Lived) -> None:
    quality = await lived.quality()
    every = [((one.event["event"], *one.proposer), one) for one in overwrites(lived.log).values()]
    rows = {(one.event, one.by, one.model or "", one.prompt_version or ""): one for one in quality.overwrites}
    assert {key: +Counter(row.results) for key, row in rows.items()} == {
        key: Counter(one.result for of, one in every if of == key) for key, _ in every
    }
    of_models = [one for _, one in every if one.by == "model"]
    decisions = sum(one["decision"]["by"] in ("model", "rule") for one in lived.log)
    results = Counter(one.result for one in of_models)
    wrong = sum(results[name] for name in WRONG)
    assert quality.overwrite_rate == pytest.approx(sum(one.carried_out for one in of_models) / decisions)
    assert quality.wrong_overwrite_rate == pytest.approx(wrong / (wrong + results["kept"]))


async def test_the_gauges_agree_with_the_log(lived: Lived, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "QUALITY_PERIOD", day(30 * len(STORIES)) - day(-30))
    await loops.update_quality_metrics(lived.db.pool, day(30 * len(STORIES)))
    expected = Counter(
        (one.proposer[1], one.proposer[2], one.result) for one in overwrites(lived.log).values() if one.by == "model"
    )
    shown = {
        (sample.labels["model"], sample.labels["prompt_version"], sample.labels["result"]): int(sample.value)
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == "mnemolog_recent_overwrites"
    }
    assert +Counter(shown) == expected


async def test_the_panels_agree_with_the_log(lived: Lived, tmp_path: Path) -> None:
    """Prometheus sees the counters rise from nothing, and the gauges, of two processes with the same tables."""
    ended = lived.counters["mnemolog_overwrites_total"]
    decided = lived.counters["mnemolog_events_projected_total"]
    results: Counter[Key] = Counter(
        (*one.proposer[1:], one.result) for one in overwrites(lived.log).values() if one.by == "model"
    )
    series = {
        **_series("mnemolog_overwrites_total", ("event", "by", "model", "prompt_version"), ended, "_x25 {}x5"),
        **_series("mnemolog_events_projected_total", ("event", "by"), decided, "_x25 {}x5"),
    }
    for instance in ("p:1", "p:2"):
        name = "mnemolog_recent_overwrites"
        labels = ("model", "prompt_version", "result")
        series |= _series(name, labels, results, "{}x30", instance=instance)
    quality = await lived.quality()
    assert quality.overwrite_rate
    assert quality.wrong_overwrite_rate
    shown = OVERWRITE_RATE_SHOWN.replace("$__range", "20m")
    check_value(tmp_path, series, _rounded(shown), {"{}": round(quality.overwrite_rate, 6)})
    check_value(tmp_path, series, _rounded(WRONG_OVERWRITE_RATE), {"{}": round(quality.wrong_overwrite_rate, 6)})


def _rounded(expr: str) -> str:
    return f"round({expr}, 0.000001)"


def _series(name: str, labels: Sequence[str], counts: Counter[Key], values: str, **more: str) -> dict[str, str]:
    def place(key: Key) -> str:
        return ",".join(f'{label}="{value}"' for label, value in (*zip(labels, key, strict=True), *more.items()))

    return {f"{name}{{{place(key)}}}": values.format(number) for key, number in counts.items() if number}
