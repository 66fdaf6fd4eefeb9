"""A real Prometheus for tests, with the project's own configuration pointed at one worker."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from tests.support.deployment_files import read_yaml
from tests.support.programs import required_program
from tests.support.servers.kafka_client import wait_until

SCRAPE_SECONDS: Final = 1


class Prometheus:
    """Answers PromQL."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def query(self, expr: str) -> list[dict[str, Any]]:
        """The series that `expr` gives now; fails on an expression that Prometheus does not take."""
        async with self._session.get(f"{self._url}/api/v1/query", params={"query": expr}) as response:
            answer = await response.json()
        assert answer["status"] == "success", f"{expr}: {answer.get('error')}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    async def is_ready(self) -> bool:
        try:
            async with self._session.get(f"{self._url}/-/ready") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False


@asynccontextmanager
async def running_prometheus(worker_url: str, folder: Path) -> AsyncIterator[Prometheus]:
    """A Prometheus that reads one worker every second; stopped afterwards."""
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(_configuration(worker_url.removeprefix("http://"))))
    address = f"127.0.0.1:{_free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            required_program("prometheus"),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession() as session:
            prometheus = Prometheus(f"http://{address}", session)
            await wait_until(prometheus.is_ready)
            yield prometheus
    finally:
        process.terminate()
        await process.wait()


def _configuration(target: str) -> dict[str, Any]:
    config: dict[str, Any] = read_yaml("deploy/prometheus.yml")
    job = config["scrape_configs"][0]
    del job["dns_sd_configs"], job["relabel_configs"]
    times = {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"}
    return {"global": times, "scrape_configs": [job | {"static_configs": [{"targets": [target]}]}]}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
