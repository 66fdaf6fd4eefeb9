"""Mnemolog: what applications import.

async with MemoryClient() as memory:
    turn = await memory.add("I moved to Bern.", user_id="alice")
    await memory.wait(turn.turn_id)
    found = await memory.search("Where does Alice live?", user_id="alice")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemolog.client import Accepted, MemoryClient
    from mnemolog.errors import (
        InvalidOrderError,
        InvalidTurnError,
        LimitExceededError,
        MnemologError,
        PartlyPublishedError,
        PublishError,
        ServerUnavailableError,
        SettingsError,
        WaitTimeoutError,
    )
    from mnemolog.ordering import Ordered
    from mnemolog.sync import SyncMemoryClient

__all__ = [
    "Accepted",
    "InvalidOrderError",
    "InvalidTurnError",
    "LimitExceededError",
    "MemoryClient",
    "MnemologError",
    "Ordered",
    "PartlyPublishedError",
    "PublishError",
    "ServerUnavailableError",
    "SettingsError",
    "SyncMemoryClient",
    "WaitTimeoutError",
]
_MODULES = {"Accepted": "client", "MemoryClient": "client", "Ordered": "ordering", "SyncMemoryClient": "sync"}


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: the command line starts without its drivers."""
    if name not in __all__:
        raise AttributeError(f"module 'mnemolog' has no attribute {name!r}")
    return getattr(import_module(f"mnemolog.{_MODULES.get(name, 'errors')}"), name)
