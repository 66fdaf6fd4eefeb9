"""Options that several commands have, and the decorators that add them to a command."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import print_result
from mnemolog.cli.results import show_receipts, show_results
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.receipts import CommandReceipt

Query = Callable[["AsyncMemoryClient"], Awaitable[Any]]
Change = Callable[["AsyncMemoryClient"], "Awaitable[CommandReceipt | list[CommandReceipt]]"]

AsJson = Annotated[bool, typer.Option("--json", help="write JSON instead of tables")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="MNEMOLOG_TENANT unless given")]
Wait = Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for the result; 0: do not wait")]
Actor = Annotated[str | None, typer.Option("--actor", help="who sends the command (free text, stored)")]
_FLAGS: Final = {"user_id": ("--user", "-u"), "agent_id": ("--agent",), "app_id": ("--app",), "run_id": ("--run",)}


def _id_options(suffix: str) -> dict[str, Any]:
    return {
        name: Annotated[str | None, typer.Option(*flags, help=f"{flags[0].strip('-')} id{suffix}", show_default=False)]
        for name, flags in _FLAGS.items()
    }


EXACT_SCOPE: Final = _id_options("")
ANY_SCOPE: Final = _id_options("; '*' for any, '**' for any or none")


def parse_time(text: str) -> datetime:
    """Read a time as people write it: a day, or ISO 8601; UTC where it names no zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a valid time: write 2026-01-31 or 2026-01-31T09:30+01:00") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def time_option(meaning: str, *flags: str) -> Any:
    """An option that takes a day or a time."""
    return typer.Option(*flags, parser=parse_time, metavar="TIME", help=meaning)


def query_command(
    show: Callable[[Any], None], *, scope: Mapping[str, Any] = ANY_SCOPE, default_id: str | None = None
) -> Callable[[Callable[..., Query]], Callable[..., None]]:
    """Make a command of a function that returns a query; `show` writes its result for people.

    The query gets a client that is bound to the scope of the options.
    """

    def execute(query: Query, *, tenant: str | None, as_json: bool, **ids: Any) -> None:
        result = call_client(lambda client: query(client.scope(**ids)), tenant=tenant)
        print_result(result, show, as_json=as_json)

    ids = {name: (option, default_id) for name, option in scope.items()}
    return lambda build: _command(build, execute, {**ids, "tenant": (Tenant, None), "as_json": (AsJson, False)})


def change_command(scope: Mapping[str, Any] = EXACT_SCOPE) -> Callable[[Callable[..., Change]], Callable[..., None]]:
    """Make a command of a function that returns a change of memory: publish it, wait for its end and show that.

    The exit code is 1 where the change was rejected or failed.
    """

    def execute(
        change: Change, *, tenant: str | None, actor: str | None, wait: float, as_json: bool, **ids: Any
    ) -> None:
        async def work(client: "AsyncMemoryClient") -> list[Any]:
            published = await change(client.scope(actor=actor, **ids))
            receipts = published if isinstance(published, list) else [published]
            return [await client.wait(one.command_id, timeout=wait) for one in receipts] if wait else receipts

        ends = call_client(work, tenant=tenant)
        document = ends[0] if len(ends) == 1 else ends
        print_result(document, lambda _: show_results(ends) if wait else show_receipts(ends), as_json=as_json)
        if any(end.status in ("rejected", "failed") for end in ends):
            raise typer.Exit(FAILED)

    ids = {name: (option, None) for name, option in scope.items()}
    own = {"tenant": (Tenant, None), "actor": (Actor, None), "wait": (Wait, 30.0), "as_json": (AsJson, False)}
    return lambda build: _command(build, execute, {**ids, **own})


def _command(
    build: Callable[..., Any], execute: Callable[..., None], added: Mapping[str, tuple[Any, Any]]
) -> Callable[..., None]:
    """A command with the options of `build` and the `added` ones; `execute` gets the result of the former."""

    @wraps(build)
    def command(**given: Any) -> None:
        shared = {name: given.pop(name) for name in added}
        execute(build(**given), **shared)

    parameters = [
        *inspect.signature(build).parameters.values(),
        *(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option)
            for name, (option, default) in added.items()
        ),
    ]
    # typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as `inspect` documents it
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command
