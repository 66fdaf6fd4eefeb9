"""All settings in one place: read from the environment, checked at start, documented in docs/settings.md."""

import os
import re
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_settings import SettingsError as UnreadableError

from mnemolog.errors import SettingsError
from mnemolog.schemas.base import Fraction, Identifier
from mnemolog.schemas.scope import check_tenant
from mnemolog.streams.settings import StreamsSettings, http_url

PREFIX = "MNEMOLOG_"
McpTools = Literal["core", "seed", "both"]
_NEAR = 0.85
"""The share of its letters that a misspelt name has in common with a setting: a slip in five, two in a dozen."""


class Settings(StreamsSettings):
    """Everything that can be set. Each field is the environment variable `MNEMOLOG_<NAME>`."""

    data_dir: Path = Field(default=Path(".mnemolog"), description="folder of the embedded Kafka and Postgres")
    tenant: Annotated[Identifier, AfterValidator(check_tenant)] = Field(
        default="default", description="tenant of clients and commands that name none"
    )
    min_confidence: Fraction | None = Field(
        default=None,
        description="confidence below which a search of a client leaves facts out, and a context takes them for "
        "doubtful, unless a call says otherwise; without it a search leaves none out, and a context takes 0.5",
    )
    mcp_user: Identifier | None = Field(
        default=None, description="user whose memory `mnemolog mcp` serves where no --user is given"
    )
    mcp_tools: McpTools = Field(
        default="core",
        description="tools over MCP: `core`, or `save_memory` and `search_memory` in place of two of them (`seed`), or "
        "beside them (`both`)",
    )
    http_host: str = Field(default="127.0.0.1", description="address of the HTTP server")
    http_port: int = Field(
        default=8464, ge=0, le=65535, description="its port; 0 takes a free one, as `up` does if it is taken"
    )
    http_max_body: int = Field(default=4 << 20, ge=1024, description="bytes of the largest body of a request")
    http_rate: float = Field(
        default=100.0,
        ge=0,
        description="requests a second that a process takes of a key or a token; 0 for any number",
    )
    http_page_commands: bool = Field(
        default=False, description="whether the page of decisions may confirm, reject, resolve and undo"
    )
    jwks_url: Annotated[str, AfterValidator(http_url)] | None = Field(
        default=None, description="URL of the keys (JWKS) of the server whose JSON Web Tokens are taken; else none are"
    )
    jwt_audience: str | None = Field(default=None, min_length=1, description="what `aud` of these tokens has to be")
    jwt_issuer: str | None = Field(default=None, min_length=1, description="what `iss` of these tokens has to be")

    @model_validator(mode="after")
    def _check_tokens(self) -> Self:
        if self.jwks_url and not (self.jwt_audience and self.jwt_issuer):
            raise ValueError("MNEMOLOG_JWKS_URL needs MNEMOLOG_JWT_AUDIENCE and MNEMOLOG_JWT_ISSUER")
        return self


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises `SettingsError` that names each wrong setting, and each variable that looks like a misspelt one.
    """
    known = [name.upper() for name in Settings.model_fields]
    for variable in os.environ:
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known:
            continue
        # Near misses alone are refused: other MNEMOLOG_ variables come from elsewhere, such as Kubernetes' Services.
        if nearest := get_close_matches(name, known, n=1, cutoff=_NEAR):
            raise SettingsError(f"{variable} is not a setting: did you mean {PREFIX}{nearest[0]}?")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        words = [_describe(fault["loc"], fault["msg"].removeprefix("Value error, "), overrides) for fault in faults]
        raise SettingsError("; ".join(words)) from error
    except UnreadableError as error:  # a list that is not JSON: Pydantic says in its message alone which one
        field = re.search(r'field "(\w+)"', str(error))
        name = PREFIX + field[1].upper() if field else "a setting"
        raise SettingsError(f'{name} is not valid JSON: write a list as ["one", "two"]') from error


def _describe(place: tuple[int | str, ...], message: str, given: Collection[str]) -> str:
    """One fault with its setting; where several do not go together, the message names them."""
    if not place:
        return message
    name = str(place[0]) if place[0] in given else f"{PREFIX}{'.'.join(map(str, place)).upper()}"
    if os.environ.get(name) == "":
        return f"{name} is empty: unset it, or give a {'token' if name.endswith('TOKEN') else 'value'}"
    if os.environ.get(name, "").startswith("tcp://"):
        service = name.removesuffix("_PORT").replace("_", "-").lower()
        message += f" (set by Kubernetes for a Service {service}? Give the pod `enableServiceLinks: false`)"
    return f"{name}: {message}"
