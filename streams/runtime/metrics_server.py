"""Serves `/metrics` for Prometheus and `/health` for what restarts workers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from mnemolog.projections.metrics import WAITING
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.metrics import MODEL_PAUSED, STAGE_HELD


@dataclass(slots=True, kw_only=True)
class Health:
    """Filled by those who know; `/health` shows it.

    `stages`: whether each is a member of its group. `waiting_for`: by server that the start waits for, why.
    `failing`: by background loop whose last round failed, its error; by model that fails for all, why and what to do.
    """

    stages: dict[str, bool] = field(default_factory=dict)
    waiting_for: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether turns are processed. A failing background loop delays no turn, and a restart would not help it."""
        return not self.waiting_for and bool(self.stages) and all(self.stages.values())


@asynccontextmanager
async def serve_metrics(host: str, port: int, health: Health) -> AsyncIterator[str]:
    """Serve while the context lasts; gives the base URL. Port 0 takes a free one.

    `/health` answers 200 when every stage takes part in its group, else 503, with all of `health` as JSON, and in
    `paused` the models that fail for all, the stages that hold failures back, and Postgres, where they are waited for:
    a restart would not end these waits, so they are no 503.
    Raises `StartRefused` where the address is taken.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def show_health(_: web.Request) -> web.Response:
        gauges = {"model": MODEL_PAUSED, "stage": STAGE_HELD, "postgres": WAITING}
        paused = [
            " ".join([name, *sample.labels.values()])
            for name, gauge in gauges.items()
            for metric in gauge.collect()
            for sample in metric.samples
            if sample.value
        ]
        state = asdict(health) | {"paused": paused}
        return web.json_response(state, status=200 if health.ready else 503)

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/health", show_health)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise StartRefused(
            f"cannot serve metrics on {host}:{port} ({error.strerror}): "
            "set MNEMOLOG_METRICS_PORT to another port, or to 0 for a free one; MNEMOLOG_METRICS_HOST is the address"
        ) from error
    try:
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
