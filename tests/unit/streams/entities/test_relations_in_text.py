"""What a text says of ties that are over, and of values that are relations, whoever speaks."""

from mnemolog.schemas.entities.model import MAX_NAME
from mnemolog.streams.entities.relations_in_text import ended_relations, value_relations

TOO_LONG = "B" + "x" * MAX_NAME


def test_a_tie_is_over_where_its_words_were_said_before() -> None:
    said = "I met my wife Ana in Rome but she is no longer my wife."
    assert [(one.predicate, one.object) for one in ended_relations(said, None)] == [("wife", "my wife")]


def test_what_is_too_long_is_no_name() -> None:
    assert value_relations("employer", "Acme", TOO_LONG) == ()
    for subject in (TOO_LONG, "B" + "x" * (MAX_NAME - 5)):
        assert ended_relations("She is no longer my wife Ana.", subject) == ()
