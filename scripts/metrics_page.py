"""docs/metrics.md: the metrics, the figures made of them, and the alerts."""

from collections.abc import Iterable
from typing import Final

import mnemolog.client.metrics
import mnemolog.projections.metrics
import mnemolog.streams.metrics
from mnemolog.common.metric_catalogue import MetricDefinition
from scripts.alerts import ALERTS
from scripts.figures import FIGURES
from scripts.pages import item, page

PURPOSE: Final = (
    "The metrics of a worker at `/metrics`, those of the client, the figures that are made of them, and the alerts. "
    "No label names a user or holds text."
)
CLIENT: Final = """\
They are in the default registry of `prometheus_client` in the application's process. The client starts no server for
them: the application serves them with its own metrics, with `prometheus_client.start_http_server(port)` for example.
The command line shows them nowhere.
"""
OVERWRITES: Final = """\
An overwrite is a decision that ends a known fact, or announces its end: an event `facts_merged`, `fact_replaced`,
`fact_contradicted`, `fact_retracted`, `fact_expired`, `fact_corrected`, or `conflict_resolved` other than `keep_both`,
that ended at least one fact; and `fact_pending`, which was held back from it. The undo of a decision, the rejection of
a pending fact, and late news that was history when it came are none. The view `overwrites` has each of them in a row.

* It belongs to who proposed it. `by` is `model`, with the model and its prompt version, `application` or `human` for a
  command, `timer` for an end that has come, or the rule that decided it (`policy`, `threshold` ...). One that was held
  back belongs to the model that proposed it, whoever confirmed or rejected it.
* It is carried out, once, at the event that ended the fact: at once, or for a held one at its first confirmation,
  also if that is taken back later.
* Its result is `undone` if it, or the confirmation that carried it out, was undone; `rejected` if it was held back, and
  a command or a repetition of the old fact rejected it; `corrected` if a human said that the fact in its place was
  never true, by `correct` without an end or by confirming or resolving a contradiction of it. Else it is `kept` if it
  was carried out, `open` while it is held back, and `overtaken` if it was held back and the pending fact ended in
  another way. An undo that was itself undone counts for nothing.
"""
QUERIES: Final = "The panels of Grafana show these. `scripts/figures.py` has the PromQL of each.\n"
RULES: Final = """\
The rules are in `deploy/alerts.yml`, which the Prometheus of `docker-compose.yml` reads, and
[incidents](how-to/incidents.md) has a runbook for each. They are sent nowhere until an Alertmanager is configured.
"""


def metrics_page() -> str:
    sections = {
        "Metrics of a worker": _metrics([*mnemolog.streams.metrics.CATALOGUE, *mnemolog.projections.metrics.CATALOGUE]),
        "Metrics of the client": f"{CLIENT}\n{_metrics(mnemolog.client.metrics.CATALOGUE)}",
        "Overwrites": OVERWRITES,
        "Figures": f"{QUERIES}\n{_figures()}",
        "Alerts": f"{RULES}\n{_alerts()}",
    }
    return page("Metrics", PURPOSE, "\n".join(f"## {title}\n\n{text}" for title, text in sections.items()))


def _metrics(definitions: Iterable[MetricDefinition]) -> str:
    """Each with its kind, its unit where it counts no things, and its labels."""
    return "".join(
        item(f"`{metric.name}` ({_form(metric)}): {metric.meaning}")
        for metric in sorted(definitions, key=lambda metric: metric.name)
    )


def _form(metric: MetricDefinition) -> str:
    unit = "" if metric.unit == "1" else f", {metric.unit}"
    labels = f"; by {', '.join(metric.labels)}" if metric.labels else ""
    return f"{metric.kind}{unit}{labels}"


def _figures() -> str:
    return "".join(item(f"**{one.name}**: {one.definition}") for one in FIGURES)


def _alerts() -> str:
    return "".join(item(f"`{one.name}` ({one.severity}, after {one.wait}): {one.when}") for one in ALERTS)
