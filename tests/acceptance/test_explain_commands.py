"""The commands that explain facts and turns and list what is pending, on one running installation."""

import json
import socket
from pathlib import Path

import pytest

from tests.support.harnesses.command_line import CommandLine, turn_json
from tests.support.polling import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

TURNS = [
    turn_json("ex-1", "I live in Berlin. I'm allergic to peanuts.", user="lena"),
    turn_json("ex-2", "I moved from Berlin to Munich!", user="lena", at="2026-03-04T09:00:00+01:00"),
    turn_json("ex-3", "I'm allergic to peanuts.", user="lena", at="2026-03-05T09:00:00+01:00"),
    turn_json("ex-4", "Actually, I'm not allergic to peanuts.", user="lena", at="2026-03-06T09:00:00+01:00"),
]


@pytest.fixture(scope="module")
def populated(shell: CommandLine) -> CommandLine:
    """The installation after the turns were published."""
    tally = shell.json("publish", "-", "--wait", stdin="\n".join(TURNS))
    assert tally["ends"] == {"facts": 4}
    return shell


def fact_id(shell: CommandLine, text: str) -> str:
    every = shell.json("facts", "--user", "lena", "--all")
    return str(next(fact["fact_id"] for fact in every if fact["text"] == text))


def test_a_verbose_status_tells_costs_and_decisions(populated: CommandLine) -> None:
    plain, verbose = populated.json("status", "ex-2"), populated.json("status", "ex-2", "--verbose")
    assert plain["trace"] is None
    (decided,) = verbose["trace"]["decisions"]
    assert (decided["event"], decided["by"], decided["verdict"]) == ("fact_replaced", "model", "REPLACE")
    assert "Lena lives in Berlin." in [one["text"] for one in decided["retrieved"]]
    assert [stage["stage"] for stage in verbose["stages"]] == ["extract", "embed", "match", "resolve"]
    assert verbose["tokens"]["total"] == verbose["tokens"]["input"] + verbose["tokens"]["output"]
    shown = populated.run("status", "ex-2", "--verbose").stdout
    assert all(title in shown for title in ("1 added", "cost by stage", "1 decision"))


def test_a_fact_is_explained_in_words_and_as_json(populated: CommandLine) -> None:
    munich = fact_id(populated, "Lena lives in Munich.")
    explained = populated.json("explain", munich)
    assert explained["source"]["messages"][0]["content"] == "I moved from Berlin to Munich!"
    assert explained["extraction"]["excerpt"] in "I moved from Berlin to Munich!"
    shown = populated.run("explain", munich).stdout
    assert "It comes from turn ex-2" in shown
    assert "fact_replaced, decided by" in shown


def test_why_not_tells_what_a_statement_repeats(populated: CommandLine) -> None:
    (one,) = populated.json("why-not", "ex-3")["missing"]
    assert (one["reason"], one["known"]) == ("duplicate", "Lena is allergic to peanuts.")
    assert "skipped as a duplicate" in populated.run("why-not", "ex-3").stdout.replace("\n", " ")


def test_what_is_held_back_is_listed_with_old_and_new_and_settled_by_a_command(populated: CommandLine) -> None:
    (one,) = populated.json("pending", "--user", "lena")
    assert [old["text"] for old in one["challenged"]] == ["Lena is allergic to peanuts."]
    assert one["fact"]["status"] == "pending_confirmation"
    assert (one["guard"], one["action"]) == ("high_confidence", "contradict")
    shown = populated.run("pending", "--user", "lena").stdout
    assert "1 pending overwrite" in shown
    assert one["fact"]["text"] not in [fact["text"] for fact in populated.json("facts", "--user", "lena")]
    hits = populated.json("search", "peanut allergy", "--user", "lena")["hits"]
    assert [hit["fact"]["status"] for hit in hits if "not" in hit["fact"]["text"]] == ["pending_confirmation"]
    end = populated.json("reject", one["fact"]["fact_id"], "--user", "lena", "--wait", "30")
    assert "pending_rejected" in json.dumps(end)
    assert populated.json("pending", "--user", "lena") == []
    assert populated.json("unresolved", "--user", "lena") == []
    assert "nothing is unresolved" in populated.run("unresolved", "--user", "lena").stdout


def test_the_past_is_told_as_it_was_believed(populated: CommandLine) -> None:
    now = {fact["text"] for fact in populated.json("facts", "--user", "lena")}
    then = populated.json("as-of", "--believed", "2100-01-01", "--true", "2026-03-03", "--user", "lena")
    assert {"Lena lives in Berlin."} == {fact["text"] for fact in then} - now
    assert populated.json("as-of", "--believed", "2020-01-01", "--user", "lena") == []
    assert (
        "Lena lives in Berlin."
        in populated.run("as-of", "--believed", "2100-01-01", "--true", "2026-03-03", "-u", "lena").stdout
    )


def test_what_changed_is_told_by_when_it_became_so(populated: CommandLine) -> None:
    march = ("diff", "--since", "2026-03-04", "--until", "2026-03-05", "--user", "lena")
    assert populated.json(*march)["replaced"] == []
    (moved,) = populated.json(*march, "--axis", "true")["replaced"]
    assert (moved["text"], moved["old"][0]["text"]) == ("Lena lives in Munich.", "Lena lives in Berlin.")
    assert "so since 2026-03-04 08:00 UTC" in populated.run(*march, "--axis", "true").stdout
    assert populated.run(*march, "--axis", "wished").code == 2


async def test_a_dry_run_says_within_seconds_what_it_waits_for(populated: CommandLine, tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listened at: it refuses connections
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        away = CommandLine(folder=tmp_path, settings={**populated.settings, "PROVIDER": "openai", "BASE_URL": address})
        with away.start("dry-run", "I moved to Ulm.", "--user", "lena") as running:
            await eventually(lambda: "waiting for" in running.log.read_text(), timeout=60)
            said = " ".join(running.log.read_text().split())
    assert f"waiting for the model's server ({address}), whose last failure was: extract gpt-4.1-mini: conn" in said


def test_a_dry_run_tells_what_would_happen_and_stores_nothing(populated: CommandLine) -> None:
    before = populated.json("facts", "--user", "lena", "--all")
    foreseen = populated.json("dry-run", "I moved from Munich to Hamburg.", "--user", "lena", "--speaker", "Lena")
    assert [memory["event"] for memory in foreseen["memories"]] == ["fact_replaced"]
    assert foreseen["trace"]["decisions"][0]["reason"]
    alone = populated.json(
        *("dry-run", "I moved from Munich to Hamburg.", "--user", "lena"),
        *("--speaker", "Lena", "--override", "add_only=true"),
    )
    assert [memory["event"] for memory in alone["memories"]] == ["fact_added"]
    refused = populated.run("dry-run", "I moved.", "--user", "lena", "--override", "conflct=0.5")
    assert refused.code == 2
    assert "overrides are duplicate" in refused.stderr.replace("\n", " ")
    assert populated.json("facts", "--user", "lena", "--all") == before
