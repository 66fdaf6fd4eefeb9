"""Conflicts of turns that wait share a call, and each turn is decided as it would be alone."""

import json
import math
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.stores.candidates import CandidateLists, CandidateRequest
from mnemolog.schemas.command import Command, Delete
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.model import NamedEntity
from mnemolog.schemas.entities.relations import SAME_AS, NamedRelation
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.facts import MatchedFact
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.schemas.vector import Vector
from mnemolog.streams.llm.errors import BatchSuspectError
from mnemolog.streams.llm.ports import Prompt, Reply, SharedPrompt
from mnemolog.streams.llm.resolve_prompt import PROMPT_VERSION, SHARED_PROMPT_VERSION
from tests.support.builders.commits import ALICE, day, vector
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact, matched_envelope
from tests.support.servers.canned_replies import ChatRequest, EchoReplies, reply_to

pytestmark = pytest.mark.postgres

DOG, JOB, CITY = "Mira's dog is Rex.", "Mira's job is baking.", "Mira's city is Rome."
NEW_DOG, NEW_JOB, NEW_CITY = "Mira's dog is Bella.", "Mira's job is teaching.", "Mira's city is Oslo."
GROUPS = ("dog", "job", "city", "cat", "car")


@pytest.fixture
async def resolver(db: ProjectedDatabase) -> AsyncIterator[ResolverHarness]:
    harness = sharing(db)
    yield harness
    await harness.close()


def sharing(db: ProjectedDatabase, **settings: Any) -> ResolverHarness:
    """A resolver with a language model: the offline rules take one turn at a time."""
    return ResolverHarness(db, provider="openai", **settings)


def said_vector(text: str) -> Vector:
    """Texts about the same thing have a similarity of .8, others none."""
    group = next(place for place, name in enumerate(GROUPS) if name in text)
    own = 10 + sum(text.encode()) % 400
    return vector(*(math.sqrt(0.8) * (axis == group) + math.sqrt(0.2) * (axis == own) for axis in range(500)))


def said(number: int, *texts: str, **fields: Any) -> MatchedFacts:
    facts = tuple(MatchedFact(fact=extracted_fact(text), vector=said_vector(text)) for text in texts)
    given: dict[str, Any] = {"source_id": f"said{number}", "offset": 100 + number, "facts": facts} | fields
    return matched_envelope(at=day(2), **given)


def judged(prompt: Prompt) -> str:
    """REPLACE where a fact begins as a known one does."""
    question = ChatRequest({"messages": [{"role": "user", "content": prompt.messages[1].content}]})
    return reply_to(question, EchoReplies())


async def known(resolver: ResolverHarness, *texts: str) -> None:
    resolver.chat_model.set_replies(judged)
    for number, text in enumerate(texts):
        await resolver.resolve(said(number, text, source_id=f"known{number}", offset=number))
    resolver.chat_model.prompts.clear()


async def decide_all(resolver: ResolverHarness, turns: Sequence[MatchedFacts]) -> list[Commit]:
    """Decide turns in order, each with those behind it."""
    commits = [await resolver.resolve(turn, turns[place + 1 :]) for place, turn in enumerate(turns)]
    return [commit for commit in commits if commit is not None]


def call_turns(resolver: ResolverHarness) -> list[int]:
    """How many turns each call asked about."""
    return [len(one.tasks) if isinstance(one, SharedPrompt) else 1 for one in resolver.chat_model.prompts]


def steps(commits: Sequence[Commit]) -> list[Any]:
    return [commit.provenance.steps[-1] for commit in commits]


async def test_conflicts_that_do_not_depend_on_each_other_share_a_call(resolver: ResolverHarness) -> None:
    await known(resolver, DOG, JOB, CITY)
    commits = await decide_all(resolver, [said(0, NEW_DOG), said(1, NEW_JOB), said(2, NEW_CITY)])
    assert call_turns(resolver) == [3]
    assert await resolver.active_texts() == [NEW_CITY, NEW_DOG, NEW_JOB]
    assert [step.llm_calls for step in steps(commits)] == [1, 0, 0]
    assert [step.call_turns for step in steps(commits)] == [3, 3, 3]
    assert sum(step.input_tokens + step.output_tokens for step in steps(commits)) == 15
    assert {step.prompt_version for step in steps(commits)} == {SHARED_PROMPT_VERSION}
    assert {commit.events[0].decision.prompt_version for commit in commits} == {SHARED_PROMPT_VERSION}
    (prompt,) = resolver.chat_model.prompts
    assert [f"N{number} (" in prompt.messages[1].content for number in (1, 2, 3, 4)] == [True, True, True, False]


async def test_each_turn_is_decided_as_it_would_be_alone(db: ProjectedDatabase) -> None:
    story = [
        said(0, NEW_DOG, "Mira's cat is old."),
        said(1, "Mira's car is red."),
        said(2, NEW_JOB, "Mira's cat is young."),
        said(3, "Mira's dog is Luna.", "Mira's car is blue."),
        said(4, "Mira's dog is Ada."),
        said(5, NEW_CITY),
    ]
    found, calls = [], []
    for number, most in enumerate((20, 1)):
        scope = Scope(user_id=f"mira{number}")
        resolver = sharing(db, call_turns=most)
        resolver.chat_model.set_replies(judged)
        texts = [said(place, text, source_id=f"known{place}") for place, text in enumerate((DOG, JOB, CITY))]
        turns = [turn.model_copy(update={"scope": scope}) for turn in (*texts, *story)]
        commits = await decide_all(resolver, turns[:3]) + await decide_all(resolver, turns[3:])
        found.append(
            [[(event.event, event.new_fact and event.new_fact.text) for event in one.events] for one in commits]
        )
        calls.append(len(resolver.chat_model.prompts))
        await resolver.close()
    assert found[0] == found[1]
    assert calls == [3, 5]


async def test_a_turn_that_depends_on_an_open_decision_is_asked_about_when_that_is_made(
    resolver: ResolverHarness,
) -> None:
    await known(resolver, DOG, JOB)
    turns = [said(0, NEW_DOG), said(1, "Mira's dog is Ada."), said(2, NEW_JOB)]
    commits = await decide_all(resolver, turns)
    assert call_turns(resolver) == [2, 1]
    assert [step.call_turns for step in steps(commits)] == [2, 1, 2]
    assert await resolver.active_texts() == ["Mira's dog is Ada.", NEW_JOB]


async def test_a_turn_may_conflict_with_what_a_turn_before_it_will_surely_add(resolver: ResolverHarness) -> None:
    await known(resolver, DOG)
    turns = [said(0, NEW_DOG), said(1, "Mira's cat is old."), said(2, "Mira's cat is young.")]
    commits = await decide_all(resolver, turns)
    assert call_turns(resolver) == [2]
    assert [step.llm_calls for step in steps(commits)] == [1, 0, 0]
    assert await resolver.active_texts() == ["Mira's cat is young.", NEW_DOG]


async def test_an_answer_to_what_a_turn_does_not_ask_in_the_end_is_thrown_away_and_told(
    resolver: ResolverHarness,
) -> None:
    await known(resolver, DOG, JOB, "Her job is hard.")
    first, second = said(0, NEW_DOG), said(1, NEW_JOB)
    await resolver.resolve(first, [second])
    rows = await resolver.stored.rows("SELECT fact_id FROM facts WHERE text LIKE '%baking.'")
    order = Delete(fact_ids=(rows[0][0],))
    await resolver.send_command(Command(command_id="c", scope=ALICE, issued_at=day(2), order=order, actor=None))
    commit = await resolver.resolve(second)
    assert commit is not None
    assert call_turns(resolver) == [2, 1]
    (step,) = steps([commit])
    assert (step.llm_calls, step.call_turns, step.prompt_version) == (1, 1, PROMPT_VERSION)
    assert step.input_tokens + step.output_tokens > 15
    assert "asked ahead in vain" in step.notes[0]
    assert JOB not in resolver.chat_model.prompts[-1].messages[1].content


async def test_the_cost_of_an_answer_is_told_where_nothing_is_asked_any_more(resolver: ResolverHarness) -> None:
    await known(resolver, DOG, JOB)
    first, second = said(0, NEW_DOG), said(1, NEW_JOB)
    await resolver.resolve(first, [second])
    rows = await resolver.stored.rows("SELECT fact_id FROM facts WHERE text LIKE '%baking.'")
    order = Delete(fact_ids=(rows[0][0],))
    await resolver.send_command(Command(command_id="c", scope=ALICE, issued_at=day(2), order=order, actor=None))
    commit = await resolver.resolve(second)
    assert commit is not None
    (step,) = steps([commit])
    assert (call_turns(resolver), step.llm_calls) == ([2], 0)
    assert step.input_tokens + step.output_tokens > 0


async def test_after_a_restart_no_turn_is_asked_about_again(db: ProjectedDatabase) -> None:
    resolver = sharing(db)
    await known(resolver, DOG, JOB)
    turns = [said(0, NEW_DOG), said(1, NEW_JOB)]
    await resolver.resolve(turns[0], turns[1:])
    again = sharing(db)
    commit = await again.resolve(turns[1])
    assert (commit is not None, again.chat_model.prompts) == (True, [])
    assert await again.active_texts() == [NEW_DOG, NEW_JOB]
    for harness in (resolver, again):
        await harness.close()


def _mixed_up(text: str) -> str:
    reply = json.loads(text)
    one, two = reply["turns"]
    one["decisions"], two["decisions"] = two["decisions"], one["decisions"]
    return json.dumps(reply)


def _without_second(text: str) -> str:
    reply = json.loads(text)
    del reply["turns"][1]
    return json.dumps(reply)


@pytest.mark.parametrize(
    ("damage", "calls", "reprompts"),
    [(_mixed_up, [2, 1, 1], [1, 0]), (_without_second, [2, 1], [0, 0]), (lambda _: "no", [2, 1, 1], [1, 0])],
    ids=["mixed up", "no part", "no reply"],
)
async def test_turns_that_a_call_does_not_answer_are_asked_about_alone(
    resolver: ResolverHarness, damage: Callable[[str], str], calls: list[int], reprompts: list[int]
) -> None:
    await known(resolver, DOG, JOB)
    resolver.chat_model.set_replies(
        lambda prompt: damage(judged(prompt)) if isinstance(prompt, SharedPrompt) else judged(prompt)
    )
    commits = await decide_all(resolver, [said(0, NEW_DOG), said(1, NEW_JOB)])
    assert call_turns(resolver) == calls
    assert [step.reprompts for step in steps(commits)] == reprompts
    assert sum(step.llm_calls for step in steps(commits)) == len(calls)
    assert sum(step.input_tokens + step.output_tokens for step in steps(commits)) == 15 * len(calls)
    assert await resolver.active_texts() == [NEW_DOG, NEW_JOB]


async def test_a_turn_that_a_call_did_not_answer_is_asked_about_with_no_other(resolver: ResolverHarness) -> None:
    await known(resolver, DOG, JOB, CITY)
    resolver.chat_model.set_replies(
        lambda prompt: _without_second(judged(prompt)) if isinstance(prompt, SharedPrompt) else judged(prompt)
    )
    turns = [said(0, NEW_DOG), said(1, NEW_JOB), said(2, NEW_CITY)]
    await resolver.resolve(turns[0], turns[1:2])
    await resolver.resolve(turns[1], turns[2:])
    assert call_turns(resolver) == [2, 1]


async def test_two_turns_near_one_known_fact_depend_on_each_other(resolver: ResolverHarness) -> None:
    resolver.chat_model.set_replies(judged)
    sides = [vector(0.71, 0.71), vector(0.95, 0.31), vector(0.31, 0.95)]
    turns = [
        with_vector(said(number, text), side)
        for number, (text, side) in enumerate(zip((DOG, NEW_DOG, NEW_JOB), sides, strict=True))
    ]
    await decide_all(resolver, turns[:1])
    await decide_all(resolver, turns[1:])
    assert call_turns(resolver) == [1]


async def test_a_call_that_fails_is_divided_and_the_turn_at_fault_is_asked_about_alone(
    resolver: ResolverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(prompt: Prompt) -> Reply:
        if isinstance(prompt, SharedPrompt) and NEW_JOB in prompt.messages[1].content:
            resolver.chat_model.prompts.append(prompt)
            raise BatchSuspectError("content_filter", "as the test asked for")
        return await complete(prompt)

    await known(resolver, DOG, JOB, CITY, "Mira's cat is old.")
    complete = resolver.chat_model.complete
    monkeypatch.setattr(resolver.chat_model, "complete", refuse)
    turns = [said(0, NEW_DOG), said(1, NEW_JOB), said(2, NEW_CITY), said(3, "Mira's cat is young.")]
    await decide_all(resolver, turns)
    assert call_turns(resolver) == [4, 2, 2, 1, 1]
    assert await resolver.active_texts() == ["Mira's cat is young.", NEW_CITY, NEW_DOG, NEW_JOB]


@pytest.mark.parametrize(
    ("most", "fields"),
    [(1, {}), (20, {"overrides": Overrides(chat_model="other-1")}), (20, {"infer": False})],
    ids=["one turn in a call", "overrides", "raw"],
)
async def test_what_is_not_shared(db: ProjectedDatabase, most: int, fields: dict[str, Any]) -> None:
    resolver = sharing(db, call_turns=most)
    await known(resolver, DOG, JOB)
    await decide_all(resolver, [said(0, NEW_DOG), said(1, NEW_JOB, **fields)])
    assert set(call_turns(resolver)) == {1}
    await resolver.close()


async def test_a_call_has_no_more_turns_and_tokens_than_the_policy_allows(db: ProjectedDatabase) -> None:
    turns = [said(0, NEW_DOG), said(1, NEW_JOB), said(2, NEW_CITY)]
    for number, (settings, calls) in enumerate([({"call_turns": 2}, [2, 1]), ({"call_tokens": 150}, [1, 1, 1])]):
        resolver = sharing(db, **settings)
        scope = Scope(user_id=f"u{number}")
        resolver.chat_model.set_replies(judged)
        texts = [said(place, text, source_id=f"known{place}") for place, text in enumerate((DOG, JOB, CITY))]
        await decide_all(resolver, [turn.model_copy(update={"scope": scope}) for turn in texts])
        await decide_all(resolver, [turn.model_copy(update={"scope": scope}) for turn in turns])
        assert call_turns(resolver) == calls
        await resolver.close()


async def test_a_turn_that_cannot_be_read_ahead_does_not_fail_the_one_before_it(
    resolver: ResolverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(request: CandidateRequest) -> CandidateLists:
        if request.queries[0].vector == said_vector(NEW_JOB):
            raise StatementTimeoutError("candidates")
        return await original(request)

    await known(resolver, DOG, JOB)
    finder = resolver.stages.match._finder
    original = finder.find
    monkeypatch.setattr(finder, "find", find)
    commit = await resolver.resolve(said(0, NEW_DOG), [said(1, NEW_JOB)])
    assert commit is not None
    assert (commit.outcome, call_turns(resolver)) == ("facts", [1])


def about_tom(number: int, text: str, name: str) -> MatchedFacts:
    """A turn whose fact names somebody."""
    turn = said(number, text)
    (matched,) = turn.facts
    named = (NamedEntity(name=name, type="person", role="object"),)
    fact = matched.fact.model_copy(update={"entities": named})
    return turn.model_copy(update={"facts": (matched.model_copy(update={"fact": fact}),)})


@pytest.mark.parametrize("place", [0, 1])
async def test_a_turn_that_asks_whom_a_name_means_shares_no_call(resolver: ResolverHarness, place: int) -> None:
    await known(resolver, DOG, JOB)
    for number, name in enumerate(("Tom Hill", "Tom Stone")):
        await resolver.resolve(about_tom(50 + number, f"The {('cat', 'car')[number]} is with {name}.", name))
    resolver.chat_model.prompts.clear()
    turns = [about_tom(0, NEW_DOG, "Tom"), said(1, NEW_JOB)]
    if place:
        turns = [said(0, NEW_JOB), about_tom(1, NEW_DOG, "Tom")]
    commits = await decide_all(resolver, turns)
    assert call_turns(resolver) == [1, 1]
    assert [len(step.answered_names) for step in steps(commits)] == [1 - place, place]
    assert await resolver.active_texts() == [
        "Mira's dog is Bella.",
        "Mira's job is teaching.",
        "The car is with Tom Stone.",
        "The cat is with Tom Hill.",
    ]


def with_vector(turn: MatchedFacts, given: Vector) -> MatchedFacts:
    facts = tuple(one.model_copy(update={"vector": given}) for one in turn.facts)
    return turn.model_copy(update={"facts": facts})


def at_home(number: int, who: str, text: str, *, is_near: bool = True, also: str = "", **fields: Any) -> MatchedFacts:
    """A turn that tells where somebody lives, who may also be called otherwise; texts that are near have .1."""
    fact = extracted_fact(
        text,
        key="home_city",
        value=text.rstrip(".").rpartition(" ")[2],
        single_valued=True,
        subject=who,
        entities=(NamedEntity(name=who, type="person", role="subject"),),
        relations=(NamedRelation(subject=who, predicate=SAME_AS, object=also),) if also else (),
    )
    own = 20 + sum(text.encode()) % 400
    weights = (
        (math.sqrt(0.1) if is_near else 0.0) * (axis == 9) + math.sqrt(0.9) * (axis == own) for axis in range(500)
    )
    matched = MatchedFact(fact=fact, vector=vector(*weights))
    return said(number, **{"facts": (matched,)} | fields)


IN_BERN, IN_ROME = "Her city is Bern.", "Her city is Rome."


async def many_homes(resolver: ResolverHarness) -> None:
    """Bee is known by another name, and her home is not among the facts of the key that a lookup gives."""
    await known(resolver, DOG)
    turns = [at_home(20, "Elizabeth", IN_BERN, is_near=False, also="Bee")]
    names = ("Ben", "Carl", "Dora", "Emil", "Fritz", "Gina")
    turns += [at_home(21 + number, name, f"{name} lives in Ulm.") for number, name in enumerate(names)]
    await decide_all(resolver, turns)
    resolver.chat_model.prompts.clear()


async def test_a_turn_that_waits_is_asked_about_facts_of_its_entity_by_another_name(resolver: ResolverHarness) -> None:
    await many_homes(resolver)
    commits = await decide_all(resolver, [said(0, NEW_DOG), at_home(1, "Bee", IN_ROME)])
    assert call_turns(resolver) == [2]
    assert [step.llm_calls for step in steps(commits)] == [1, 0]
    statuses = await resolver.statuses()
    assert (statuses[IN_BERN], statuses[IN_ROME], statuses["Ben lives in Ulm."]) == ("superseded", "active", "active")


async def test_what_another_turn_will_surely_add_to_the_key_changes_no_question(resolver: ResolverHarness) -> None:
    await many_homes(resolver)
    turns = [said(0, NEW_DOG), at_home(1, "Ute", "Ute lives in Ulm."), at_home(2, "Bee", IN_ROME)]
    commits = await decide_all(resolver, turns)
    assert call_turns(resolver) == [2]
    assert [step.llm_calls for step in steps(commits)] == [1, 0, 0]
    assert (await resolver.statuses())[IN_BERN] == "superseded"
