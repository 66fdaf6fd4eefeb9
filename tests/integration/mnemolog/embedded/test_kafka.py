from __future__ import annotations

from pathlib import Path

from mnemolog.embedded.child import Child
from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.embedded.kafka import KafkaPlan, _command, server_properties


def _plan(folder: Path, jars: Path) -> KafkaPlan:
    return KafkaPlan(folder=folder, jars=jars, port=20_001, controller_port=20_002, log=folder / "log")


def test_kafka_listens_on_loopback_alone(tmp_path: Path) -> None:
    listeners = server_properties(_plan(tmp_path, tmp_path))["listeners"]
    assert listeners == "PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"


async def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path) -> None:
    plan = _plan(tmp_path, ensure_jars(cache_folder(tmp_path), jars=read_lock()))
    plan.temporary.mkdir()
    (tmp_path / "server.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in server_properties(plan).items())
    )
    identity = "-" + "A" * 21
    format_storage = ("kafka.tools.StorageTool", "format", f"--cluster-id={identity}", "-c", "server.properties")
    format_command = _command(plan, format_storage)
    await Child(format_command).wait_until_finished(timeout=60)
    assert f"cluster.id={identity}\n" in plan.meta.read_text()
