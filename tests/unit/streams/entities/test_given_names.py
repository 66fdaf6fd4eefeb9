"""Names that a person gives an entity: what is none is refused in words."""

import pytest

from mnemolog.streams.entities.resolver import EntityRegistry, NameContext, NoNameError, given_alias

CONTEXT = NameContext(owner="default/alice", source_id="c1")


@pytest.mark.parametrize(
    "name", ["!!!", "Dr !!!", "the ...", "Prof. --", "!!! from work", "another ?!", "she", "\u200b"]
)
def test_signs_and_titles_name_nobody(name: str) -> None:
    with pytest.raises(NoNameError, match="names nobody"):
        given_alias(name, EntityRegistry(()), CONTEXT)


@pytest.mark.parametrize("name", ["I", "the user", "User", "me", "yo"])
def test_a_word_for_who_speaks_is_the_name_of_nobody_else(name: str) -> None:
    with pytest.raises(NoNameError, match="names nobody"):
        given_alias(name, EntityRegistry(()), CONTEXT)


@pytest.mark.parametrize(
    ("name", "key"),
    [("Dr Ana", "ana"), ("Dr", "dr"), ("Tom from work", "tom (work)"), ("another Tom", "tom (another)")],
)
def test_a_name_is_compared_without_its_title(name: str, key: str) -> None:
    assert given_alias(name, EntityRegistry(()), CONTEXT).key == key
