"""Who may do what: principals, and the one function that decides whose memory a request reaches. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, cast, get_args

from mnemolog.client.inputs import BoundArgs
from mnemolog.projections.queries.scope_filter import ANY_VALUE, WILDCARDS
from mnemolog.schemas.errors import InvalidArgumentError, MnemologError

Right = Literal["publish", "read", "command", "admin"]
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)
"""Publish turns; read; change what is remembered by commands; look at the whole tenant and at metrics."""


class NotAuthenticatedError(MnemologError):
    """The request has no key or token, or one that is not valid (any more)."""


class ForbiddenError(MnemologError):
    """The key or token of the request does not allow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPattern:
    """The users that a principal may name: the one of `id`, or all whose ids begin so. Ids are compared exactly."""

    id: str
    is_prefix: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """`alice` is one user, `team-7/*` all whose ids begin so, `*` everybody. Raises `InvalidArgumentError`."""
        prefix = text.removesuffix(ANY_VALUE)
        if not text or ANY_VALUE in prefix:
            raise InvalidArgumentError(
                f"{text!r:.80} is no pattern of users: give an id, the beginning of ids and * behind it, or *"
            )
        return cls(id=prefix, is_prefix=prefix != text)

    def __str__(self) -> str:
        return f"{self.id}{ANY_VALUE if self.is_prefix else ''}"

    @property
    def is_everybody(self) -> bool:
        return self.is_prefix and not self.id

    def __contains__(self, user_id: str) -> bool:
        return user_id.startswith(self.id) if self.is_prefix else user_id == self.id


EVERYBODY: Final = UserPattern(id="", is_prefix=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request. `name` is the actor of the commands that it sends, `key:3f2a1b4c` or `jwt:alice`."""

    name: str
    tenant: str
    rights: frozenset[Right]
    users: UserPattern

    def require(self, right: Right) -> None:
        """Raise `ForbiddenError` where the principal does not have a right."""
        if right not in self.rights:
            held = ", ".join(sorted(self.rights)) or "none"
            raise ForbiddenError(f"this needs the right {right}, and {self.name} has {held}: use another key")


def authorise(principal: Principal, ids: Mapping[str, str | None]) -> BoundArgs:
    """The scope that a request of `principal` about these ids reaches.

    It has the ids that are set. The tenant is always that of the principal. One that is bound to users names one of
    them in each request, wildcards are not among them; where it is bound to one user, that one is meant. Raises
    `ForbiddenError`.
    """
    users, user = principal.users, ids.get("user_id")
    if not users.is_everybody:
        if user is None and users.is_prefix:
            raise ForbiddenError(f"{principal.name} is bound to the users {users}: name one of them as user_id")
        user = users.id if user is None else user
        if user in WILDCARDS or user not in users:
            raise ForbiddenError(
                f"{principal.name} is bound to the users {users}: user_id {user!r:.80} is none of them"
            )
    named = {**ids, "user_id": user, "tenant": principal.tenant, "actor": principal.name}
    return cast("BoundArgs", {name: named[name] for name in BoundArgs.__annotations__ if named.get(name) is not None})
