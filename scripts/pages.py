"""The pages that `make generate` writes: settings, vocabulary, command line and metrics."""

import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import mnemolog.client.metrics
import mnemolog.projections.metrics
import mnemolog.server.metrics
import mnemolog.streams.metrics
from mnemolog.cli.app import GROUPS, PANELS
from mnemolog.common.metric_catalogue import MetricDefinition
from mnemolog.settings import PREFIX, Settings
from scripts.alerts import ALERTS
from scripts.figures import FIGURES
from scripts.vocabulary import FACT_STATUSES, SETTLEMENTS, TURN_STATUSES, VOCABULARY

WIDTH: Final = 120
OTHER_SYSTEMS: Mapping[str, str] = {
    "resolution": "smart store",
    "arbitration": "arbitration",
    "reconciliation": "reconciliation",
    "classification": "classification",
}
CLI_INTRO: Final = """\
# Command line

This page is written by `make generate`; `mnemolog COMMAND --help` has all options. [Screens](screens.md) show what the
commands print at 80 columns.

* **Where it looks.** The stack of `mnemolog up` over `./.mnemolog`, or over `MNEMOLOG_DATA_DIR`; other servers by
  `MNEMOLOG_KAFKA` and `MNEMOLOG_POSTGRES`. `mnemolog status` shows which, and how they are.
* **Ids.** Facts and events are shown by the first eight characters of their ids, by more where eight are not unique;
  `--full-ids` and `--json` show them whole. Each command takes the first characters of an id, four or more, where only
  one id of the tenant begins so. An id of a script should be whole: later facts may begin as a short one does.
* **Waiting.** `--wait [SECONDS]` waits for the end of what was published, 60 seconds if no number is given. Commands
  that change facts wait without it, but for `--wait 0`.
* **Exit codes.** 0: done. 1: it failed, was rejected, is unknown, did not finish in time, or differences were found.
  2: wrong usage or settings. 3: a server is unavailable. 130: interrupted by Ctrl-C; the last line says what is left.
* **Output.** Data is on stdout, notes and errors are on stderr. `--json` writes one JSON document. Times are in UTC. A
  stream that is not UTF-8 gets other characters as escapes. There is colour at a terminal only, and none with
  `NO_COLOR`.
* **Completion.** `mnemolog --install-completion` sets up completion of the current shell (bash, zsh, fish);
  `--show-completion` prints what it would install.
"""
METRICS_PURPOSE: Final = (
    "The metrics of a worker at `/metrics`, those of the client, the figures that are made of them, and the alerts. "
    "No label names a user or holds text."
)
CLIENT_METRICS: Final = """\
From the first call on they are in the default registry of `prometheus_client` in the application's process, which has
to serve them: the client starts no server.
"""
HTTP_METRICS: Final = """\
`mnemolog serve` shows them, and those of its client, at `/metrics` to a key with the right `admin`; the worker of
`mnemolog up` shows them among its own.
"""
OVERWRITES: Final = """\
An overwrite is a decision that ends a known fact, or announces its end (`facts_merged`, `fact_replaced`,
`fact_contradicted`, `fact_retracted`, `fact_expired`, `fact_corrected`, `conflict_resolved` other than `keep_both`), or
that a guard holds back from that (`fact_pending`). The view `overwrites` has a row for each.

* It belongs to who proposed it: `by` is `model`, with the model and its prompt version, `application` or `human` for a
  command, `timer` for an end that has come, or the rule that decided it. An overwrite that was held back belongs to the
  model that proposed it, whoever confirmed or rejected it.
* It counts once, at the event that ended the fact; a held one at its first confirmation.
* Its result is `undone`; `rejected` if it was held back, and a command or a repetition of the old fact rejected it;
  `corrected` if a person said that the fact in its place was never true; `kept` if it was carried out, `open` while it
  is held back, and `overtaken` if the pending fact ended in another way.
"""
FIGURES_INTRO: Final = "The panels of Grafana show these and more. `scripts/figures.py` has the PromQL of each.\n"
ALERTS_INTRO: Final = """\
The rules are in `deploy/alerts.yml`, which the Prometheus of `docker-compose.yml` reads, and
[incidents](how-to/incidents.md) has a runbook for each. They are sent nowhere until an Alertmanager is configured.
"""


def page(title: str, purpose: str, content: str) -> str:
    return f"# {title}\n\n{paragraph(f'{purpose} This page is written by `make generate`.')}\n{content}"


def paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def item(text: str) -> str:
    """An entry of a list."""
    wrapped = textwrap.fill(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return "* " + wrapped.replace("\n", "\n  ") + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def settings_page() -> str:
    fields = Settings.model_json_schema(mode="validation")["properties"].items()
    return page(
        "Settings",
        "Each is an environment variable, with its values and its default in brackets. A wrong value is refused; so is "
        "a name one or two letters from a setting.",
        "".join(
            item(f"`{PREFIX}{name.upper()}` ({_values(field)}{_default(field)}): {field.get('description', '')}")
            for name, field in fields
        ),
    )


def _values(field: Mapping[str, Any]) -> str:
    """The values a setting takes, from its JSON Schema."""
    if "anyOf" in field:
        return " or ".join(_values(option) for option in field["anyOf"] if option.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    return str(field.get("type", "any")) + _limits(field)


def _limits(field: Mapping[str, Any]) -> str:
    words = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    return "".join(f", {sign} {field[word]:.10g}" for word, sign in words.items() if word in field)


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    if value is None or value == "":
        return ""
    return f"; `{value if isinstance(value, str) else json.dumps(value)}`"


def vocabulary_page() -> str:
    rows = [
        (f"`{entry.event}`", *(", ".join(getattr(entry, column)) or "none" for column in OTHER_SYSTEMS))
        for entry in VOCABULARY
    ]
    effects = "".join(item(f"`{entry.event}`: {entry.effect}") for entry in VOCABULARY)
    words = table(("event", *OTHER_SYSTEMS.values()), rows)
    return page(
        "Vocabulary",
        "Which words other memory layers have for each event, what it does to rows, and what each status means.",
        f"{words}\n## Effect on rows of `facts`\n\n{effects}\n{_statuses()}",
    )


def _statuses() -> str:
    """Each status with its meaning; the words are the same in Python, on the command line, in JSON and in SQL."""
    subjects: Mapping[str, Mapping[Any, str]] = {
        "Status of a turn or a command": TURN_STATUSES,
        "Status of a fact": FACT_STATUSES,
        "Settlement of a pending fact": SETTLEMENTS,
    }
    return "\n".join(
        f"## {title}\n\n{''.join(item(f'`{name}`: {meaning}') for name, meaning in meanings.items())}"
        for title, meanings in subjects.items()
    )


def cli_page() -> str:
    """Each command by theme, with its help line and an example."""

    def line(example: str, command: Callable[..., None] | None) -> str:
        first, *_ = inspect.cleandoc((command and command.__doc__) or "").split("\n\n")
        return item(f"`{example}`: {' '.join(first.split())}")

    sections = []
    for panel, commands in PANELS.items():
        lines = [line(one.example, one.run) for one in commands]
        lines += [
            line((one.epilog or "").removeprefix("Example: "), one.callback)
            for its_panel, group in GROUPS.values()
            if its_panel == panel
            for one in group.registered_commands
        ]
        sections.append(f"## {panel}\n\n{''.join(lines)}")
    return "\n".join((CLI_INTRO, *sections))


def metrics_page() -> str:
    figures = "".join(item(f"**{one.name}**: {one.definition}") for one in FIGURES)
    alerts = "".join(item(f"`{one.name}` ({one.severity}, after {one.wait}): {one.when}") for one in ALERTS)
    sections = {
        "Metrics of a worker": _metrics([*mnemolog.streams.metrics.CATALOGUE, *mnemolog.projections.metrics.CATALOGUE]),
        "Metrics of the HTTP server": f"{HTTP_METRICS}\n{_metrics(mnemolog.server.metrics.CATALOGUE)}",
        "Metrics of the client": f"{CLIENT_METRICS}\n{_metrics(mnemolog.client.metrics.CATALOGUE)}",
        "Overwrites": OVERWRITES,
        "Figures": f"{FIGURES_INTRO}\n{figures}",
        "Alerts": f"{ALERTS_INTRO}\n{alerts}",
    }
    return page("Metrics", METRICS_PURPOSE, "\n".join(f"## {title}\n\n{text}" for title, text in sections.items()))


def _metrics(definitions: Iterable[MetricDefinition]) -> str:
    """Each metric with its kind, its unit where it counts no things, and its labels."""
    lines = []
    for metric in sorted(definitions, key=lambda metric: metric.name):
        unit = "" if metric.unit == "1" else f", {metric.unit}"
        labels = f"; by {', '.join(metric.labels)}" if metric.labels else ""
        lines.append(item(f"`{metric.name}` ({metric.kind}{unit}{labels}): {metric.meaning}"))
    return "".join(lines)
