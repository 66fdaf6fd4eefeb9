"""Where Postgres is and how it is used."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0)]


class PostgresSettings(BaseSettings):
    """Settings of the Postgres side; every field is read from `MNEMOLOG_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="MNEMOLOG_", extra="forbid", frozen=True, defer_build=True)

    postgres: str | None = Field(
        default=None, description="URL of the Postgres to use; without it `up` starts one of its own"
    )
    postgres_pool_size: int = Field(default=8, ge=2, le=200, description="connections one process holds at the most")
    postgres_statement_timeout: Seconds = Field(
        default=30.0, description="seconds after which Postgres cancels a statement of a stage or a query"
    )
    reply_retention_days: float = Field(
        default=7.0,
        gt=0,
        description="days for which replies of models are kept for re-delivered turns, as long as Kafka keeps turns",
    )
