"""The client for asyncio."""

from typing import TYPE_CHECKING, Self

from mnemolog.client.base import Read
from mnemolog.client.commands import CommandMixin
from mnemolog.client.queries import QueryMixin
from mnemolog.client.search import SearchMixin
from mnemolog.client.turns import TurnMixin

if TYPE_CHECKING:
    from mnemolog.client.administration import AdminMethods
    from mnemolog.client.entities import EntityMethods


class MemoryMethods(TurnMixin, SearchMixin, QueryMixin, CommandMixin):
    """The methods that both clients have."""

    @Read
    async def connect(self) -> None:
        """Connect to Kafka and Postgres and load the model that embeds questions, which the first call does otherwise.

        Raises `ServerUnavailableError`, `NotConnectedError` and `SettingsError`; a model that is away raises nothing.
        """
        await self._connections.connect()

    @Read
    async def ping(self) -> bool:
        """True where Kafka and Postgres answer now. Raises `ServerUnavailableError` that names who does not."""
        await self._connections.ping()
        return True


class AsyncMemoryClient(MemoryMethods):
    """Memory for an application.

    `kafka` (host:port) is needed to publish, `postgres` (URL) to query; each is connected to at its first use. What is
    not given is read from the `MNEMOLOG_` variables, and else from a running `mnemolog up` in this folder.
    `publish_timeout` is the seconds an acknowledgement may take. Use it in `async with`, or call `close`.

    Every error is a `MnemologError`. Every method can raise `ServerUnavailableError`, and `InvalidArgumentError` or
    `UnknownArgumentError` for what it is given; queries raise `QueryError`.
    A query names its scope exactly: an id that is not given finds what was stored without it, "*" finds any that is
    set, "**" any or none.
    `memory.scope(user_id="alice")` is a client that has these ids in every call.
    `memory.entities` has the methods about people, places and things, `memory.admin` those for who runs the memory.
    """

    @property
    def entities(self) -> "EntityMethods":
        from mnemolog.client.entities import EntityMethods  # noqa: PLC0415 - many programs ask for none

        return self._part(EntityMethods)

    @property
    def admin(self) -> "AdminMethods":
        from mnemolog.client.administration import AdminMethods  # noqa: PLC0415 - the same

        return self._part(AdminMethods)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is still queued and disconnect; does nothing on what `scope` gives."""
        if not self.is_bound:
            await self._connections.close()
