"""docker-compose.yml and the Dockerfile as data."""

import json
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.paths import ROOT

IMAGE: Final = "mnemolog"


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@cache
def compose() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml("docker-compose.yml")
    return found


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def own_services() -> dict[str, dict[str, Any]]:
    """The services that run this project's image."""
    return {name: service for name, service in services().items() if service["image"].split(":")[0] == IMAGE}


def worker_services() -> dict[str, dict[str, Any]]:
    return {name: service for name, service in own_services().items() if service["command"][0] == "worker"}


def compose_schema() -> dict[str, Any]:
    """The JSON Schema of the compose specification, from a package that carries it; its program is not used."""
    path = distribution("check-jsonschema").locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")
    schema: dict[str, Any] = json.loads(Path(str(path)).read_text(encoding="utf-8"))
    return schema


def dockerfile() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in their order, each with its arguments on one line."""
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, arguments) for name, _, arguments in (line.partition(" ") for line in lines)]


def instruction_arguments(instruction: str) -> list[str]:
    return [arguments for name, arguments in dockerfile() if name == instruction]
