"""What all commands that order something share: whose memory it is, who orders it, waiting for the end, showing it."""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import escape, print_json, stdout
from mnemolog.cli.results import show_status
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.client.client import MemoryClient
    from mnemolog.client.commands import CommandArgs, CommandReceipt
    from mnemolog.projections.queries.results import WriteResult

    IssueCommand = Callable[[MemoryClient, CommandArgs], Awaitable[CommandReceipt | list[CommandReceipt]]]

ExactUser = Annotated[str | None, typer.Option("--user", "-u", help="whose memory", show_default=False)]
ExactAgent = Annotated[str | None, typer.Option("--agent", help="of which agent", show_default=False)]
ExactApp = Annotated[str | None, typer.Option("--app", help="of which app", show_default=False)]
ExactRun = Annotated[str | None, typer.Option("--run", help="of which run", show_default=False)]
_WILDCARD_SCOPE: Final = {"user": options.User, "agent": options.Agent, "app": options.App, "run": options.Run}
_EXACT_SCOPE: Final = {"user": ExactUser, "agent": ExactAgent, "app": ExactApp, "run": ExactRun}
_COMMAND_OPTIONS: Final = {
    "tenant": options.Tenant,
    "actor": Annotated[
        str | None, typer.Option("--actor", help="who orders it, in words, for the record", show_default=False)
    ],
    "wait": Annotated[float, typer.Option("--wait", min=0, help="seconds to wait for its end; 0 does not wait")],
    "as_json": options.AsJson,
}
_DEFAULTS: Final = {"wait": 30.0, "as_json": False}


def memory_command(*, any_scope: bool = False) -> "Callable[[Callable[..., IssueCommand]], Callable[..., None]]":
    """Make a command of a function that says what to order: with its own options, and those that all orders have.

    A `any_scope` order may be for any scope, others are for exactly one. The exit code is 1 where an order was refused.
    """

    def command_of(say: "Callable[..., IssueCommand]") -> Callable[..., None]:
        @wraps(say)
        def command(**given: Any) -> None:
            shared = {name: given.pop(name) for name in (*_EXACT_SCOPE, *_COMMAND_OPTIONS)}
            _issue(say(**given), **shared)

        _add_options(command, say, {**(_WILDCARD_SCOPE if any_scope else _EXACT_SCOPE), **_COMMAND_OPTIONS})
        return command

    return command_of


def _add_options(command: Callable[..., None], build: Callable[..., Any], shared: dict[str, Any]) -> None:
    """Let typer see the options of `say` and the shared ones as those of `command`."""
    own = list(inspect.signature(build).parameters.values())
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=annotation)
        for name, annotation in shared.items()
    ]
    command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # read by `inspect`
    command.__annotations__ = {one.name: one.annotation for one in (*own, *added)}


def _issue(
    issue: "IssueCommand",
    *,
    user: str | None,
    agent: str | None,
    app: str | None,
    run: str | None,
    tenant: str | None,
    actor: str | None,
    wait: float,
    as_json: bool,
) -> None:
    whose: CommandArgs = {"user_id": user, "agent_id": agent, "app_id": app, "run_id": run, "actor": actor}

    async def work(client: "MemoryClient") -> "list[WriteResult] | list[CommandReceipt]":
        ordered = await issue(client, whose)
        orders = ordered if isinstance(ordered, list) else [ordered]
        return [await client.wait(one.command_id, timeout=wait) for one in orders] if wait else orders

    ends = call_client(work, tenant=tenant)
    if as_json:
        print_json(ends if len(ends) != 1 else ends[0])
    else:
        _show_receipts(ends)
    if any(end.status in ("rejected", "failed") for end in ends):
        raise typer.Exit(FAILED)


def _show_receipts(results: "list[WriteResult] | list[CommandReceipt]") -> None:
    from mnemolog.client.commands import CommandReceipt  # noqa: PLC0415 - loaded by whoever has sent a command

    if not results:
        stdout().print("no scope has anything of the kind: nothing was ordered")
    for end in results:
        if isinstance(end, CommandReceipt):
            stdout().print(f"[bold]{escape(end.command_id)}[/]: ordered; `mnemolog status` tells of its end")
        else:
            show_status(end)
