"""What each command asks of the client: the method, and what its arguments and options become."""

import asyncio
import shlex
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
import typer

from mnemolog.cli import options
from mnemolog.cli.app import run

F1, F2 = "3f2a1b4c-0000-0000-0000-000000000001", "3f2a1b4c-0000-0000-0000-000000000002"
MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, 9, 30, tzinfo=UTC)
KEYS = '{"key": "pet"}'
SEARCH = {"limit": 20, "when": "boost"}
CONTEXT = {"budget_tokens": 800, "format": "markdown", "doubtful": True}
TIMES = "--believed 2026-03-01 --true 2026-04-01T09:30"
AT_TIMES = {"believed_at": MARCH, "true_at": APRIL}

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    (f"update {F1} New.", (F1, "New."), {"value": ...}),
    (f"update {F1} New. --key pet --value ''", (F1, "New."), {"key": "pet", "value": ""}),
    (f"correct {F1} New. --value cat --since 2026-03-01 --ended 2026-04-01T09:30", (F1, "New."),
     {"value": "cat", "true_from": MARCH, "ended_at": APRIL}),
    (f"delete {F1} 3f2a", ([F1, "3f2a"],), {}),
    (f"delete-all --key pet --category health --filter '{KEYS}' --yes", (),
     {"key": "pet", "category": "health", "filters": {"key": "pet"}}),
    (f"confirm {F1} {F2}", ([F1, F2],), {}),
    (f"reject {F1}", ([F1],), {}),
    (f"resolve {F1} merge --target {F2} --text Both.", (F1, "merge"), {"targets": [F2], "text": "Both."}),
    (f"promote {F1} --run r1 --turn t1 --filter '{KEYS}' --into '{{\"agent_id\": null}}'", ([F1],),
     {"turn_id": "t1", "filters": {"key": "pet"}, "into": {"agent_id": None}}),
    ("end-session", (), {}),
    (f"undo --event {F1} --cascade", (), {"event_id": F1, "cascade": True}),
    ("undo --model m --prompt-version p --since 2026-03-01 --until 2026-04-01T09:30", (),
     {"model": "m", "prompt_version": "p", "since": MARCH, "until": APRIL}),
    ("policy set --add-only --high-risk health --active-facts 3 --cost-per-day 1.5 --when-spent raw --note why",
     ({"add_only": True, "high_risk": ["health"], "when_spent": "raw", "note": "why",
       "limits": {"active_facts": 3, "cost_per_day": "1.5"}},), {}),
    ("policy show", (), {}),
    ("entity rename Ana Bea", ("Ana", "Bea"), {}),
    ("entity alias Ana Annie --from Bea", ("Ana", "Annie"), {"moved_from": "Bea"}),
    ("entity merge Ana Annie --into Bea", (["Ana", "Annie"],), {"into": "Bea"}),
    (f"entity split Tom Tim --fact {F1} --name T --type person", ("Tom", "Tim"),
     {"fact_ids": [F1], "names": ["T"], "type": "person"}),
    ("entity forget Ana", ("Ana",), {}),
    ("entity forget Ana --facts", ("Ana",), {"facts": True}),
    ("entity summarise Ana", ("Ana",), {}),
    (f"entity 'my wife' --all {TIMES}", ("my wife",), {"all_versions": True, **AT_TIMES}),
    ("entities --type place -n 3", (), {"type": "place", "limit": 3}),
    (f"relations Ana --predicate wife --all {TIMES}", ("Ana",),
     {"predicate": "wife", "all_versions": True, **AT_TIMES}),
    (f"neighbours Ana --hops 2 {TIMES}", ("Ana",), {"hops": 2, **AT_TIMES}),
    (f"who 'my wife' {TIMES}", ("my wife",), AT_TIMES),
    (f"graph --all {TIMES}", (), {"all_versions": True, **AT_TIMES}),
    ("search home", ("home",), SEARCH),
    (f"search home -n 3 --threshold 0.5 --filter '{KEYS}' --state expired --explain {TIMES}", ("home",),
     {**SEARCH, "limit": 3, "threshold": 0.5, "filters": {"key": "pet"}, "state": ["expired"], "explain": True,
      **AT_TIMES}),
    ("search home --with-run r1 --fusion rrf --when narrow --rerank --variants 2 --include facts --include turns",
     ("home",), {**SEARCH, "any": [{}, {"run_id": "r1"}], "fusion": "rrf", "when": "narrow", "rerank": True,
                 "variants": 2, "include": ["facts", "turns"]}),
    ("context", (None,), CONTEXT),
    ("context home --budget 70 --format xml --certain --summaries", ("home",),
     {"budget_tokens": 70, "format": "xml", "summaries": True}),
    (f"facts --all --filter '{KEYS}' -n 3 --after {F1}", (),
     {"all_versions": True, "filters": {"key": "pet"}, "limit": 3, "after": F1}),
    (f"count --all --filter '{KEYS}'", (), {"all_versions": True, "filters": {"key": "pet"}}),
    (f"facts {TIMES}", (), AT_TIMES),
    ("quality --since 2026-03-01 --until 2026-04-01T09:30", (MARCH, APRIL), {}),
    ("diff --since 2026-03-01 --until 2026-04-01T09:30 --axis true", (MARCH, APRIL), {"axis": "true"}),
    ("profile", (), {}), ("pending", (), {}), ("unresolved", (), {}),
    (f"history {F1}", (F1,), {}), (f"explain {F1}", (F1,), {}),
    ("users -n 3 --after ana", (), {"limit": 3, "after": "ana"}),
    ("agents -n 3 --after bot", (), {"limit": 3, "after": "bot"}),
    ("runs -n 3 --after r1", (), {"limit": 3, "after": "r1"}),
    ("export facts.jsonl --all", ("facts.jsonl",), {"all_versions": True}),
]  # fmt: skip
METHODS = {
    "policy set": "admin.set_policy", "policy show": "admin.policies",
    **{f"entity {verb}": f"entities.{verb}" for verb in ("rename", "alias", "split", "forget", "summarise", "merge")},
    "entity 'my": "entities.get", "entities": "entities.list",
    **{name: f"entities.{name}" for name in ("relations", "neighbours", "who", "graph")},
    **{name: f"admin.{name}" for name in ("quality", "users", "agents", "runs", "export", "promote")},
}  # fmt: skip
UNSCOPED = ("history", "explain")
ANY_TENANT = ("quality", "users", "agents", "runs")


class Recorder:
    """Notes the one call of a client, which ends the command."""

    def __init__(self) -> None:
        self.ids: dict[str, Any] = {}
        self.namespace = ""
        self.call: tuple[str, tuple[Any, ...], dict[str, Any]] | None = None

    def scope(self, **ids: Any) -> "Recorder":
        self.ids = ids
        return self

    @property
    def entities(self) -> "Recorder":
        return self._within("entities.")

    @property
    def admin(self) -> "Recorder":
        return self._within("admin.")

    def _within(self, namespace: str) -> "Recorder":
        self.namespace = namespace
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def note(*positional: Any, **named: Any) -> None:
            self.call = (
                self.namespace + name,
                positional,
                {one: given for one, given in named.items() if given not in EMPTY},
            )
            raise typer.Exit

        return note


EMPTY: tuple[Any, ...] = (None, False, 0, (), [], {})


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(options, "call_client", lambda work, **_: asyncio.run(work(recorder)))
    return recorder


@pytest.mark.parametrize(("command", "positional", "named"), CALLS, ids=[command for command, *_ in CALLS])
def test_a_command_asks_one_thing(
    client: Recorder, command: str, positional: tuple[Any, ...], named: dict[str, Any]
) -> None:
    words = command.split()
    method = next((METHODS[name] for name in (" ".join(words[:2]), words[0]) if name in METHODS), None)
    whose = () if words[0] in UNSCOPED else ("--user", "alice", "--agent", "bot")
    assert run([*shlex.split(command), *whose]) == 0
    assert client.call == (method or words[0].replace("-", "_"), positional, named)
    if whose:
        assert (client.ids["user_id"], client.ids["agent_id"]) == ("alice", "bot")
        assert client.ids["app_id"] == ("**" if words[0] in ANY_TENANT else None)


def test_a_dry_run_takes_the_overrides_of_its_turn(client: Recorder) -> None:
    said = ("dry-run", "I moved.", "--at", "2026-03-01", "--speaker", "Mira", "--raw")
    assert run([*said, "--override", "conflict=0.5", "--override", "add_only=true", "--override", "chat_model=m"]) == 0
    assert client.call is not None
    method, positional, named = client.call
    assert (method, positional) == ("dry_run", ("I moved.",))
    del named["on_wait"]
    overrides = {"conflict": 0.5, "add_only": True, "chat_model": "m"}
    assert named == {"occurred_at": MARCH, "speaker": "Mira", "overrides": overrides}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("delete-all --user alice", "add --yes"),
        ("undo --user alice", "give one of --event, --turn, or --model/--prompt-version"),
        (f"undo --event {F1} --turn t1", "give one of --event"),
        ("undo --turn t1 --since 2026-03-01", "leave out --since and --until"),
        ("undo --model m", "need --since"),
        ("facts --filter x", "it is not valid JSON"),
        ("facts --filter []", "it must be a JSON object"),
        ("dry-run x --override conflict", "is not a valid override: write name=value"),
        ("diff --since yesterday", "is not a valid time"),
        ("diff --since 2026-03-01 --axis wished", "wished"),
        ("history no-uuid", "is not an id"),
        ("search x -n 1000", "less than or equal to 100"),
    ],
)
def test_a_wrong_option_is_refused(
    client: Recorder, command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(command)) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert client.call is None


def test_an_interrupted_rebuild_says_what_state_things_are_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(work: Coroutine[Any, Any, Any]) -> None:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setenv("MNEMOLOG_KAFKA", "localhost:1")
    monkeypatch.setenv("MNEMOLOG_POSTGRES", "postgresql://localhost:1/x")
    monkeypatch.setattr(asyncio, "run", interrupted)
    assert run(["rebuild"]) == 130
    assert capsys.readouterr().err.startswith("stopped: the live tables are as they were")
