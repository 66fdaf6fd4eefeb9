"""Lists, tables, counts, times and ages as people read them: whatever the width, ids are whole."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mnemolog.cli.tables import Entry, ago, cell, counted, ends_by_status, print_entries, print_table

WHOLE_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
LONG_ID = f"{WHOLE_ID}/0123456789abcdef"


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", ["3f2a1b4c", WHOLE_ID, LONG_ID, "turn-" + "x" * 100])
def test_the_name_of_an_entry_is_whole_and_its_lines_fit(
    name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_entries("1 fact", [Entry(name, "word " * 60, ["a detail that is long " * 8])])
    lines = capsys.readouterr().out.splitlines()
    assert sum(name in line for line in lines) == 1
    assert all(len(line) <= width for line in lines if name not in line)


def test_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("2 rows", ("a", "b"), [("[red]x[/]", "\x1b[31mred")])
    print_entries("1 fact", [Entry("[b]name", "[b]first :smile:", ["\x1b[31mred", ""])])
    out = capsys.readouterr().out
    assert "[red]x[/]" in out
    assert "[b]name  [b]first :smile:" in out
    assert "\x1b" not in out


def test_a_very_long_text_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("1 row", ("a", "b"), [("word " * 50_000, "x" * 100_000)])
    print_entries("1 fact", [Entry("name", "word " * 50_000, ["below"])])
    out = capsys.readouterr().out
    assert "below" in out
    assert "..." in out
    assert len(out) < 10_000


def test_a_list_without_entries_is_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries("no facts", [])
    assert capsys.readouterr().out == "no facts\n"


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_noun_follows_its_number_and_may_have_a_plural_of_its_own() -> None:
    assert [counted(number, "fact") for number in (0, 1, 2)] == ["no facts", "1 fact", "2 facts"]
    assert counted(2, "try", "tries") == "2 tries"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0.956, "0.96"),
        (datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2026-02-28 23:30 UTC"),
        (timedelta(days=7), "7 days"),
        (timedelta(days=45), "1 month"),
        (timedelta(hours=1, minutes=59), "1 hour"),
        (timedelta(minutes=5, seconds=3), "5 minutes"),
        (timedelta(microseconds=694093), "less than a second"),
        (3, "3"),
    ],
)
def test_values_are_shown_as_people_read_them(value: object, shown: str) -> None:
    assert cell(value) == shown


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (NOON - timedelta(minutes=3), "3 minutes ago"),
        (NOON - timedelta(days=1, hours=5), "1 day ago"),
        (NOON + timedelta(days=400), "in 1 year"),
        (NOON, "less than a second ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(time: datetime, shown: str) -> None:
    assert ago(time, NOON) == shown


def test_ends_are_counted_by_status() -> None:
    assert ends_by_status({"stored": 1, "failed": 2}) == "failed: 2, stored: 1"
    assert ends_by_status({}) == "none"
