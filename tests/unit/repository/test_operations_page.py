"""What the pages for operators name exists."""

import re
import shlex
from uuid import UUID

from typer.main import get_group

import mnemolog.projections.metrics
import mnemolog.streams.metrics
from mnemolog.cli.app import app
from mnemolog.settings import PREFIX, Settings
from tests.support.deployment_files import own_services, services
from tests.support.paths import ROOT

PAGE = "\n".join(
    (ROOT / f"docs/how-to/{name}.md").read_text() for name in ("own-servers", "operate", "incidents", "back-up")
)
CODE = "\n".join(path.read_text() for path in (ROOT / "streams").rglob("*.py")) + "\n".join(
    path.read_text() for path in (ROOT / "projections").rglob("*.py")
)


def test_its_metrics_exist() -> None:
    known = {metric.name for metric in [*mnemolog.streams.metrics.CATALOGUE, *mnemolog.projections.metrics.CATALOGUE]}
    assert set(re.findall(r"`(mnemolog_\w+)`", PAGE)) <= known


def test_its_settings_exist() -> None:
    assert set(re.findall(r"MNEMOLOG_\w+", PAGE)) <= {PREFIX + name.upper() for name in Settings.model_fields}


def test_its_log_events_exist() -> None:
    events = {"stage_down", "provider_unavailable", "postgres_unavailable", "send_retried", "record_failed"}
    for event in events:
        assert f"`{event}`" in PAGE
        assert f'"{event}"' in CODE


def test_its_commands_exist() -> None:
    commands = get_group(app).commands
    written = re.findall(r"(?:`|^)mnemolog ([^`\n#]+)", PAGE, re.MULTILINE)
    written += re.findall(r"docker compose run --rm migrate ([^`\n#]+)", PAGE)
    assert len(written) > 5
    for line in written:
        command, *arguments = shlex.split(line.replace("FACT", str(UUID(int=1))))
        commands[command].make_context(command, arguments)


def test_its_services_and_headers_exist() -> None:
    named = re.findall(r"docker compose (?:run --rm|stop|exec|logs --follow) ([a-z ]+?)(?= /|`| [a-z]+ --|\n)", PAGE)
    assert set(" ".join(named).split()) - {"audit", "topics", "rebuild"} <= {*services(), *own_services()}
    assert all(f'"{header}"' in CODE for header in re.findall(r"`(mnemolog-\w+)`", PAGE))
