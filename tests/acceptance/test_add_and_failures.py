"""`add`, and the commands about what failed, on one running installation."""

import shlex

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def next_command(shown: str, after: str) -> list[str]:
    """The arguments of the command that a line shows after these words."""
    (line,) = [line for line in shown.splitlines() if line.strip().startswith(after)]
    return shlex.split(line.partition("mnemolog ")[2])


def test_a_text_is_added_and_its_facts_or_the_command_that_tells_them_are_shown(shell: CommandLine) -> None:
    done = shell.run("add", "I live in Bern.", "--user", "add-alice", "--speaker", "Alice", "--wait")
    assert done.code == 0, done
    assert done.stdout.startswith("turn ")
    assert "1 added" in done.stdout
    assert "no LLM calls" in done.stdout
    explained = shell.run(*next_command(done.stdout, "why:"))
    assert (explained.code, '"I live in Bern."' in explained.stdout) == (0, True)
    done = shell.run("add", "I own a dog.", "--user", "add-bob", "--speaker", "Bob")
    told = shell.run(*next_command(done.stdout, "its result:"))
    assert (done.code, told.code, "1 added" in told.stdout) == (0, 0, True), told


def test_a_text_may_come_from_stdin_with_every_option(shell: CommandLine) -> None:
    options = ("--user", "add-carl", "--agent", "bot", "--app", "chat", "--run", "r1", "--turn-id", "carl-1")
    more = ("--at", "2026-03-02", "--no-infer", "--wait", "30")
    end = shell.json("add", "-", *options, *more, stdin="Contract until 2027.\n")
    assert (end["turn_id"], end["status"]) == ("carl-1", "stored")
    (fact,) = shell.json("facts", *options[:8])
    assert (fact["text"], fact["true_from"]) == ("Contract until 2027.", "2026-03-02T00:00:00+00:00")


def test_an_id_that_is_taken_is_no_success(shell: CommandLine) -> None:
    first = ("add", "I live in Ulm.", "--user", "add-dora", "--turn-id", "dora-1", "--wait")
    assert shell.run(*first).code == 0
    assert shell.run(*first).code == 0
    other = shell.run("add", "I live in Bonn.", "--user", "add-dora", "--turn-id", "dora-1", "--wait")
    assert (other.code, "used before" in " ".join(other.stdout.split())) == (1, True), other
    lines = turn_json("dora-1", "I live in Cologne.", user="add-dora")
    published = shell.run("publish", "-", "--wait", "--json", stdin=lines)
    assert (published.code, published.json["reused"], published.json["ends"]) == (1, ["dora-1"], {})


def test_a_turn_that_was_rejected_is_listed_and_tried_again(shell: CommandLine) -> None:
    whose = ("--user", "add-emma")
    shell.json("policy", "set", "--active-facts", "1", *whose)
    said = turn_json("emma-1", "I live in Bern. I own a dog.", user="add-emma")
    published = shell.run("publish", "-", "--wait", stdin=said)
    assert (published.code, "ends by status: rejected: 1" in published.stdout) == (1, True), published
    assert "turn emma-1: " in published.stderr
    assert "mnemolog failed" in published.stderr
    listed = shell.run("failed", *whose)
    assert (listed.code, "emma-1  rejected: " in listed.stdout) == (0, True), listed
    retry = next_command(listed.stdout, "publish one again:")
    again = shell.run(*retry, "--json")
    assert (again.code, again.json["status"], again.json["attempt"]) == (1, "rejected", 2)
    shell.json("policy", "set", "--active-facts", "5", *whose)
    assert shell.run(*retry).code == 0
    assert shell.run("failed", *whose).stdout == "no turn failed or was rejected\n"
    settled = shell.run(*retry)
    assert (settled.code, "nothing to try again" in settled.stderr) == (1, True)


def test_all_turns_of_a_reason_are_tried_again_or_given_up(shell: CommandLine) -> None:
    whose = ("--user", "add-fred")
    shell.json("policy", "set", "--active-facts", "1", *whose)
    turns = [turn_json(f"fred-{name}", f"I own a {name}. I live in Bern.", user="add-fred") for name in ("dog", "cat")]
    assert shell.run("publish", "-", "--wait", stdin="\n".join(turns)).code == 1
    (reason,) = {one["reason"] for one in shell.json("failed", *whose)}
    assert len(shell.json("failed", *whose, "--reason", reason)) == 2
    assert shell.json("failed", *whose, "--reason", "another") == []
    assert shell.json("failed", *whose, "--since", "2100-01-01") == []
    again = shell.run("retry", "--reason", reason, *whose, "--wait")
    assert (again.code, again.stdout) == (1, "2 turns published again\nends by status: rejected: 2\n"), again
    dropped = shell.run("drop", "fred-dog", "--why", "a test of ours", "--actor", "kim", *whose)
    assert (dropped.code, dropped.stdout) == (0, "1 turn given up\n"), dropped
    assert [one["turn_id"] for one in shell.json("failed", *whose)] == ["fred-cat"]
    shell.json("policy", "set", "--active-facts", "5", *whose)
    ends = shell.json("retry", "--reason", reason, *whose, "--wait")
    assert [(end["turn_id"], end["status"], end["attempt"]) for end in ends] == [("fred-cat", "stored", 3)]
    assert shell.run("drop", "fred-dog", "--why", "again", "--actor", "kim", *whose).code == 1
    assert shell.run("retry", "--unended", *whose).stdout == "no turns published again\n"
    assert [shell.run(*command).code for command in (("retry",), ("retry", "fred-dog", "--unended"))] == [2, 2]


def test_a_dead_letter_is_listed_and_its_bytes_are_shown(shell: CommandLine) -> None:
    broken = '{"turn_id": "add-broken", "messa'
    published = shell.run("publish", "-", "--raw", "--wait", stdin=broken)
    assert (published.code, "ends by status: failed: 1" in published.stdout) == (1, True)
    (newest,) = shell.json("dead-letters", "-n", "1")
    assert shell.run("dead-letters", "--show", newest["position"]).stdout == f"{broken}\n"
    filters = ("--stage", newest["letter"]["stage"], "--reason", newest["letter"]["reason"])
    assert newest["position"] in [one["position"] for one in shell.json("dead-letters", *filters)]
    assert shell.json("dead-letters", *filters, "--user", "nobody") == []
    gone = shell.run("dead-letters", "--show", "dead_letters/0/100000")
    assert (gone.code, "no dead letter is at" in gone.stderr) == (1, True)
    assert shell.run("dead-letters", "--show", "somewhere").code == 2
    failed = shell.json("failed")
    assert newest["letter"]["source_id"] in [one["turn_id"] for one in failed]
    assert not any(one["can_retry"] for one in failed if one["turn_id"] == newest["letter"]["source_id"])
    again = shell.run("retry", newest["letter"]["source_id"])
    assert (again.code, "mend it" in again.stderr) == (1, True), again
