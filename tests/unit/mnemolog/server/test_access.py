"""Whose memory a request reaches: every way out of the users and the tenant of a key is shut."""

from itertools import product
from typing import Any

import pytest

from mnemolog.errors import InvalidArgumentError
from mnemolog.server.access import EVERYBODY, RIGHTS, ForbiddenError, Principal, UserPattern, authorise
from mnemolog.server.gate import Access
from tests.support.harnesses.offline_client import OfflineClient


def principal(users: str, *rights: Any) -> Principal:
    held = frozenset(rights or RIGHTS)
    return Principal(name="key:1", tenant="acme", rights=held, users=UserPattern.read(users))


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (
            "alice",
            ["alice"],
            ["", "Alice", "alice ", " alice", "alic", "alice2", "ali\u0441e", "\uff41lice", "*", "**", "bob"],
        ),
        ("team-7/*", ["team-7/", "team-7/a"], ["team-7", "team-70/a", "Team-7/a", "x/team-7/a", "*", "**"]),
        ("ﬁ*", ["ﬁ", "ﬁona"], ["fi", "fiona"]),
        ("*", ["alice", "", "team-7/a"], []),
    ],
)
def test_a_pattern_has_exactly_its_users(pattern: str, inside: list[str], outside: list[str]) -> None:
    users = UserPattern.read(pattern)
    assert str(users) == pattern
    assert [one for one in (*inside, *outside) if one in users] == inside


@pytest.mark.parametrize("pattern", ["", "**", "*a", "a*b*", "a**"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is no pattern of users"):
        UserPattern.read(pattern)


@pytest.mark.parametrize(
    ("users", "user_id"),
    [
        *product(["alice", "alice*"], ["bob", "*", "**", "", "ALICE", "alic\u0435", "a\u0301lice"]),
        ("alice*", None),
        ("alice", "alice2"),
    ],
)
def test_a_principal_of_users_names_one_of_them(users: str, user_id: str | None) -> None:
    with pytest.raises(ForbiddenError, match=r"key:1 is bound to the users"):
        authorise(principal(users), {"user_id": user_id, "agent_id": "bot"})


def test_the_scope_has_the_tenant_of_the_principal_the_user_and_who_sends_commands() -> None:
    asked = {"tenant": "other", "actor": "somebody", "agent_id": "bot", "run_id": "**"}
    rest = {"tenant": "acme", "agent_id": "bot", "run_id": "**", "actor": "key:1"}
    assert authorise(principal("alice"), asked) == {"user_id": "alice", **rest}
    assert authorise(principal("*"), {**asked, "app_id": None, "other": "x"}) == rest
    assert authorise(principal("*"), {**asked, "user_id": "**"}) == {"user_id": "**", **rest}


def test_each_scope_of_a_search_in_several_is_authorised() -> None:
    access = Access(principal("alice"), OfflineClient())
    assert access.scopes([{"run_id": "r"}, {"user_id": None, "agent_id": "bot"}]) == [
        {"run_id": "r"},
        {"user_id": "alice", "agent_id": "bot"},
    ]
    for escape in ({"user_id": "bob"}, {"user_id": "**"}, {"tenant": "other"}, {"tenant": "acme"}):
        with pytest.raises(ForbiddenError):
            access.scopes([{}, escape])


def test_a_right_that_is_missing_is_named() -> None:
    reader = principal("*", "read")
    reader.require("read")
    for right in ("publish", "command", "admin"):
        with pytest.raises(ForbiddenError, match=f"needs the right {right}, and key:1 has read"):
            reader.require(right)
    assert EVERYBODY.is_everybody
