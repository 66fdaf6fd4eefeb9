"""The pool of connections for queries, opened at the first one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import InsufficientPrivilege, QueryCanceled, UndefinedTable
from psycopg.rows import TupleRow

from mnemolog.errors import QueryError, ServerUnavailableError, SettingsError
from mnemolog.projections.db.pools import connection_settings, open_pool, prepare_connection

APPLICATION_NAME = "mnemolog-client"
REFUSALS = ("password authentication failed", "no pg_hba.conf entry", "does not exist", "is not permitted to log in")
"""Of Postgres in English. In another language they are taken for an outage, and the message shows them."""


class ReadPool:
    """Hands out connections to the tables at `url`."""

    def __init__(self, url: str, *, size: int, statement_timeout: float) -> None:
        self._url = url
        self._opening = asyncio.Lock()
        self._opened = False
        self._pool = open_pool(
            url,
            min_size=0,
            max_size=size,
            application_name=APPLICATION_NAME,
            statement_timeout=statement_timeout,
            autocommit=True,
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection for one query. Raises `ServerUnavailableError` where Postgres does not answer."""
        try:
            await self._open()
            async with self._pool.connection() as connection:
                yield connection
        except QueryCanceled as error:
            advice = "ask for less, or raise MNEMOLOG_POSTGRES_STATEMENT_TIMEOUT"
            raise ServerUnavailableError(f"Postgres did not answer in time ({_one_line(error)}): {advice}") from error
        except OperationalError as error:
            if _is_refusal(error):
                advice = "correct the user, the password or the database of MNEMOLOG_POSTGRES"
                raise SettingsError(f"Postgres refuses this account ({_one_line(error)}): {advice}") from error
            url = conninfo_to_dict(self._url)  # of which the password is not shown
            server = f"{url.get('host', 'localhost')}:{url.get('port', 5432)}"
            what = f"Postgres at {server} cannot be reached ({_one_line(error)})"
            raise ServerUnavailableError(f"{what}: start it, or correct MNEMOLOG_POSTGRES") from error
        except UndefinedTable as error:
            what = f"this database has no Mnemolog tables ({_one_line(error)})"
            raise SettingsError(f"{what}: run `mnemolog migrate` first") from error
        except InsufficientPrivilege as error:
            advice = "give the account of MNEMOLOG_POSTGRES these rights"
            raise SettingsError(f"Postgres refuses this account ({_one_line(error)}): {advice}") from error
        except DataError as error:
            raise QueryError(f"Postgres cannot take an argument ({_one_line(error)}): correct it") from error
        except InterfaceError as error:
            advice = "on Windows, run AsyncMemoryClient in an asyncio.SelectorEventLoop, or use MemoryClient"
            raise ServerUnavailableError(f"Postgres cannot be used from here ({_one_line(error)}): {advice}") from error

    async def close(self) -> None:
        await self._pool.close()

    async def _open(self) -> None:
        async with self._opening:
            if not self._opened:
                # Fails at once and with the reason, where the pool would silently keep trying.
                settings = connection_settings(self._url, application_name=APPLICATION_NAME)
                async with await AsyncConnection.connect(self._url, **settings) as connection:
                    await prepare_connection(connection)
                await self._pool.open()
                self._opened = True


def _is_refusal(error: OperationalError) -> bool:
    """Whether Postgres answered that it knows no such user, password or database; a failed connection has no code."""
    text = str(error)
    return "FATAL:" in text and any(words in text for words in REFUSALS)


def _one_line(error: Error) -> str:
    return " ".join(str(error).split())
