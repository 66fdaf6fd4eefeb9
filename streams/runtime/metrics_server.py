"""Serve `/metrics` for Prometheus and `/health` for whatever restarts workers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from mnemolog.streams.errors import StartRefused
from mnemolog.streams.runtime.health import Health


@asynccontextmanager
async def serve_metrics(host: str, port: int, health: Health) -> AsyncIterator[str]:
    """Serve while the context lasts; gives the base URL. Port 0 takes a free one.

    `/health` answers 200 when every stage takes part in its group, else 503, with all of `health` as JSON.
    Raises `StartRefused` where the address is taken.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def show_health(_: web.Request) -> web.Response:
        return web.json_response(asdict(health), status=200 if health.ready else 503)

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
