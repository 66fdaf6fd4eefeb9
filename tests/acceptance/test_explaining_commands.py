"""Why it is as it is, and what waits for somebody's word: the commands that explain, on one running installation."""

import json

import pytest

from tests.acceptance.commands import InProcess, Shell, turn

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

STORY = [
    turn("ex-1", "I live in Berlin. I'm allergic to peanuts.", user="lena"),
    turn("ex-2", "I moved to Munich!", user="lena", at="2026-03-04T09:00:00+01:00"),
    turn("ex-3", "I'm allergic to peanuts.", user="lena", at="2026-03-05T09:00:00+01:00"),
    turn("ex-4", "Actually, I'm not allergic to peanuts.", user="lena", at="2026-03-06T09:00:00+01:00"),
]


@pytest.fixture(scope="module")
def told(shell: Shell) -> Shell:
    """The installation after it has been told the story, asked from within this process."""
    near = InProcess(folder=shell.folder, settings=shell.settings)
    tally = near.json("publish", "-", "--wait", stdin="\n".join(STORY))
    assert tally["ends"] == {"facts": 4}
    return near


def fact_id(told: Shell, text: str) -> str:
    every = told.json("facts", "--user", "lena", "--all")
    return str(next(fact["fact_id"] for fact in every if fact["text"] == text))


def test_a_verbose_status_tells_costs_and_decisions(told: Shell) -> None:
    plain, verbose = told.json("status", "ex-2"), told.json("status", "ex-2", "--verbose")
    assert plain["trace"] is None
    (decided,) = verbose["trace"]["decisions"]
    assert (decided["event"], decided["by"], decided["verdict"]) == ("REPLACE", "model", "REPLACE")
    assert "Lena lives in Berlin." in [one["text"] for one in decided["retrieved"]]
    assert [stage["stage"] for stage in verbose["stages"]] == ["extract", "embed", "match", "resolve"]
    assert verbose["tokens"]["total"] == verbose["tokens"]["input"] + verbose["tokens"]["output"]
    shown = told.run("status", "ex-2", "--verbose").out
    assert all(title in shown for title in ("what it did", "what it cost", "how it was decided"))


def test_a_fact_is_explained_in_words_and_as_json(told: Shell) -> None:
    munich = fact_id(told, "Lena lives in Munich.")
    explained = told.json("explain", munich)
    assert explained["source"]["messages"][0]["content"] == "I moved to Munich!"
    assert explained["extraction"]["excerpt"] in "I moved to Munich!"
    shown = told.run("explain", munich).out
    assert "It comes from turn ex-2" in shown
    assert "REPLACE, decided by" in shown


def test_why_not_tells_what_a_statement_repeats(told: Shell) -> None:
    (one,) = told.json("why-not", "ex-3")["missing"]
    assert (one["reason"], one["known"]) == ("duplicate", "Lena is allergic to peanuts.")
    assert "skipped as a duplicate" in told.run("why-not", "ex-3").out.replace("\n", " ")


def test_what_is_held_back_is_listed_with_old_and_new_and_settled_by_a_command(told: Shell) -> None:
    (one,) = told.json("pending", "--user", "lena")
    assert [old["text"] for old in one["challenged"]] == ["Lena is allergic to peanuts."]
    assert one["fact"]["status"] == "pending_confirmation"
    assert (one["guard"], one["action"]) == ("high_confidence", "contradict")
    shown = told.run("pending", "--user", "lena").out
    assert "1 pending" in shown
    assert one["fact"]["text"] not in [fact["text"] for fact in told.json("facts", "--user", "lena")]
    hits = told.json("search", "peanut allergy", "--user", "lena")["hits"]
    assert [hit["fact"]["status"] for hit in hits if "not" in hit["fact"]["text"]] == ["pending_confirmation"]
    end = told.json("reject", one["fact"]["fact_id"], "--user", "lena", "--wait", "30")
    assert "REJECT" in json.dumps(end)
    assert told.json("pending", "--user", "lena") == []
    assert told.json("unresolved", "--user", "lena") == []
    assert "0 unresolved" in told.run("unresolved", "--user", "lena").out


def test_the_past_is_told_as_it_was_believed(told: Shell) -> None:
    now = {fact["text"] for fact in told.json("facts", "--user", "lena")}
    then = told.json("as-of", "--believed", "2100-01-01", "--true", "2026-03-03", "--user", "lena")
    assert {"Lena lives in Berlin."} == {fact["text"] for fact in then} - now
    assert told.json("as-of", "--believed", "2020-01-01", "--user", "lena") == []
    assert (
        "Lena lives in Berlin."
        in told.run("as-of", "--believed", "2100-01-01", "--true", "2026-03-03", "-u", "lena").out
    )


def test_what_changed_is_told_by_when_it_became_so(told: Shell) -> None:
    march = ("diff", "--since", "2026-03-04", "--until", "2026-03-05", "--user", "lena")
    assert told.json(*march)["replaced"] == []
    (moved,) = told.json(*march, "--axis", "true")["replaced"]
    assert (moved["text"], moved["old"][0]["text"]) == ("Lena lives in Munich.", "Lena lives in Berlin.")
    assert "became so" in told.run(*march, "--axis", "true").out
    assert told.run(*march, "--axis", "wished").code == 2


def test_a_dry_run_tells_what_would_happen_and_stores_nothing(told: Shell) -> None:
    before = told.json("facts", "--user", "lena", "--all")
    foreseen = told.json("dry-run", "I moved to Hamburg.", "--user", "lena", "--speaker", "Lena")
    assert [memory["event"] for memory in foreseen["memories"]] == ["REPLACE"]
    assert foreseen["trace"]["decisions"][0]["reason"]
    alone = told.json(
        "dry-run", "I moved to Hamburg.", "--user", "lena", "--speaker", "Lena", "--override", "add_only=true"
    )
    assert [memory["event"] for memory in alone["memories"]] == ["ADD"]
    refused = told.run("dry-run", "I moved.", "--user", "lena", "--override", "conflct=0.5")
    assert refused.code == 2
    assert "overrides are duplicate" in refused.err.replace("\n", " ")
    assert told.json("facts", "--user", "lena", "--all") == before
