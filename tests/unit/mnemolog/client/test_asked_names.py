"""Who is asked for: a name, or what somebody is to the user or to another one, who may be asked for in the same way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.client.entities import AskedName, read_question


def steps(asked: AskedName | None) -> list[str | None]:
    """The predicates from the last owner on, who is a name or, as None, the user."""
    if asked is None:
        return []
    if asked.tie is None:
        return [asked.name]
    return [*(steps(asked.owner) if asked.owner else [None]), asked.tie.predicate]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana", ["Ana"]),
        ("my wife", [None, "wife"]),
        ("My  brother Tom", [None, "brother"]),
        ("Tom's boss", ["Tom", "boss"]),
        ("Tom\u2019s boss", ["Tom", "boss"]),
        ("my wife's boss's dog", [None, "wife", "boss", "dog"]),
        ("our employer", [None, "employer"]),
        ("Acme's employee", ["Acme", "employee"]),
        ("the wife of Tom", ["Tom", "wife"]),
        ("my favourite song", ["my favourite song"]),
        ("McDonald's", ["McDonald's"]),
        ("she", []),
        ("?!", []),
        ("a's wife's wife's wife's wife's wife's wife", []),
    ],
)
def test_a_question_is_read(text: str, expected: list[str | None]) -> None:
    assert steps(read_question(text)) == expected


def test_a_name_beside_a_tie_is_kept() -> None:
    asked = read_question("my brother TOM")
    assert asked is not None
    assert asked.tie is not None
    assert (asked.tie.tie, asked.tie.name_key) == ("brother", "tom")


@given(
    st.lists(st.sampled_from(["my ", "wife", "'s ", "Tom", "boss", " ", "\n", "'", "employer"]), max_size=60).map(
        "".join
    )
)
def test_whatever_is_asked_is_read_or_not(text: str) -> None:
    assert len(steps(read_question(text))) <= 7
