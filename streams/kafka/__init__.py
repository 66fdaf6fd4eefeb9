"""The Kafka side of the stages.

Importing it corrects aiokafka: a client that is cancelled while it asks for its first metadata would leave the
connection open that it asks on.
"""

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, client  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped] # as above
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # as above

from mnemolog.schemas.errors import SettingsError
from mnemolog.streams.kafka import sessions as _sessions  # noqa: F401 - corrects aiokafka
from mnemolog.streams.kafka_address import KafkaAddress


async def _create_conn(create: Any, *address: Any, **options: Any) -> Any:
    connection = await create(*address, **options)
    if "on_close" not in options:  # the client knows it for its first metadata only
        send = connection.send

        async def send_or_close(*request: Any, **more: Any) -> Any:
            try:
                return await send(*request, **more)
            except asyncio.CancelledError:
                connection.close()
                raise

        connection.send = send_or_close
    return connection


client.create_conn = partial(_create_conn, client.create_conn)


async def finish(stopping: Awaitable[object]) -> None:
    """Wait until a client has stopped, however often this is cancelled meanwhile; a cancellation is raised afterwards.

    A client that is cancelled while it stops leaves its connections open, and cannot be stopped again.
    """
    task, cancelled = asyncio.ensure_future(stopping), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    try:
        task.result()
    finally:
        if cancelled is not None:
            raise cancelled


def client_options(address: KafkaAddress) -> dict[str, Any]:
    """The options of every client of aiokafka. Raises `SettingsError` for a file that cannot be read."""
    return {"bootstrap_servers": address.servers.split(","), **connection_options(address)}


def connection_options(address: KafkaAddress) -> dict[str, Any]:
    """The options of one connection. Raises `SettingsError` for a file that cannot be read."""
    options: dict[str, Any] = {"security_protocol": address.security}
    if address.security.endswith("SSL"):
        options["ssl_context"] = _ssl_context(address)
    if address.security.startswith("SASL"):
        options["sasl_mechanism"] = address.mechanism
        if address.mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = _TokenProvider(address.token or "")
        else:
            options |= {"sasl_plain_username": address.username, "sasl_plain_password": _password(address)}
    return options


def _ssl_context(address: KafkaAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca_file)
        if address.certificate_file:
            context.load_cert_chain(address.certificate_file, address.key_file)
    except OSError as error:  # ssl.SSLError is one
        files = filter(None, (address.ca_file, address.certificate_file, address.key_file))
        raise SettingsError(f"{', '.join(map(str, files))} cannot be used ({error}): give files in PEM") from error
    return context


def _password(address: KafkaAddress) -> str | None:
    if address.password_file is None:
        return address.password
    try:
        return address.password_file.read_text().rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"MNEMOLOG_KAFKA_PASSWORD_FILE cannot be read ({error})") from error


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # aiokafka ships no types
    def __init__(self, path: str) -> None:
        module, _, name = path.partition(":")
        try:
            self._source = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(f"MNEMOLOG_KAFKA_TOKEN is {path!r} ({error}): write package.module:function") from error

    async def token(self) -> str:
        """A new one for each connection. A function that is not async is called in a thread: it may wait."""
        found = self._source() if inspect.iscoroutinefunction(self._source) else await asyncio.to_thread(self._source)
        token: str = await found if inspect.isawaitable(found) else found
        return token


def new_consumer(address: KafkaAddress, **options: Any) -> Any:
    return AIOKafkaConsumer(**client_options(address), client_rack=address.rack, **options)


def new_producer(address: KafkaAddress, **options: Any) -> Any:
    return AIOKafkaProducer(**client_options(address), acks="all", **options)


@asynccontextmanager
async def connected_admin(address: KafkaAddress) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(**client_options(address))
    try:
        await admin.start()
        yield admin
    finally:
        await finish(admin.close())


@asynccontextmanager
async def connected_consumer(address: KafkaAddress, **options: Any) -> AsyncIterator[Any]:
    """A consumer without a group; `options` are those of aiokafka."""
    consumer = new_consumer(address, **options)
    try:
        await consumer.start()
        yield consumer
    finally:
        await finish(consumer.stop())
