"""The public names of Mnemolog.

with MemoryClient() as memory:
    turn = memory.add("I moved to Bern.", user_id="alice")
    memory.wait(turn.turn_id)
    found = memory.search("Where does Alice live?", user_id="alice")

`AsyncMemoryClient` has the same methods for asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.receipts import CommandReceipt, TurnReceipt
    from mnemolog.client.sync_client import MemoryClient
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
    "AsyncMemoryClient",
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
    "TurnReceipt",
    "UnknownArgumentError",
    "WaitTimeoutError",
]
_MODULES = {
    "CommandReceipt": "client.receipts",
    "AsyncMemoryClient": "client.async_client",
    "MemoryClient": "client.sync_client",
    "TurnReceipt": "client.receipts",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: the command line starts without the drivers."""
    if name not in __all__:
        raise AttributeError(f"module 'mnemolog' has no attribute {name!r}")
    return getattr(import_module(f"mnemolog.{_MODULES.get(name, 'errors')}"), name)
