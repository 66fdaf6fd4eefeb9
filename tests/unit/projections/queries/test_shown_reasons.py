"""Reasons of changes of entities have no name that readers do not see, and every other one."""

import pytest

from mnemolog.projections.queries.trace import shown_reason


@pytest.mark.parametrize(
    ("reason", "names", "shown"),
    [
        ("renamed Ana to Bea", {"Ana": False, "Bea": True}, "renamed (hidden) to Bea"),
        ("renamed Ana to Bea", {"Ana": True, "Bea": True}, "renamed Ana to Bea"),
        ("called Diana Di", {"Ana": False, "Diana": True, "Di": True}, "called Diana Di"),
        ("merged Ana Keller into Bea", {"Ana": False, "Ana Keller": True, "Bea": True}, "merged Ana Keller into Bea"),
        ("merged Ana Keller into Ana", {"Ana": False, "Ana Keller": False}, "merged (hidden) into (hidden)"),
        ('"my wife (Ana)" was said of Bea', {"my wife (Ana)": False, "Bea": True}, '"(hidden)" was said of Bea'),
        ("forgot A+", {"A+": False}, "forgot (hidden)"),
        ("took back a merge", {}, "took back a merge"),
    ],
)
def test_hidden_names_are_left_out(reason: str, names: dict[str, bool], shown: str) -> None:
    assert shown_reason(reason, names) == shown
