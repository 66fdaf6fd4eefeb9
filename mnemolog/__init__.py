"""The client of Mnemolog.

with MemoryClient() as memory:
    result = memory.add("I moved to Bern.", user_id="alice", wait=True)
    found = memory.search("Where does Alice live?", user_id="alice")

`AsyncMemoryClient` has the same methods for asyncio. docs/client.md is the reference. Types of arguments and answers
that few programs name are in `mnemolog.types`, all errors in `mnemolog.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.search import SearchResult
    from mnemolog.client.sync_client import MemoryClient
    from mnemolog.errors import (
        InvalidArgumentError,
        LimitExceededError,
        MnemologError,
        NotConnectedError,
        PartlyPublishedError,
        PublishError,
        ServerUnavailableError,
        SettingsError,
        UnknownFactError,
        UnknownTurnError,
        WaitTimeoutError,
    )
    from mnemolog.projections.context import Context
    from mnemolog.projections.queries.results import Fact, Profile, Result
    from mnemolog.schemas.policy import Policy
    from mnemolog.schemas.scope import Scope
    from mnemolog.schemas.turn import Message, Turn
    from mnemolog.settings import Settings

    __version__: str

__all__ = [
    "AsyncMemoryClient",
    "Context",
    "Fact",
    "InvalidArgumentError",
    "LimitExceededError",
    "MemoryClient",
    "Message",
    "MnemologError",
    "NotConnectedError",
    "PartlyPublishedError",
    "Policy",
    "Profile",
    "PublishError",
    "Result",
    "Scope",
    "SearchResult",
    "ServerUnavailableError",
    "Settings",
    "SettingsError",
    "Turn",
    "UnknownFactError",
    "UnknownTurnError",
    "WaitTimeoutError",
    "__version__",
]
_MODULES: Final = {
    "mnemolog.client.async_client": ("AsyncMemoryClient",),
    "mnemolog.client.search": ("SearchResult",),
    "mnemolog.client.sync_client": ("MemoryClient",),
    "mnemolog.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "mnemolog.projections.context": ("Context",),
    "mnemolog.projections.queries.results": ("Fact", "Profile", "Result"),
    "mnemolog.schemas.policy": ("Policy",),
    "mnemolog.schemas.scope": ("Scope",),
    "mnemolog.schemas.turn": ("Message", "Turn"),
    "mnemolog.settings": ("Settings",),
}
"""Where each name is: it is imported at its first use, so that the command line starts without the drivers."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - see above

        return version("mnemolog")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'mnemolog' has no attribute {name!r}: mnemolog.types and mnemolog.errors have more")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
