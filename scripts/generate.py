"""Write every generated file, or with --check show which ones differ.

To generate another file, add its path and its function to GENERATED.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.base import Versioned
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.outcome import SourceOutcome
from mnemolog.schemas.turn import Turn
from mnemolog.server.app import build_app, openapi_document
from mnemolog.server.gate import Gate
from mnemolog.settings import Settings
from scripts.alerts import alert_rules
from scripts.cldr_words import cldr_places, cldr_words
from scripts.dashboard import dashboard
from scripts.lock_parts import build_lock, jars_lock, runtime_lock, uv_lock
from scripts.pages import cli_page, metrics_page, settings_page, vocabulary_page
from scripts.reference import python_page, routes_page, views_page
from tests.quality.model_page import model_page

ROOT = Path(__file__).resolve().parent.parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS: Mapping[str, type[Versioned]] = {
    "turn": Turn,
    "command": Command,
    "commit": Commit,
    "outcome": SourceOutcome,
}
"""The records that programs in other languages write or read."""


@cache
def openapi_of_server() -> dict[str, Any]:
    client = AsyncMemoryClient(settings=Settings())
    return openapi_document(build_app(client, Gate(client, tenant="default", keys=None), max_body=1))


def openapi() -> str:
    """What programs in other languages make a client of."""
    return json.dumps(openapi_of_server(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def json_schema(model: type[Versioned]) -> str:
    """What a reader accepts: a field with a default may be left out."""
    schema = {"$schema": DIALECT, **model.model_json_schema(mode="validation")}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


GENERATED: Mapping[str, Callable[[], str]] = {
    **{f"schemas/json/{name}.v{model.VERSION}.json": partial(json_schema, model) for name, model in SCHEMAS.items()},
    "docs/openapi.json": openapi,
    "docs/cli.md": cli_page,
    "docs/settings.md": settings_page,
    "docs/metrics.md": metrics_page,
    "docs/model.md": model_page,
    "docs/python.md": python_page,
    "docs/routes.md": lambda: routes_page(openapi_of_server()),
    "docs/views.md": views_page,
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
