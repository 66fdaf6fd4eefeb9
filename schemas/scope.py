"""Whose memory it is. A fact lives in exactly the scope it was stored in."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, JsonValue, field_validator, model_validator

from mnemolog.schemas.base import Identifier, Record

SCOPE_FIELDS = ("tenant", "user_id", "agent_id", "app_id", "run_id")
ScopeColumns = tuple[str, str, str, str, str]
"""The columns of a row in the order of `SCOPE_FIELDS`; what is not set is the empty string, which no id can be."""


def _required_property(field: str) -> dict[str, JsonValue]:
    return {"properties": {field: {"type": "string"}}, "required": [field]}


def check_tenant(tenant: str) -> str:
    """Return the tenant; raise ValueError for one that could be read as a tenant and a user."""
    if "/" in tenant:
        raise ValueError("a tenant has no '/'")
    return tenant


class Scope(Record):
    """Tenant, user, agent, app and run; at least a user or an agent is named.

    A tenant has no "/", and a user none in front, so that no two of them have the same owner.
    """

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_required_property("user_id"), _required_property("agent_id")]}
    )

    tenant: Annotated[Identifier, AfterValidator(check_tenant)] = "default"
    user_id: Identifier | None = None
    agent_id: Identifier | None = None
    app_id: Identifier | None = None
    run_id: Identifier | None = None

    @field_validator("user_id")
    @classmethod
    def _no_leading_slash(cls, user_id: str | None) -> str | None:
        if user_id is not None and user_id.startswith("/"):
            raise ValueError("a user_id does not begin with '/'")
        return user_id

    @model_validator(mode="after")
    def _has_owner(self) -> Self:
        if self.user_id is None and self.agent_id is None:
            raise ValueError("a scope names at least a user_id or an agent_id")
        return self

    @property
    def owner(self) -> str:
        """`tenant/user`, or `tenant//agent` without a user: whose sources have one commit each, in order."""
        return f"{self.tenant}/{self.user_id}" if self.user_id else f"{self.tenant}//{self.agent_id}"

    @property
    def key(self) -> bytes:
        """The Kafka key of every record of this owner: `tenant/user`, or `tenant/agent` without a user."""
        return f"{self.tenant}/{self.user_id or self.agent_id}".encode()

    @property
    def columns(self) -> dict[str, str]:
        return {name: getattr(self, name) or "" for name in SCOPE_FIELDS}

    @classmethod
    def from_columns(cls, columns: Iterable[str]) -> Self:
        return cls(**{name: value for name, value in zip(SCOPE_FIELDS, columns, strict=True) if value})


def scope_columns(scope: Scope | None) -> ScopeColumns:
    if scope is None:
        return ("", "", "", "", "")
    return (scope.tenant, scope.user_id or "", scope.agent_id or "", scope.app_id or "", scope.run_id or "")
