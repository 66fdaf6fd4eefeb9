"""The blocking client, for programs without an event loop."""

import atexit
from typing import TYPE_CHECKING, Never, Self, Unpack

from mnemolog.client.async_client import MemoryMethods
from mnemolog.client.base import Blocking, ClientOptions, LoopThread

if TYPE_CHECKING:
    from mnemolog.client.administration import Admin
    from mnemolog.client.entities import Entities


class MemoryClient(Blocking, MemoryMethods):
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`, or until the program ends; several threads may call it at once.
    """

    def __init__(self, *positional: Never, **options: Unpack[ClientOptions]) -> None:
        super().__init__(*positional, **options)
        self._thread = LoopThread()
        atexit.register(self.close)

    @property
    def entities(self) -> "Entities":
        from mnemolog.client.entities import Entities  # noqa: PLC0415 - many programs ask for none

        return self._part(Entities)

    @property
    def admin(self) -> "Admin":
        from mnemolog.client.administration import Admin  # noqa: PLC0415 - the same

        return self._part(Admin)

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""
        if not self.is_bound:
            atexit.unregister(self.close)
            self._thread.close(self._connections.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
