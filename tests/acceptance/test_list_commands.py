"""Lists, counts, filters and files of facts on the command line, on one running installation."""

import json

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
TENANT = ("--tenant", "lists")


@pytest.fixture(scope="module")
def filled(shell: CommandLine) -> CommandLine:
    """What two users and a run of one of them have said, in a tenant of its own."""
    scopes = [{"user_id": "ida"}, {"user_id": "ida", "run_id": "r1"}, {"user_id": "max"}]
    turns = [
        turn_json(f"{number}-{place}", content, user=scope["user_id"], scope={"tenant": "lists", **scope})
        for number, scope in enumerate(scopes)
        for place, content in enumerate(["I live in Berlin.", "I own a dog.", "I like tea."])
    ]
    tally = shell.json("publish", "-", "--wait", stdin="\n".join(turns))
    assert tally["ends"] == {"stored": 9}, tally
    return shell


def test_facts_users_and_runs_are_listed_in_pages_and_counted(filled: CommandLine) -> None:
    listed = filled.json("facts", "--user", "ida", *TENANT)
    first = filled.json("facts", "--user", "ida", "--limit", "2", *TENANT)
    rest = filled.json("facts", "--user", "ida", "--limit", "2", "--after", first[-1]["fact_id"], *TENANT)
    assert [one["id"] for one in first + rest] == [one["id"] for one in listed]
    assert (len(first), len(rest)) == (2, 1)
    assert first[0]["structured_attributes"].keys() > {"year", "day_of_week"}
    assert filled.json("users", *TENANT) == [
        {"id": "ida", "facts": 6, "scopes": 2},
        {"id": "max", "facts": 3, "scopes": 1},
    ]
    assert [one["id"] for one in filled.json("runs", "--user", "ida", *TENANT)] == ["r1"]
    assert filled.json("agents", *TENANT) == []
    assert filled.json("count", "--filter", '{"OR": [{"user_id": "ida"}]}', *TENANT) == 6
    assert "ida" not in filled.run("users", "--after", "ida", *TENANT).stdout


def test_what_is_exported_is_imported_and_reset(filled: CommandLine) -> None:
    written = filled.run("export", "facts.jsonl", "--user", "**", "--run", "**", *TENANT)
    assert (written.code, written.stdout) == (0, "")
    lines = (filled.folder / "facts.jsonl").read_bytes().splitlines()
    assert len(lines) == 9
    streamed = filled.run("export", "-", "--user", "max", *TENANT)
    assert [json.loads(line)["user_id"] for line in streamed.stdout.splitlines()] == ["max"] * 3
    damaged = filled.run("import", "-", "--tenant", "copy", stdin=b"\n".join([*lines, b"{"]))
    assert damaged.code == 2
    assert "line 10: it is not valid JSON" in " ".join(damaged.stderr.split())
    tried = filled.run("import", "facts.jsonl", "--dry-run", "--tenant", "copy")
    assert (tried.code, tried.stdout.splitlines()[0]) == (0, "9 lines read, 0 sent")
    assert filled.json("users", "--tenant", "copy") == []
    filled.json("import", "facts.jsonl", "--wait", "--tenant", "brief")
    undone = filled.run("import", "facts.jsonl", "--undo", "--wait", "--tenant", "brief")
    assert (undone.code, undone.stdout.splitlines()[-1]) == (0, "9 lines taken back")
    assert filled.json("users", "--tenant", "brief") == []
    report = filled.json("import", "facts.jsonl", "--wait", "--tenant", "copy")
    assert (report["sent"], report["added"], report["damaged"]) == (9, 9, {})
    assert filled.json("users", "--tenant", "copy") == filled.json("users", *TENANT)
    everybody = ("delete-all", "--user", "**", "--agent", "**", "--app", "**", "--run", "**", "--tenant", "copy")
    assert filled.run(*everybody).code == 2
    assert filled.json("count", "--user", "ida", "--tenant", "copy") == 3
    filled.json(
        "delete-all", "--filter", '{"user_id": "ida", "memory": {"contains": "tea"}}', "--yes", "--tenant", "copy"
    )
    assert filled.json("count", "--user", "ida", "--tenant", "copy") == 2
    ends = filled.json(*everybody, "--yes")
    assert sorted(len(end["deleted"]) for end in ends) == [2, 3, 3]
    assert filled.json("users", "--tenant", "copy") == []
    assert len(filled.json("users", *TENANT)) == 2
