"""Publishing and every command that reads, on one running installation."""

import json
import re

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

TURNS = [
    turn_json("cl-1", "I live in Berlin. I work as a nurse."),
    turn_json("cl-2", "I'm allergic to peanuts."),
    turn_json("cl-3", "I'm allergic to peanuts.", at="2026-03-03T09:00:00+01:00"),
    turn_json("cl-4", "I moved from Berlin to Munich!", at="2026-03-04T09:00:00+01:00"),
    turn_json("cl-5", "Contract until 2027.", infer=False),
    turn_json("cl-6", "Thank you!"),
]


@pytest.fixture(scope="module")
def populated(shell: CommandLine) -> CommandLine:
    """The installation after the turns were published."""
    tally = shell.json("publish", "-", "--wait", stdin="\n".join(TURNS))
    assert (tally["read"], tally["acknowledged"]) == (6, 6)
    assert tally["ends"] == {"facts": 5, "no_facts": 1}
    return shell


def texts(facts: list[dict[str, str]]) -> set[str]:
    return {fact["text"] for fact in facts}


def test_status_tells_what_a_turn_did(populated: CommandLine) -> None:
    result = populated.json("status", "cl-4", "--user", "mira")
    assert (result["status"], result["success"], result["facts_updated"]) == ("facts", True, 1)
    assert [memory["event"] for memory in result["memories"]] == ["fact_replaced"]
    assert populated.json("status", "cl-3")["skipped"] == 1


def test_facts_are_those_that_hold_and_all_on_request(populated: CommandLine) -> None:
    now = texts(populated.json("facts", "--user", "mira"))
    assert {"Mira lives in Munich.", "Mira is allergic to peanuts.", "Contract until 2027."} <= now
    assert "Mira lives in Berlin." not in now
    assert "Mira lives in Berlin." in texts(populated.json("facts", "--user", "mira", "--all"))


def test_search_finds_by_meaning_and_says_how(populated: CommandLine) -> None:
    found = populated.json("search", "In which city is her home?", "--user", "mira", "-n", "3")
    assert found["mode"] == "hybrid"
    assert "Mira lives in Munich." in texts([hit["fact"] for hit in found["hits"]])


def test_search_has_a_floor_and_says_that_nothing_is_near(populated: CommandLine) -> None:
    asked = ("search", "quantum chromodynamics", "--user", "mira", "--threshold")
    assert populated.run(*asked, "0.9").stdout == "nothing known is near enough to this question\n"
    assert populated.json(*asked, "0")["hits"]


def test_another_user_and_another_tenant_find_nothing(populated: CommandLine) -> None:
    assert populated.json("search", "Munich", "--user", "jonas")["hits"] == []
    assert populated.json("facts", "--user", "mira", "--tenant", "other") == []


def test_history_shows_both_versions_and_the_reasons(populated: CommandLine) -> None:
    munich = next(fact for fact in populated.json("facts", "--user", "mira") if fact["text"] == "Mira lives in Munich.")
    history = populated.json("history", munich["fact_id"])
    assert [(version["text"], version["status"]) for version in history["versions"]] == [
        ("Mira lives in Berlin.", "superseded"),
        ("Mira lives in Munich.", "active"),
    ]
    assert [event["event"] for event in history["events"]] == ["fact_added", "fact_replaced"]
    assert all(event["reason"] for event in history["events"])


def test_diff_groups_what_changed(populated: CommandLine) -> None:
    changes = populated.json("diff", "--since", "2020-01-01", "--user", "mira")
    assert [change["old"][0]["text"] for change in changes["replaced"]] == ["Mira lives in Berlin."]
    assert changes["skipped"] == 1
    assert populated.json("diff", "--since", "2020-01-01", "--until", "2020-01-02", "--user", "mira")["added"] == []


def test_the_profile_has_its_sections(populated: CommandLine) -> None:
    profile = populated.json("profile", "--user", "mira")
    assert [entry["value"] for entry in profile["identity"] if entry["key"] == "home_city"] == ["Munich"]
    assert profile["sensitive_topics"]


@pytest.mark.parametrize("source", ["kafka", "table"])
def test_a_rebuild_gives_equal_tables(populated: CommandLine, source: str) -> None:
    before = populated.json("facts", "--user", "mira", "--all")
    verified = populated.json("rebuild", "--from", source, "--verify-only")
    assert verified["equal"]
    assert not verified["report"]["swapped"]
    report = populated.json("rebuild", "--from", source)["report"]
    assert report["swapped"]
    assert all(table["live_digest"] == table["rebuilt_digest"] for table in report["tables"])
    assert {table["table"] for table in report["tables"] if table["kept"]} == {"commits", "memory_events"}
    full = populated.json("rebuild", "--from", source, "--full", "--verify-only")["report"]
    assert not any(table["kept"] for table in full["tables"])
    assert populated.json("facts", "--user", "mira", "--all") == before


def test_the_audit_balances(populated: CommandLine) -> None:
    assert populated.json("audit")["ok"]


def test_publishing_the_file_again_changes_nothing(populated: CommandLine) -> None:
    before = populated.json("facts", "--user", "mira", "--all")
    assert populated.json("publish", "-", "--wait", stdin="\n".join(TURNS))["acknowledged"] == len(TURNS)
    assert populated.json("facts", "--user", "mira", "--all") == before


def test_topics_and_settings_are_shown_without_secrets(populated: CommandLine) -> None:
    topics = {topic["topic"]["name"]: topic for topic in populated.json("topics")}
    assert topics["memory_events"]["retention"] is None
    assert topics["conversation_turns"]["partitions"] == 2
    settings = {row["variable"]: row for row in populated.json("settings")}
    assert settings["MNEMOLOG_PARTITIONS"]["value"] == "2"
    assert "********" in settings["MNEMOLOG_POSTGRES"]["value"]


def test_a_broken_line_is_refused_by_its_number_and_the_rest_is_sent(populated: CommandLine) -> None:
    lines = [
        turn_json("cl-7", "I speak German."),
        "{",
        '{"scope": {"user_id": "mira"}}',
        turn_json("cl-8", "I like tea."),
    ]
    done = populated.run("publish", "-", "--json", "--wait", stdin="\n".join(lines))
    assert done.code == 1
    assert done.json["acknowledged"] == 2
    assert done.json["ends"] == {"facts": 2}
    assert "turn_id" in done.json["refused"]["3"]
    for_people = populated.run("publish", "-", stdin="\n".join(lines))
    assert re.search(r"line 2 refused: not_a_record", for_people.stderr)


def test_a_raw_broken_line_reaches_its_end_and_the_dead_letters(populated: CommandLine) -> None:
    done = populated.run("publish", "-", "--raw", "--wait", "--json", stdin='{"turn_id": "cl-9", "messa')
    assert (done.code, done.json["acknowledged"], done.json["ends"]) == (1, 1, {"failed": 1})
    dead = {topic["topic"]["name"]: topic for topic in populated.json("topics")}["dead_letters"]
    assert sum(dead["end_offsets"].values()) >= 1


def test_a_command_is_not_published_as_a_turn_not_even_raw(populated: CommandLine) -> None:
    command = {
        "kind": "command",
        "command_id": "cl-command",
        "scope": {"user_id": "alice"},
        "issued_at": "2026-03-03T09:00:00+01:00",
        "order": {"kind": "delete_all"},
    }
    for mode in ((), ("--raw",)):
        done = populated.run("publish", "-", *mode, "--wait", stdin=json.dumps(command))
        assert done.code == 1
        assert "a command is not published as a turn: use `mnemolog delete`" in done.stderr
    assert populated.run("status", "cl-command").code == 1


def test_a_turn_that_never_comes_is_a_timeout(populated: CommandLine) -> None:
    done = populated.run("status", "cl-never", "--wait", "0.5")
    assert done.code == 1
    assert "did not finish within 0.5 s: not in the tables yet" in done.stderr
    assert populated.run("status", "cl-never").code == 1


def test_an_empty_input_is_fine(populated: CommandLine) -> None:
    assert populated.json("publish", "-", "--wait")["read"] == 0


def test_the_program_does_the_same_in_a_process_of_its_own(populated: CommandLine) -> None:
    """The other tests call it within this process."""
    program = CommandLine(folder=populated.folder, settings=populated.settings)
    done = program.run("publish", "-", "--json", "--wait", stdin="\n".join(TURNS))
    assert (done.code, done.json["acknowledged"], done.stderr) == (0, len(TURNS), "")
    unknown = program.run("status", "cl-never")
    assert (unknown.code, unknown.stdout, "cl-never" in unknown.stderr) == (1, "", True)
