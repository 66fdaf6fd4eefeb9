"""All settings in one place: read from the environment, checked at start, documented in docs/settings.md."""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import SettingsError as UnreadableError

from mnemolog.errors import SettingsError
from mnemolog.schemas.base import Identifier
from mnemolog.schemas.scope import check_tenant
from mnemolog.streams.settings import StreamsSettings

PREFIX = "MNEMOLOG_"
_NOT_SETTINGS = ("MNEMOLOG_TEST_", "MNEMOLOG_CHAOS_", "MNEMOLOG_BENCH_", "MNEMOLOG_CI")


class Settings(StreamsSettings):
    """Everything that can be set. Each field is the environment variable `MNEMOLOG_<NAME>`."""

    data_dir: Path = Field(default=Path(".mnemolog"), description="folder of the embedded Kafka and Postgres")
    tenant: Annotated[Identifier, AfterValidator(check_tenant)] = Field(
        default="default", description="tenant of clients and commands that name none"
    )


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises `SettingsError` that names each wrong setting, and each `MNEMOLOG_` variable that is no setting.
    """
    _refuse_misspelt(os.environ)
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise SettingsError(_describe(error)) from error
    except UnreadableError as error:
        raise SettingsError(_describe_unreadable(error)) from error


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in environ:
        if name.startswith(PREFIX) and name not in known and not name.startswith(_NOT_SETTINGS):
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]}?" if near else "`mnemolog settings` lists all"
            raise SettingsError(f"{name} is no setting: {advice}")


def _describe(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    return "; ".join(_describe_one(fault["loc"], fault["msg"].removeprefix("Value error, ")) for fault in faults)


def _describe_one(place: tuple[int | str, ...], message: str) -> str:
    """One fault with its setting; where several do not go together, the message names them."""
    return f"{PREFIX}{'.'.join(map(str, place)).upper()}: {message}" if place else message


def _describe_unreadable(error: UnreadableError) -> str:
    """A list that is no JSON: Pydantic says in its message alone which one."""
    field = re.search(r'field "(\w+)"', str(error))
    name = PREFIX + field[1].upper() if field else "a setting"
    return f'{name} is no JSON: write a list as ["one", "two"]'
