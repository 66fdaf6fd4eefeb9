"""The client of Mnemolog.

with MemoryClient() as memory:
    result = memory.add("I moved to Bern.", user_id="alice", wait=True)
    found = memory.search("Where does Alice live?", user_id="alice")

`AsyncMemoryClient` has the same methods for asyncio, `start()` runs the servers too, and `mnemolog.testing` needs none.
docs/client.md is the reference. Types of arguments and answers
that few programs name are in `mnemolog.types`, all errors in `mnemolog.errors`.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient as AsyncMemoryClient
    from mnemolog.client.search import SearchResult as SearchResult
    from mnemolog.client.sync_client import MemoryClient as MemoryClient
    from mnemolog.errors import InvalidArgumentError as InvalidArgumentError
    from mnemolog.errors import LimitExceededError as LimitExceededError
    from mnemolog.errors import MnemologError as MnemologError
    from mnemolog.errors import NotConnectedError as NotConnectedError
    from mnemolog.errors import PartlyPublishedError as PartlyPublishedError
    from mnemolog.errors import PublishError as PublishError
    from mnemolog.errors import ServerUnavailableError as ServerUnavailableError
    from mnemolog.errors import SettingsError as SettingsError
    from mnemolog.errors import UnknownFactError as UnknownFactError
    from mnemolog.errors import UnknownTurnError as UnknownTurnError
    from mnemolog.errors import WaitTimeoutError as WaitTimeoutError
    from mnemolog.in_process import start as start
    from mnemolog.projections.context import Context as Context
    from mnemolog.projections.queries.results import Fact as Fact
    from mnemolog.projections.queries.results import Profile as Profile
    from mnemolog.projections.queries.results import Result as Result
    from mnemolog.schemas.policy import Policy as Policy
    from mnemolog.schemas.scope import Scope as Scope
    from mnemolog.schemas.turn import Message as Message
    from mnemolog.schemas.turn import Turn as Turn
    from mnemolog.settings import Settings as Settings

    __version__: str

_MODULES: Final = {
    "mnemolog.client.async_client": ("AsyncMemoryClient",),
    "mnemolog.client.search": ("SearchResult",),
    "mnemolog.client.sync_client": ("MemoryClient",),
    "mnemolog.errors": (
        *("InvalidArgumentError", "LimitExceededError", "MnemologError", "NotConnectedError", "PartlyPublishedError"),
        *("PublishError", "ServerUnavailableError", "SettingsError", "UnknownFactError", "UnknownTurnError"),
        "WaitTimeoutError",
    ),
    "mnemolog.in_process": ("start",),
    "mnemolog.projections.context": ("Context",),
    "mnemolog.projections.queries.results": ("Fact", "Profile", "Result"),
    "mnemolog.schemas.policy": ("Policy",),
    "mnemolog.schemas.scope": ("Scope",),
    "mnemolog.schemas.turn": ("Message", "Turn"),
    "mnemolog.settings": ("Settings",),
}
"""Where each name is: it is imported at its first use, so that the command line starts without the drivers."""
__all__ = [*(name for names in _MODULES.values() for name in names), "__version__"]  # noqa: PLE0604 - all are text


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - see above

        return version("mnemolog")
    for module, names in _MODULES.items():
        if name in names:
            is_collecting = gc.isenabled()
            gc.disable()  # modules leave no garbage, and looking for some takes a fifth of the time of an import
            try:
                return getattr(import_module(module), name)
            finally:
                if is_collecting:
                    gc.enable()
    raise AttributeError(f"module 'mnemolog' has no attribute {name!r}: mnemolog.types and mnemolog.errors have more")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
