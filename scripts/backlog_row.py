"""The dashboard's row about what waits: the backlog of stages, who works on it, and calls of clients."""

from typing import Final

from scripts.figures import STAGES_READY
from scripts.panel_model import Panel, Row
from scripts.promql import quantile

READ: Final = ("operation", "outcome")

BACKLOG: Final = Row(
    title="Backlog",
    panels=(
        Panel(
            title="Unread records",
            description="Records of its topic that a stage has not committed, also while no process runs it.",
            queries={"{{stage}}": "sum by (stage) (max by (stage, partition) (mnemolog_backlog_records))"},
        ),
        Panel(
            title="Oldest unread record",
            description="Time since the broker appended the oldest record that the stage has not committed.",
            unit="s",
            queries={"{{stage}}": "max by (stage) (mnemolog_backlog_oldest_seconds)"},
        ),
        Panel(
            title="Oldest unread record by partition",
            description="A single late partition is one that waits for a record, or that nobody has.",
            unit="s",
            queries={"{{stage}} {{partition}}": "max by (stage, partition) (mnemolog_backlog_oldest_seconds) > 5"},
        ),
        Panel(
            title="Stages with a worker",
            description="1 while a process is a member of the stage's group; 0 also where no process is scraped.",
            queries={"{{stage}}": STAGES_READY},
        ),
        Panel(
            title="Age of computed gauges",
            description="Time since quality, lag and backlog were last computed; what is older shows what was.",
            unit="s",
            queries={
                "{{figures}}": "time() - max by (figures) (mnemolog_figures_last_success_timestamp_seconds)",
            },
        ),
        Panel(
            title="Reading calls of clients, p95",
            description="As the application waits for them; of applications that export their registry to this "
            "Prometheus.",
            unit="s",
            queries={"{{operation}} {{outcome}}": quantile(0.95, "mnemolog_client_query_seconds", *READ)},
        ),
    ),
)
