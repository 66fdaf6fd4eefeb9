"""The vector of a question with its other wordings."""

import math

import pytest

from mnemolog.client.search import joined_words, mean_vector
from tests.support.builders.values import vector


def test_one_vector_stays_as_it_is() -> None:
    assert mean_vector([vector(1, 2, 3)]) == vector(1, 2, 3)


def test_the_mean_is_between_and_has_length_one() -> None:
    mean = mean_vector([vector(1, 0), vector(0, 1)])
    assert mean.values == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-3)
    assert math.hypot(*mean_vector([vector(1, 0), vector(1, 0.1), vector(1, -0.5)]).values) == pytest.approx(
        1, abs=2e-3
    )


def test_vectors_that_cancel_each_other_out_leave_that_of_the_question() -> None:
    assert mean_vector([vector(1, 0), vector(-1, 0)]) == vector(1, 0)


def test_the_words_of_all_wordings_are_looked_for() -> None:
    assert joined_words("Where?", ["Which city?", "Her home"]) == "Where?\nWhich city?\nHer home"
