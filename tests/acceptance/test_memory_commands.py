"""Commands that change memory, on one running installation; what each of their options asks of the client is in
`tests/unit/mnemolog/cli/test_commands.py`."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.support.harnesses.command_line import CommandLine, CommandOutput, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def publish_turns(shell: CommandLine, user: str, *contents: str, **dimensions: str) -> None:
    """Let `user` say these things, a turn each, on days that follow one another."""
    suffix, scope = "".join(dimensions.values()), {"user_id": user, **dimensions}
    turns = [
        turn_json(f"{user}-{day}{suffix}", content, user=user, at=f"2026-03-{day + 1:02}T09:00:00+01:00", scope=scope)
        for day, content in enumerate(contents)
    ]
    tally = shell.json("publish", "-", "--wait", stdin="\n".join(turns))
    assert tally["ends"] == {"stored": len(contents)}, tally


def facts(shell: CommandLine, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shell.json("facts", "--user", user)
    return found


def texts(shell: CommandLine, user: str) -> set[str]:
    return {fact["text"] for fact in facts(shell, user)}


def fact_id_of(found: Sequence[dict[str, Any]], word: str) -> str:
    """The id of the one fact whose text has `word`."""
    (fact,) = (fact for fact in found if word in fact["text"])
    return str(fact["fact_id"])


def stderr_text(done: CommandOutput) -> str:
    """What was written to stderr, without the frame around it."""
    return " ".join(done.stderr.replace("│", " ").split())


def assert_rejected(done: CommandOutput, reason: str) -> None:
    assert done.code == 1, done
    assert done.json["status"] == "rejected"
    assert reason in done.json["error"]


def test_delete_takes_all_of_the_facts_or_none_and_undo_brings_them_back(shell: CommandLine) -> None:
    publish_turns(shell, "ben", "I live in Berlin.", "I own a dog.", "I like tea.")
    before = texts(shell, "ben")
    berlin, dog = fact_id_of(facts(shell, "ben"), "Berlin"), fact_id_of(facts(shell, "ben"), "dog")
    unknown = shell.run("delete", berlin, str(uuid4()), "--user", "ben", "--json")
    assert (unknown.code, "is not known in tenant" in stderr_text(unknown)) == (1, True)
    assert texts(shell, "ben") == before
    end = shell.json("delete", berlin, dog, "--user", "ben")
    assert len(end["deleted"]) == 2
    again = shell.run("delete", berlin, "--user", "ben")
    assert (again.code, "closed_fact" in again.stdout) == (1, True)
    undone = shell.json("undo", "--turn", end["turn_id"], "--user", "ben")
    assert texts(shell, "ben") == before
    shell.json("undo", "--turn", undone["turn_id"], "--user", "ben")
    assert len(texts(shell, "ben")) == len(before) - 2
    assert_rejected(shell.run("undo", "--turn", "ben-0", "--user", "ben", "--json"), "built_upon")
    assert shell.json("undo", "--turn", "ben-0", "--cascade", "--user", "ben")["success"]


def test_a_context_is_written_alone_so_that_it_can_be_piped(shell: CommandLine) -> None:
    publish_turns(shell, "ivo", "I live in Graz.", "I'm allergic to peanuts.")
    done = shell.run("context", "Where in Graz could we eat?", "--user", "ivo", "--format", "xml")
    assert done.stdout.startswith("<memory note=")
    assert done.stdout.index("allergic to peanuts") < done.stdout.index("lives in Graz")
    assert "2 facts" in done.stderr


def test_feedback_is_counted_and_the_end_of_a_session_publishes_a_profile(shell: CommandLine) -> None:
    publish_turns(shell, "jan", "I live in Graz.", "I own a dog.")
    home, dog = (fact_id_of(facts(shell, "jan"), word) for word in ("Graz", "dog"))
    done = shell.json("feedback", home[:13], dog, "--used", dog[:13], "--query", "Any pets?", "--user", "jan")
    assert done["status"] == "done"
    figures = shell.json("quality", "--user", "jan")["feedback"]
    assert (figures["used"], figures["recall_at"]["1"], figures["recall_at"]["5"]) == (1, 0, 1)
    assert "1 fact used, 0 of them not shown" in shell.run("quality", "--user", "jan").stdout

    shell.json("policy", "set", "--publish-profile", "session_end", "--turns-per-minute", "100", "--user", "jan")
    policies = shell.json("policy", "show", "--user", "jan")
    assert (policies["tenant"], policies["scope"]["limits"]["turns_per_minute"]) == (None, 100)
    assert shell.json("profile", "--user", "jan")["published_at"] is None
    assert shell.json("end-session", "--user", "jan")["status"] == "done"
    shell.json("add", "I own a cat.", "--user", "jan", "--wait")
    known = shell.json("profile", "--user", "jan")
    shown = [entry["text"] for found in known.values() if isinstance(found, list) for entry in found]
    assert known["published_at"] is not None
    assert (any("dog" in text for text in shown), any("cat" in text for text in shown)) == (True, False)
