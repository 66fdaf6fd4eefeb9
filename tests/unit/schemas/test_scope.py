import pytest
from pydantic import ValidationError

from mnemolog.schemas.scope import SCOPE_FIELDS, Scope


def test_the_owner_is_the_user_whoever_else_is_named() -> None:
    assert Scope(user_id="nadia", agent_id="planner", app_id="diary", run_id="r1").owner == "default/nadia"


def test_an_agent_without_a_user_is_an_owner_of_its_own_under_the_plain_key() -> None:
    agent = Scope(tenant="acme", agent_id="planner")
    assert (agent.owner, agent.key) == ("acme//planner", b"acme/planner")
    assert Scope(tenant="acme", user_id="planner").owner == "acme/planner"


def test_no_user_can_pose_as_an_agent() -> None:
    with pytest.raises(ValidationError, match="does not begin with '/'"):
        Scope(tenant="acme", user_id="/planner")


def test_the_key_is_the_owner_in_utf8() -> None:
    assert Scope(user_id="結城").key == "default/結城".encode()


def test_every_dimension_is_a_column_and_empty_where_it_is_not_set() -> None:
    columns = Scope(user_id="nadia", run_id="r1").columns
    assert tuple(columns) == SCOPE_FIELDS == tuple(Scope.model_fields)
    assert columns == {"tenant": "default", "user_id": "nadia", "agent_id": "", "app_id": "", "run_id": "r1"}


def test_a_scope_without_user_and_agent_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least a user_id or an agent_id"):
        Scope(app_id="diary", run_id="r1")


@pytest.mark.parametrize("dimension", SCOPE_FIELDS)
@pytest.mark.parametrize("value", ["", "*", "**", " nadia", "nadia\n", "na\x00dia", "\ud83d", "x" * 257])
def test_what_cannot_be_told_apart_or_stored_is_no_id(dimension: str, value: str) -> None:
    with pytest.raises(ValidationError, match=dimension):
        Scope.model_validate({"user_id": "nadia", dimension: value})


def test_a_tenant_has_no_slash_so_that_owners_are_unambiguous() -> None:
    assert Scope(tenant="a", user_id="b/c").owner == "a/b/c"
    with pytest.raises(ValidationError, match="a tenant has no '/'"):
        Scope(tenant="a/b", user_id="c")


@pytest.mark.parametrize("unit", ["x", "ü", "語", "😀"])
def test_an_id_is_bounded_in_bytes_so_that_all_five_fit_into_an_index(unit: str) -> None:
    most = 256 // len(unit.encode())
    assert Scope(user_id=unit * most).user_id == unit * most
    with pytest.raises(ValidationError, match="256"):
        Scope(user_id=unit * (most + 1))
