"""The public names of Mnemolog.

async with MemoryClient() as memory:
    turn = await memory.add("I moved to Bern.", user_id="alice")
    await memory.wait(turn.turn_id)
    found = await memory.search("Where does Alice live?", user_id="alice")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemolog.client.client import MemoryClient, TurnReceipt
    from mnemolog.client.commands import CommandReceipt
    from mnemolog.client.sync_client import SyncMemoryClient
    from mnemolog.errors import (
        InvalidCommandError,
        InvalidTurnError,
        LimitExceededError,
        MnemologError,
        PartlyPublishedError,
        PublishError,
        ServerUnavailableError,
        SettingsError,
        UnknownArgumentError,
        WaitTimeoutError,
    )

__all__ = [
    "CommandReceipt",
    "InvalidCommandError",
    "InvalidTurnError",
    "LimitExceededError",
    "MemoryClient",
    "MnemologError",
    "PartlyPublishedError",
    "PublishError",
    "ServerUnavailableError",
    "SettingsError",
    "SyncMemoryClient",
    "TurnReceipt",
    "UnknownArgumentError",
    "WaitTimeoutError",
]
_MODULES = {
    "CommandReceipt": "client.commands",
    "MemoryClient": "client.client",
    "SyncMemoryClient": "client.sync_client",
    "TurnReceipt": "client.client",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: the command line starts without the drivers."""
    if name not in __all__:
        raise AttributeError(f"module 'mnemolog' has no attribute {name!r}")
    return getattr(import_module(f"mnemolog.{_MODULES.get(name, 'errors')}"), name)
