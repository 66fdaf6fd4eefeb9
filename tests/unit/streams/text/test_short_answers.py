"""Bare answers, and what of a message they answer."""

import pytest

from mnemolog.streams.text.short_answers import ShortAnswer, asked_part, begins_sentence, short_answer


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("yes", ("Yes", "yes!", "Yeah, sure.", "Yes, please.", "That's right", "Ja, genau", "Sí.", "oui")),
        ("yes", ("Yes, I do.", "はい", "👍", "Of course, thanks", "OK", "\u201cYes\u201d")),
        ("no", ("No", "no, thanks", "Nope.", "Not really", "No, I don't.", "Nein", "いいえ", "I\u2019m not")),
        ("open", ("Maybe", "I don't know.", "Not sure", "Yes and no", "vielleicht", "no lo sé", "hm")),
        (None, ("Berlin.", "Yes, in Berlin", "No, Milan", "I moved", "", "Nora", "Yesterday", "Nothing")),
    ],
)
def test_what_says_nothing_alone_is_told_from_what_does(kind: ShortAnswer | None, texts: tuple[str, ...]) -> None:
    assert {text: short_answer(text) for text in texts} == dict.fromkeys(texts, kind)


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("Hello there. Nice day. Are you vegan?", "Nice day. Are you vegan?"),
        ("Where do you live? I can look it up.", "Where do you live? I can look it up."),
        ("A. B? C. D? E.", "C. D? E."),
        ("You told me a lot. I will note that you are vegan.", "I will note that you are vegan."),
        ("ベルリンですか\uff1f", "ベルリンですか\uff1f"),
        ("", ""),
    ],
)
def test_the_last_question_is_what_is_answered(message: str, part: str) -> None:
    assert asked_part(message) == part


@pytest.mark.parametrize(
    ("content", "answer", "begins"),
    [
        ("yes", "yes", True),
        ("i see. yes, that is so", "yes", True),
        ("yesterday i went", "yes", False),
        ("she said yes to him", "yes", False),
        ("norway is cold", "no", False),
    ],
)
def test_an_answer_begins_a_sentence(content: str, answer: str, begins: bool) -> None:
    assert begins_sentence(content, answer) is begins
