"""Which turns leave `extract` without a call of their own."""

from mnemolog.streams.shared_calls.answered_turns import MAX_OWNERS, AnsweredTurns

MIRA = "default/mira"


def answered(*offsets: int) -> AnsweredTurns:
    turns = AnsweredTurns()
    for offset in offsets:
        turns.add(MIRA, offset)
    return turns


def test_those_behind_a_turn_count_until_they_have_left() -> None:
    turns = answered(3, 4, 6)
    assert [turns.behind(MIRA, offset) for offset in (2, 3, 6)] == [3, 2, 0]
    with turns.passing(MIRA, 4):
        assert turns.behind(MIRA, 3) == 2
    assert turns.behind(MIRA, 3) == 1
    assert turns.behind("default/tom", 3) == 0


def test_none_is_sure_to_come_while_one_that_is_not_answered_is_before_them() -> None:
    turns = answered(3, 6)
    with turns.passing(MIRA, 4):
        assert turns.behind(MIRA, 3) == 0
    assert turns.behind(MIRA, 3) == 1


def test_what_went_on_elsewhere_is_forgotten_when_a_later_turn_comes() -> None:
    turns = answered(3, 6)
    with turns.passing(MIRA, 9):
        pass
    assert turns.behind(MIRA, 0) == 0


def test_only_so_many_owners_are_remembered() -> None:
    turns = answered(1)
    for number in range(MAX_OWNERS):
        turns.add(str(number), 1)
    assert (turns.behind(MIRA, 0), turns.behind("0", 0)) == (0, 1)
