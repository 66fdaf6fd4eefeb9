"""The documentation names only what exists, with the limits and words that the code has."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from typer.main import get_command, get_group

import mnemolog.projections.metrics
import mnemolog.streams.metrics
from mnemolog import MemoryClient, errors
from mnemolog.cli.app import app
from mnemolog.client.administration import Admin
from mnemolog.client.entities import Entities
from mnemolog.schemas import entities
from mnemolog.schemas.command import Command
from mnemolog.schemas.entities import ENTITY_TYPES, STRENGTHS, ResolutionStep, Role
from mnemolog.schemas.entity_events import ENTITY_EVENT_CLASSES
from mnemolog.schemas.turn import Turn
from mnemolog.settings import PREFIX, Settings
from mnemolog.streams.entities.resolver import MAX_NEW_ENTITIES
from tests.support.deployment_files import own_services, services
from tests.support.paths import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "quality").rglob("*.md"))]
FILE = re.compile(r"`((?:schemas|projections|streams|mnemolog|tests|scripts|deploy|grafana|docs)/[\w./-]*\w)`")
COMMAND = re.compile(r"(?<![\w.-])mnemolog((?: [a-z]+(?:-[a-z]+)*)+)((?: +(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s`|;&()]+))*)")
OPTION = re.compile(r"(?<!\S)--?[a-zA-Z][\w-]*")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The files and headings inside the project that a page refers to; a heading is empty where none is named."""
    for link, part in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        yield (page.parent / link if link else page), part


def headings(page: Path) -> set[str]:
    """The names by which links refer to the headings of a page: in small letters, without punctuation, with hyphens."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_names_of_files_and_make_targets_lead_somewhere(page: Path) -> None:
    assert [(str(target), part) for target, part in links(page) if not target.exists()] == []
    assert [(str(target), part) for target, part in links(page) if part and part not in headings(target)] == []
    text = page.read_text(encoding="utf-8")
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []
    targets = re.findall(r"^([a-z-]+):.*## ", text_of("Makefile"), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE)) <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_of_code_are_not_cut_off(page: Path) -> None:
    """A block of code does not wrap on the site."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [line for block in blocks for line in block.splitlines() if len(line) > 100] == []


@cache
def all_commands() -> Any:
    return get_command(app)


def named_commands(text: str) -> Iterator[tuple[str, Any, list[str]]]:
    """Each command that a text names, with its options: `mnemolog entity merge Annie --into Ana`."""
    for found in COMMAND.finditer(text.replace("\\\n", " ")):
        command = whole = all_commands()
        for word in found[1].split():
            command = getattr(command, "commands", {}).get(word, command)
        if command is not whole:
            yield found[0], command, OPTION.findall(re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", "", found[0]))


def known_options(command: Any) -> set[str]:
    """Those of a command, and of its sub-commands: `mnemolog entity Ana` has no word for what it does."""
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own.union({"--help"}, *map(known_options, getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_of_named_commands_exist(page: Path) -> None:
    for words, command, options in named_commands(page.read_text(encoding="utf-8")):
        assert set(options) <= known_options(command), words


def test_the_architecture_names_every_package_and_the_files_on_the_way_of_a_turn() -> None:
    page = text_of("docs/architecture.md")
    way = page.split("\n## ")[1]
    steps = re.findall(r"^\d+\. \[(.+?)\]\((.+?)\) \S", way, re.MULTILINE)
    assert 0 < len(steps) == len(re.findall(r"^\d+\.", way, re.MULTILINE))  # each has a link and a sentence
    for name, link in steps:
        assert (ROOT / name).is_file()
        assert (ROOT / "docs" / link).resolve() == ROOT / name
    intro, *inside = page.partition("\n## Packages\n")[2].partition("\n## ")[0].split("\nInside `")
    sections = {"schemas": intro} | {section.partition("`")[0]: section for section in inside}
    for top in ("schemas", "projections", "streams", "mnemolog"):
        for package in sorted((ROOT / top).glob("*/__init__.py")):
            if not package.parent.is_symlink():
                assert re.search(rf"`(?:schemas/)?{package.parent.name}`", sections[top]), package


OPERATORS = "\n".join(text_of(f"docs/how-to/{one}.md") for one in ("own-servers", "operate", "incidents", "back-up"))
CODE = "\n".join(path.read_text() for top in ("streams", "projections") for path in (ROOT / top).rglob("*.py"))


def test_metrics_settings_events_and_headers_of_the_pages_for_operators_exist() -> None:
    known = {metric.name for metric in [*mnemolog.streams.metrics.CATALOGUE, *mnemolog.projections.metrics.CATALOGUE]}
    assert set(re.findall(r"`(mnemolog_\w+)`", OPERATORS)) <= known
    assert set(re.findall(r"MNEMOLOG_\w+", OPERATORS)) <= {PREFIX + name.upper() for name in Settings.model_fields}
    for event in ("stage_down", "provider_unavailable", "postgres_unavailable", "send_retried", "record_failed"):
        assert f"`{event}`" in OPERATORS
        assert f'"{event}"' in CODE
    assert all(f'"{header}"' in CODE for header in re.findall(r"`(mnemolog-\w+)`", OPERATORS))


def test_commands_and_services_of_the_pages_for_operators_exist() -> None:
    commands = get_group(app).commands
    written = re.findall(r"(?:`|^)mnemolog ([^`\n#]+)", OPERATORS, re.MULTILINE)
    written += re.findall(r"docker compose run --rm migrate ([^`\n#]+)", OPERATORS)
    assert len(written) > 5
    for line in written:
        command, *arguments = shlex.split(line.replace("FACT", str(UUID(int=1))))
        commands[command].make_context(command, arguments)
    to_a_service = r"docker compose (?:run --rm|stop|exec|logs --follow) ([a-z ]+?)(?= /|`| [a-z]+ --|\n)"
    named = " ".join(re.findall(to_a_service, OPERATORS)).split()
    assert set(named) - {"audit", "topics", "rebuild"} <= {*services(), *own_services()}


ENTITIES = text_of("docs/entities.md")


def section(title: str) -> str:
    return ENTITIES.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def subjects(title: str) -> list[str]:
    """What each point of a list is about: the text before its first sentence ends."""
    return re.findall(r"^\* (`[^.]+?)\.\s", section(title), re.MULTILINE)


def test_the_page_about_entities_has_every_event_type_role_and_step() -> None:
    events = [name for cell in subjects("What is kept") for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(events) == sorted(ENTITY_EVENT_CLASSES)
    assert set(re.findall(r"`(\w+)`", section("What is kept"))) >= {*ENTITY_TYPES, *get_args(Role)}
    assert set(re.findall(r"`(\w+)`", section("Relations"))) >= set(STRENGTHS)
    steps = [cell.strip("`") for cell in subjects("How a name finds its entity")]
    assert steps == list(get_args(ResolutionStep))


def test_the_limits_of_the_page_about_entities_are_those_of_the_code() -> None:
    limits = [int(number) for number in re.findall(r"\| (\d+)\b[^|]*\|$", section("Limits"), re.MULTILINE)]
    assert limits == [
        *(entities.MAX_NAME, entities.MAX_ENTITIES, entities.MAX_RELATIONS),
        *(MAX_NEW_ENTITIES, entities.MAX_MERGED, entities.MAX_MOVED),
    ]


def test_the_page_about_records_shows_valid_ones_and_explains_every_field_of_a_turn() -> None:
    page = text_of("docs/records.md")
    turn, command = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert Turn.model_validate_json(turn).turn_id == "t1"
    assert Command.model_validate_json(command).command_id == "c1"
    assert {name for name in Turn.model_fields if f"`{name}`" not in page} == {"kind", "schema_version"}


def test_the_page_about_the_client_names_every_method_and_error() -> None:
    page = text_of("docs/client.md")
    methods = {name for kind in (MemoryClient, Entities, Admin) for name in dir(kind) if not name.startswith("_")}
    names = methods - {"entities", "admin"} | set(errors.__all__) - {"MnemologError", "MissingExtraError"}
    assert sorted(name for name in names if f"`{name}`" not in page) == []
