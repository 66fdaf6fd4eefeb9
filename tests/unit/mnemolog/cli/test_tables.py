"""Lists and tables: whatever the width, what the next command needs is whole; text is shown as it is."""

import pytest

from mnemolog.cli.tables import Entry, print_entries, print_table

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
