"""What of a question may name entities: the beginnings of its words, and ties."""

import pytest

from mnemolog.client.inputs.asked_entities import entities_asked
from mnemolog.projections.search.asked_entities import MAX_HEADS, MAX_PHRASES, NOBODY, TiePhrase, TieStep
from mnemolog.projections.search.options import SearchOptions

COUNTED = SearchOptions.read({"weights": {"entities": 0.1}})
WIFE = TieStep(predicate="spouse", tie="wife")
DOG = TieStep(predicate="owns", tie="dog")


@pytest.mark.parametrize(
    ("question", "ties"),
    [
        ("What does my wife like?", [TiePhrase(owner_key="", first=WIFE)]),
        ("Was mag meine Frau?", [TiePhrase(owner_key="", first=WIFE)]),
        ("what is Ana Keller's dog called", [TiePhrase(owner_key="ana keller", first=DOG)]),
        ("is ana\u2019s dog big", [TiePhrase(owner_key="ana", first=DOG)]),
        ("Does my wife's dog bite?", [TiePhrase(owner_key="", first=WIFE, then=DOG)]),
        ("my wife and my wife", [TiePhrase(owner_key="", first=WIFE)]),
        ("our dog Rex", [TiePhrase(owner_key="", first=TieStep(predicate="owns", tie="dog", name_key="rex"))]),
        ("Where is my employer?", [TiePhrase(owner_key="", first=TieStep(predicate="employer"))]),
        ("my wifely mydog it's dogged", []),
        ("what is James' job", []),
    ],
)
def test_ties_are_read_with_their_owners(question: str, ties: list[TiePhrase]) -> None:
    assert list(entities_asked(question, COUNTED).ties) == ties


@pytest.mark.parametrize(
    ("question", "heads"),
    [
        ("Where does José live?", ("whe", "jos", "liv")),
        ("la maison d'Alice", ("mai", "dal", "ali")),
        ("東京", ("東", "東京", "京")),
        ("?!", ()),
    ],
)
def test_words_are_looked_up_as_names_are(question: str, heads: tuple[str, ...]) -> None:
    assert entities_asked(question, COUNTED).heads == heads


def test_nothing_is_read_where_entities_do_not_count() -> None:
    assert entities_asked("my wife", SearchOptions()) is NOBODY


@pytest.mark.parametrize("text", ["my wife's ", "Ab's dog ", "Ab ", "a'", "東", "my ", "x-"])
def test_a_long_question_is_read_in_bounds(text: str) -> None:
    asked = entities_asked(text * 20_000, COUNTED)
    assert len(asked.heads) <= MAX_HEADS
    assert len(asked.ties) <= MAX_PHRASES
