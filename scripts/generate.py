"""Write every generated file, or with --check show which ones differ.

To generate another file, add its path and its function to GENERATED.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mnemolog.schemas.base import Versioned
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.turn import Turn
from mnemolog.settings import PREFIX, Settings
from scripts.alerts import alert_rules
from scripts.cldr_words import cldr_places, cldr_words
from scripts.cli_page import cli_page
from scripts.client_stub import client_stub
from scripts.dashboard import dashboard
from scripts.lock_parts import build_lock, jars_lock, runtime_lock, uv_lock
from scripts.metrics_page import metrics_page
from scripts.pages import item, page, table
from scripts.vocabulary import FACT_STATUSES, SETTLEMENTS, TURN_STATUSES, VOCABULARY

ROOT = Path(__file__).resolve().parent.parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS: Mapping[str, type[Versioned]] = {"turn": Turn, "command": Command, "commit": Commit}
"""The records that programs in other languages write or read."""

OTHER_SYSTEMS: Mapping[str, str] = {
    "resolution": "smart store",
    "arbitration": "arbitration",
    "reconciliation": "reconciliation",
    "classification": "classification",
}


def json_schema(model: type[Versioned]) -> str:
    """What a reader accepts: a field with a default may be left out."""
    schema = {"$schema": DIALECT, **model.model_json_schema(mode="validation")}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


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


def vocabulary_page() -> str:
    rows = [
        (f"`{entry.event}`", *(", ".join(getattr(entry, column)) or "none" for column in OTHER_SYSTEMS))
        for entry in VOCABULARY
    ]
    effects = [(f"`{entry.event}`", entry.effect) for entry in VOCABULARY]
    words = table(("event", *OTHER_SYSTEMS.values()), rows)
    return page(
        "Vocabulary",
        "Which words other memory layers have for each event, what it does to rows, and what each status means.",
        f"{words}\n## Effect on rows\n\n{table(('event', 'rows of `facts`'), effects)}\n{_statuses()}",
    )


def _statuses() -> str:
    """Each status with its meaning; the words are the same in Python, on the command line, in JSON and in SQL."""
    subjects: Mapping[str, tuple[str, Mapping[Any, str]]] = {
        "Status of a turn or a command": ("status", TURN_STATUSES),
        "Status of a fact": ("status", FACT_STATUSES),
        "Settlement of a pending fact": ("settlement", SETTLEMENTS),
    }
    return "\n".join(
        f"## {title}\n\n{table((word, 'meaning'), [(f'`{name}`', meaning) for name, meaning in meanings.items()])}"
        for title, (word, meanings) in subjects.items()
    )


GENERATED: Mapping[str, Callable[[], str]] = {
    **{f"schemas/json/{name}.v{model.VERSION}.json": partial(json_schema, model) for name, model in SCHEMAS.items()},
    "docs/cli.md": cli_page,
    "docs/settings.md": settings_page,
    "mnemolog/client/sync_client.pyi": client_stub,
    "docs/metrics.md": metrics_page,
    "docs/vocabulary.md": vocabulary_page,
    "streams/text/cldr_places.json": cldr_places,
    "streams/text/cldr_words.json": cldr_words,
    "grafana/dashboards/mnemolog.json": dashboard,
    "deploy/alerts.yml": alert_rules,
    "deploy/build.lock": build_lock,
    "deploy/runtime.lock": runtime_lock,
    "scripts/locks/uv.lock": uv_lock,
    "scripts/locks/jars.lock": jars_lock,
}


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


def differences(root: Path) -> Iterator[str]:
    """One unified diff for each generated file that is not as it would be written."""
    for name, content in GENERATED.items():
        path = root / name
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        if found != (expected := content()):
            yield "".join(
                difflib.unified_diff(
                    found.splitlines(keepends=True),
                    expected.splitlines(keepends=True),
                    name,
                    f"{name} (generated)",
                    n=2,
                )
            )


def write(root: Path) -> None:
    for name, content in GENERATED.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content(), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder to write below")
    arguments = parser.parse_args()
    if not arguments.check:
        write(arguments.root)
    elif diffs := list(differences(arguments.root)):
        print("\n".join(diffs))
        sys.exit(f"{len(diffs)} generated file(s) differ: run `make generate` and commit the result")


if __name__ == "__main__":
    main()
