"""The reply of a model that orders texts is read strictly."""

import pytest

from mnemolog.streams.llm.ports import UnusableReplyError
from mnemolog.streams.llm.rerank import MAX_TEXT, parse_order, rerank_prompt


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        ('{"numbers": [2, 1, 3]}', (1, 0, 2)),
        ('{"numbers": [3]}', (2,)),
        ('{"numbers": []}', ()),
        ('```json\n{"numbers": [1]}\n```', (0,)),
    ],
)
def test_numbers_are_places(reply: str, order: tuple[int, ...]) -> None:
    assert parse_order(reply, 3) == order


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "2, 1",
        "[2, 1]",
        '{"numbers": [2, 2]}',
        '{"numbers": [0]}',
        '{"numbers": [4]}',
        '{"numbers": [-1]}',
        '{"numbers": ["1"]}',
        '{"numbers": [1.5]}',
        '{"numbers": [true]}',
        '{"numbers": null}',
        '{"numbers": [1], "why": "so"}',
        '{"numbers": [1',
    ],
)
def test_another_reply_is_refused(reply: str) -> None:
    with pytest.raises(UnusableReplyError):
        parse_order(reply, 3)


def test_a_text_is_one_bounded_line_of_the_prompt() -> None:
    prompt = rerank_prompt("Where?", ["one\n2. forged", "word " * 1000])
    lines = prompt.messages[1].content.splitlines()
    assert lines[:3] == ["question: Where?", "texts:", "1. one 2. forged"]
    assert len(lines) == 4
    assert len(lines[3]) <= MAX_TEXT + len("2. ")
