"""A diagram of relations: whatever is in a name, it is a label and nothing else."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.projections.queries.entity_graph import MAX_LABEL, label, mermaid

ANA, TOM = UUID(int=1), UUID(int=2)
NODE = re.compile(r' {4}e\d+\["(?P<label>[^"]*)"\]')
EDGE = re.compile(r' {4}e\d+ (?:-->|-\.->)\|"(?P<label>[^"]*)"\| e\d+')
HOSTILE = st.sampled_from(['"]', "%%", "\n", "end", "-->", "click e0 call x()", "<b>", "`", "&quot;", "#35;", "\u202e"])
TEXTS = st.lists(HOSTILE | st.text(max_size=8), max_size=6).map("".join)


def test_entities_and_what_holds_or_held() -> None:
    names = {ANA: "Ana Keller", TOM: "Tom"}
    edges = [(ANA, "lives_in", TOM, True), (TOM, "friend", ANA, False), (ANA, "friend", UUID(int=3), True)]
    assert mermaid(names, edges) == (
        'flowchart LR\n    e0["Ana Keller"]\n    e1["Tom"]\n    e0 -->|"lives#95;in"| e1\n    e1 -.->|"friend"| e0\n'
    )


@given(TEXTS, TEXTS, TEXTS)
def test_a_hostile_name_breaks_nothing(name: str, other: str, predicate: str) -> None:
    head, *lines = mermaid({ANA: name, TOM: other}, [(ANA, predicate, TOM, True)]).splitlines()
    assert head == "flowchart LR"
    assert [bool(NODE.fullmatch(line)) for line in lines] == [True, True, False]
    assert EDGE.fullmatch(lines[2])


@given(TEXTS | st.text(max_size=300))
def test_a_label_says_what_the_text_says_in_plain_signs_and_codes(text: str) -> None:
    shown = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label(text))
    assert re.fullmatch(r"(?:[^\W_]|[ ,']|#\d+;)+", label(text))
    assert len(shown) <= MAX_LABEL
    words = " ".join(re.sub(r"[\x00-\x20]", " ", text).split())
    if words.isprintable() and words.isascii() and 0 < len(words) <= MAX_LABEL:
        assert shown == words


@pytest.mark.parametrize("name", ["1. FC Koeln", "- x", "_x_"])
def test_a_name_is_no_markdown(name: str) -> None:
    assert not re.search(r"[._-]", label(name))


def test_a_name_of_nothing_and_one_of_too_much_have_a_label() -> None:
    assert label("\u200b\n") == "#63;"
    assert label("A" * 10_000) == "A" * (MAX_LABEL - 1) + "#8230;"
