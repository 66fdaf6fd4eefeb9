"""Every command about entities on the command line, on one running installation."""

import json
from typing import Any

import pytest

from tests.acceptance.test_memory_commands import assert_rejected, fact_id_of, facts, publish_turns, stderr_text, texts
from tests.support.harnesses.command_line import CommandLine

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def names(shell: CommandLine, user: str) -> dict[str, list[str]]:
    """The other names of each entity but the user."""
    found: list[dict[str, Any]] = shell.json("entities", "--user", user)
    return {one["name"]: one["aliases"] for one in found if one["name"].casefold() != user}


def test_entities_are_renamed_merged_split_and_forgotten(shell: CommandLine) -> None:
    publish_turns(
        shell, "ola", "I live with my wife Ana.", "My boss Annette likes tea.", "My brother Tom plays the piano."
    )
    assert set(names(shell, "ola")) == {"Ana", "Annette", "Tom"}
    end = shell.json("entity", "rename", "Ana", "Ana Keller", "--user", "ola", "--actor", "Jo")
    assert (end["status"], end["order"], end["actor"], end["llm_calls"]) == ("done", "rename_entity", "Jo", 0)
    shell.json("entity", "alias", "Ana Keller", "the doctor", "--user", "ola")
    merge = shell.json("entity", "merge", "Annette", "--into", "the doctor", "--user", "ola")
    assert set(names(shell, "ola")) == {"Ana Keller", "Tom"}
    assert {"Ana", "the doctor", "Annette"} <= set(names(shell, "ola")["Ana Keller"])
    shell.json("undo", "--turn", merge["turn_id"], "--user", "ola")
    assert set(names(shell, "ola")) == {"Ana Keller", "Annette", "Tom"}
    piano = fact_id_of(facts(shell, "ola"), "piano")
    shell.json("entity", "split", "Tom", "Tom Brown", "--fact", piano[:8], "--user", "ola")
    assert set(names(shell, "ola")) == {"Ana Keller", "Annette", "Tom", "Tom Brown"}
    shell.json("entity", "forget", "Annette", "--facts", "--user", "ola")
    assert set(names(shell, "ola")) == {"Ana Keller", "Tom", "Tom Brown"}
    assert not [text for text in texts(shell, "ola") if "tea" in text]


def test_relations_are_read_as_they_were_known(shell: CommandLine) -> None:
    publish_turns(shell, "ines", "I live with my wife Ana.")
    for command in (["relations"], ["neighbours", "Ana"], ["who", "Ines's wife"]):
        assert len(shell.json(*command, "--user", "ines")) == 1
        assert shell.json(*command, "--believed", "2100-01-01", "--user", "ines")
        for flag in ("--believed", "--true"):
            assert shell.json(*command, flag, "2020-01-01", "--user", "ines") == []
    assert shell.json("graph", "--believed", "2020-01-01", "--user", "ines")["relations"] == []
    assert shell.json("entity", "show", "Ana", "--true", "2020-01-01", "--user", "ines")["facts"] == []


def test_an_entity_is_summarised_where_a_policy_allows_it(shell: CommandLine) -> None:
    publish_turns(shell, "una", "I live with my wife Ana.", "Ana works at Acme.")
    rejected = shell.run("entity", "summarise", "Ana", "--user", "una", "--json")
    assert_rejected(rejected, "summaries_off")
    shell.json("policy", "set", "--entity-summary", "on_demand", "--user", "una")
    end = shell.json("entity", "summarise", "Ana", "--user", "una")
    assert (end["status"], end["order"], end["llm_calls"]) == ("done", "summarise_entity", 0)
    summary = shell.json("entity", "show", "Ana", "--user", "una")["summary"]
    assert "Acme" in summary["summary"]
    assert (summary["version"], summary["model"], summary["changed"]) == (1, "rules-4", 0)
    shell.json("delete", fact_id_of(facts(shell, "una"), "Acme"), "--user", "una")
    assert shell.json("entity", "show", "Ana", "--user", "una")["summary"] is None


def test_what_cannot_be_done_is_said(shell: CommandLine) -> None:
    publish_turns(shell, "oki", "I live with my wife Ana.", "My boss Bea likes tea.")
    rejected = shell.run("entity", "alias", "Ana", "Bea", "--user", "oki", "--json")
    assert_rejected(rejected, "name_taken")
    unknown = shell.run("entity", "rename", "Zoe", "Zora", "--user", "oki")
    assert unknown.code == 1
    assert "no entity" in stderr_text(unknown)
    shell.json("entity", "alias", "Bea", "the doctor", "--user", "oki")
    moved = shell.json("entity", "alias", "Ana", "the doctor", "--from", "Bea", "--user", "oki")
    assert moved["status"] == "done"
    shown = shell.run("entity", "the doctor", "--user", "oki")
    assert shown.code == 0
    assert shown.stdout.startswith("Ana, person")
    assert "which Bea was called" in " ".join(shown.stdout.split())
    assert json.loads(shell.run("entity", "show", "the doctor", "--user", "oki", "--json").stdout)["history"]
