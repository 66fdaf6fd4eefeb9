from tests.bench.markdown import WIDTH, wrapped

LONG = " ".join(["word"] * 40)


def test_paragraphs_and_items_are_wrapped_and_stay_apart() -> None:
    text = wrapped(f"# Title\n\n{LONG}\n\n* {LONG}\n* short\n\n| {LONG} |\n| --- |\n\n```\n{LONG}\n```\n")
    lines = text.splitlines()
    long = [line for line in lines if len(line) > WIDTH]
    assert long == [f"| {LONG} |", LONG]
    assert [line for line in lines if line.startswith("*")] == [lines[5], "* short"]
    assert lines[6].startswith("  word")
    assert wrapped(text) == text
