"""`mnemolog keys`: the keys of the HTTP server."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mnemolog.cli import options
from mnemolog.cli.options import CliCommand
from mnemolog.cli.output import print_line, print_result, print_text
from mnemolog.cli.runtime import discovered_settings, run_async
from mnemolog.cli.tables import moment, print_table

if TYPE_CHECKING:
    from mnemolog.server.keys import ApiKey, KeyStore

R = TypeVar("R")
Given = Annotated[str, typer.Argument(metavar="KEY", help="the id of a key, or its name")]

keys = typer.Typer(help="Make, list and end the keys of the HTTP server.", no_args_is_help=True)


def _call(call: Callable[["KeyStore"], Awaitable[R]]) -> R:
    settings = discovered_settings()

    async def work() -> R:
        from mnemolog.client.connections import ReadPool  # noqa: PLC0415 - loads the drivers
        from mnemolog.server.keys import KeyStore  # noqa: PLC0415 - the same

        timeout = settings.postgres_statement_timeout
        store = KeyStore(ReadPool(settings.postgres or "", size=2, statement_timeout=timeout), now=_now)
        try:
            return await call(store)
        finally:
            await store.close()

    return run_async(work())


def _now() -> datetime:
    return datetime.now(UTC)


@keys.command("create", cls=CliCommand, epilog="Example: mnemolog keys create chat --user alice --right read")
def create(
    *,
    name: Annotated[str, typer.Argument(help="what the key is for")],
    user: Annotated[
        str, typer.Option("--user", "-u", help="the user of the key; the beginning of ids with * behind it; * for all")
    ] = "*",
    right: Annotated[
        list[str] | None,
        typer.Option(help="publish, read, command or admin; several times; the first three unless given"),
    ] = None,
    days: Annotated[float | None, typer.Option(min=0, help="days until it ends; never unless given")] = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a key and show it, once: only a digest is stored."""
    from mnemolog.server.keys import make_key  # noqa: PLC0415 - loads the drivers

    key, text = make_key(
        name,
        tenant=tenant or discovered_settings().tenant,
        users=user,
        rights=list(right or ("publish", "read", "command")),
        at=_now(),
        lifetime=None if days is None else timedelta(days=days),
    )
    _call(lambda store: store.create(key))
    _show_new(key, text, as_json=as_json)


@keys.command("list", cls=CliCommand, epilog="Example: mnemolog keys list")
def list_keys(*, as_json: options.AsJson = False) -> None:
    """List all keys, also those that have ended: what each may, for whom and until when."""
    found = _call(lambda store: store.all())
    print_result([_shown(key) for key in found], lambda _: _show_keys(found), as_json=as_json)


@keys.command("revoke", cls=CliCommand, epilog="Example: mnemolog keys revoke chat")
def revoke(*, given: Given) -> None:
    """End a key; within seconds no server takes it."""
    key = _call(lambda store: store.revoke(given))
    print_text(f"key {key.key_id} ({key.name}) is revoked")


@keys.command("rotate", cls=CliCommand, epilog="Example: mnemolog keys rotate chat --hours 24")
def rotate(
    *,
    given: Given,
    hours: Annotated[float, typer.Option(min=0, help="hours for which the old key still works")] = 24.0,
    as_json: options.AsJson = False,
) -> None:
    """Make a key that may what an old one may, and let the old one end."""
    key, text = _call(lambda store: store.rotate(given, grace=timedelta(hours=hours)))
    _show_new(key, text, as_json=as_json)


def _shown(key: "ApiKey") -> dict[str, Any]:
    names = ("key_id", "name", "tenant", "users", "rights", "created_at", "expires_at", "revoked_at")
    return {name: getattr(key, name) for name in names}


def _show_new(key: "ApiKey", text: str, *, as_json: bool) -> None:
    def show(_: object) -> None:
        print_line(text)
        print_text("This is the only time that the key is shown. A request sends it as `Authorization: Bearer KEY`.")

    print_result({**_shown(key), "key": text}, show, as_json=as_json)


def _show_keys(found: "list[ApiKey]") -> None:
    now = _now()
    rows = [(key.key_id, key.name, key.tenant, key.users, ", ".join(key.rights), _end_of(key, now)) for key in found]
    print_table("keys", ("id", "name", "tenant", "users", "rights", "ends"), rows)


def _end_of(key: "ApiKey", now: datetime) -> str:
    if key.revoked_at is not None:
        return f"revoked {moment(key.revoked_at)}"
    if key.expires_at is None:
        return "never"
    return f"{'ended' if key.expires_at <= now else 'ends'} {moment(key.expires_at)}"
