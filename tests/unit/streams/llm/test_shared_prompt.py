"""Several turns in one call: which share it, what it shows, and how its reply and its tokens are divided."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.base import known_sum
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy, Limits
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import NO_BACKGROUND, Background, ShownEntity, ShownFact
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.llm import shared_prompt as module
from mnemolog.streams.llm.background import best_shown
from mnemolog.streams.llm.extract_prompt import extraction_prompt, shared_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask, Reply, Usage
from mnemolog.streams.llm.shared_prompt import (
    CallTurn,
    divide,
    divide_reply,
    divide_usage,
    known_together,
    message_tokens,
    most_turns,
    turns_together,
)
from mnemolog.streams.stages.background import messages_of
from mnemolog.streams.text.readings import Reading, read
from tests.support.builders.model_replies import fact_json
from tests.support.builders.prompts import MONDAY, extraction, turn, user

RULES: Final = EffectivePolicy()


def assistant(content: str) -> Message:
    return Message(role="assistant", content=content)


def numbered(number: int, *messages: Message, **fields: Any) -> Turn:
    """A turn that was said so many minutes after the first one."""
    return turn(*messages, **{"turn_id": f"t{number}", "occurred_at": MONDAY + timedelta(minutes=number)} | fields)


# Which turns share a call


def placed(number: int, *messages: Message, **fields: Any) -> CallTurn:
    said = numbered(number, *(messages or (user("I live in Berlin."),)), **fields)
    return CallTurn(turn=said, published_at=MONDAY, position=f"turns/0/{number}", offset=number, size=100)


def together(*waiting: CallTurn | None, rules: EffectivePolicy = RULES) -> list[str]:
    first, *others = turns_together(placed(0), waiting, rules)
    assert first == placed(0)
    return [one.turn.turn_id for one in others]


def test_turns_of_the_conversation_that_wait_go_together_up_to_a_command() -> None:
    assert together(placed(1), placed(2)) == ["t1", "t2"]
    assert together(placed(1), None, placed(2)) == ["t1"]


@pytest.mark.parametrize(
    "other",
    [
        placed(1, infer=False),
        placed(1, overrides=Overrides(chat_model="other")),
        placed(1, overrides=Overrides(reprompts=0)),
        placed(1, assistant("Where do you live?")),
        placed(1, scope=Scope(user_id="alice", run_id="r1")),
        replace(placed(1), size=5000),
    ],
    ids=["raw", "another model", "other overrides", "the assistant alone", "another run", "too large"],
)
def test_a_turn_that_is_asked_about_otherwise_is_passed_over(other: CallTurn) -> None:
    rules = EffectivePolicy(limits={"scope": Limits(bytes_per_turn=1000)})
    assert together(other, placed(2), rules=rules) == ["t2"]


@pytest.mark.parametrize(
    "other",
    [
        placed(1, turn_id="t0"),
        placed(1, occurred_at=MONDAY - timedelta(seconds=1)),
        placed(1, occurred_at=MONDAY + timedelta(seconds=RULES.conversation_age + 1)),
        placed(1, user("word " * RULES.call_tokens)),
    ],
    ids=["published again", "said earlier", "said much later", "too many tokens"],
)
def test_a_turn_that_does_not_follow_ends_the_call(other: CallTurn) -> None:
    assert together(other, placed(2)) == []


def test_the_number_of_turns_and_their_tokens_are_bounded() -> None:
    many = [placed(number) for number in range(1, 60)]
    assert len(together(*many)) == RULES.call_turns - 1
    assert len(together(*many, rules=EffectivePolicy(call_turns=5))) == 4
    tokens = message_tokens(many[0].turn)
    assert len(together(*many, rules=EffectivePolicy(call_tokens=7 * tokens))) == 6
    assert together(*many, rules=EffectivePolicy(call_tokens=0)) == []


def test_a_system_message_takes_no_tokens_as_no_prompt_shows_it() -> None:
    told = placed(1, Message(role="system", content="word " * 50), user("I live in Berlin."))
    assert message_tokens(told.turn) == message_tokens(placed(1).turn)


def test_no_more_turns_than_a_minute_allows() -> None:
    limits = {"tenant": Limits(turns_per_minute=8), "scope": Limits(turns_per_minute=3)}
    assert most_turns(EffectivePolicy(limits={"tenant": limits["tenant"], "scope": limits["scope"]})) == 3
    assert most_turns(EffectivePolicy(limits={"scope": Limits(turns_per_minute=0)})) == 1


@pytest.mark.parametrize("rules", [EffectivePolicy(conversation_messages=0), EffectivePolicy(conversation_tokens=0)])
def test_where_no_conversation_is_shown_no_turn_is_shown_to_another(rules: EffectivePolicy) -> None:
    assert together(placed(1), rules=rules) == []


# What the call shows

FACTS: Final = [
    ShownFact(fact_id=UUID(int=number), text=f"Fact number {number}.", key=f"k{number}") for number in range(6)
]
BEFORE: Final = numbered(0, user("Hello."), assistant("Hi."), speaker="Mira")
FIRST: Final = numbered(1, user("I live in Berlin."), assistant("Nice."), speaker="Mira")
BETWEEN: Final = numbered(2, assistant("Any pets?"))
LAST: Final = numbered(3, user("A cat\nturn 9"), speaker="Mira")
ANA: Final = ShownEntity(
    entity_id=UUID(int=70), name="Ana", type="person", names=("Annie",), ties=("wife of the user",)
)
TWIN: Final = ShownEntity(entity_id=UUID(int=71), name='Ana"\nor', type="person", twins=(ANA.entity_id,))


def shown(own: Turn, *earlier: Turn, **fields: Any) -> ExtractionTask:
    messages = tuple(message for one in earlier for message in messages_of(one))
    background = Background(messages=messages, names=("Mira",), **fields)
    return ExtractionTask(turn=own, categories=CATEGORIES, background=background)


def test_each_message_and_fact_is_shown_once_and_in_its_place() -> None:
    tasks = [
        shown(FIRST, BEFORE, facts=(FACTS[0],), entities=(ANA,)),
        shown(LAST, BEFORE, FIRST, BETWEEN, facts=(FACTS[0],), entities=(ANA, TWIN)),
    ]
    _, question = shared_prompt(tasks, known_together(tasks, tokens=1000)).messages
    assert question.content.splitlines() == [
        "names of the user: Mira",
        "names:",
        '> 1. "Ana" (person), also: "Annie", "wife of the user"',
        """> 2. "Ana' or" (person); perhaps the same as 1""",
        "slots in use: k0",
        "turn 1",
        "turn_id: t1",
        "occurred_at: 2023-05-08 13:58 (Monday)",
        "speaker: Mira",
        "earlier:",
        "> user (Mira): Hello.",
        "> assistant: Hi.",
        "conversation:",
        "1 user: I live in Berlin.",
        "assistant: Nice.",
        "turn 2",
        "turn_id: t3",
        "occurred_at: 2023-05-08 14:00 (Monday)",
        "speaker: Mira",
        "earlier:",
        "> assistant: Any pets?",
        "conversation:",
        "2 user: A cat",
        "3   turn 9",
    ]


def test_the_words_and_the_form_are_those_of_one_turn() -> None:
    several, alone = shared_prompt([shown(FIRST), shown(LAST)], NO_BACKGROUND), extraction_prompt(shown(FIRST))
    assert several.messages[0] == alone.messages[0]
    assert several.schema == alone.schema


def test_the_best_facts_of_each_turn_are_known_within_the_tokens_of_one_turn() -> None:
    tasks = [shown(FIRST, facts=tuple(FACTS[:3])), shown(LAST, facts=(FACTS[4], FACTS[0], FACTS[5]))]
    assert [fact.fact_id.int for fact in known_together(tasks, tokens=10_000).facts] == [0, 4, 1, 2, 5]
    tokens = next(number for number in range(1000) if len(best_shown((), FACTS, tokens=number)[1]) == 2)
    assert [fact.fact_id.int for fact in known_together(tasks, tokens=tokens).facts] == [0, 4]


# How the reply is divided

SAID = ("I live in Berlin.", "My cat is called Tom.", "I work at Acme.")
TOKENS = st.integers(0, 100_000)
WEIGHTS = st.lists(st.integers(0, 5000), min_size=1, max_size=40)


def task(said: str, **fields: Any) -> ExtractionTask:
    return extraction(user(said), assistant("Tom eats fish."), turn_id=said, **fields)


TASKS = [task(said) for said in SAID]


def reply(*parts: tuple[int, list[dict[str, Any]]], usage: Usage = Usage()) -> Reply:  # noqa: B008 -- frozen
    """A reply whose facts name the line of their turn: each turn of these tests has one."""
    facts = [fact | {"line": number} for number, of_turn in parts for fact in of_turn]
    return Reply(text=json.dumps({"facts": facts}), model="m", usage=usage)


def texts(parts: list[Reply | None]) -> list[list[str] | None]:
    return [None if part is None else [fact["text"] for fact in json.loads(part.text)["facts"]] for part in parts]


def fact(text: str, excerpt: str) -> dict[str, Any]:
    return fact_json(text, excerpt=excerpt)


BERLIN, CAT, ACME = (fact(said, said) for said in SAID)
OSLO = fact("The user moved to Oslo.", "I moved to Oslo.")


def asked(question: str, answer: str) -> ExtractionTask:
    return extraction(assistant(question), user(answer), turn_id=question)


def test_each_turn_gets_its_facts_as_a_valid_reply_to_its_own_question() -> None:
    parts = divide_reply(reply((1, [BERLIN]), (2, []), (3, [ACME])), TASKS)
    assert texts(parts) == [[SAID[0]], [], [SAID[2]]]
    for part, own in zip(parts, TASKS, strict=True):
        assert part is not None
        assert parse_extraction(part.text, own).complaints == ()


def test_a_fact_goes_to_the_turn_that_its_excerpt_is_in_and_is_one_fact_where_two_turns_are_given_it() -> None:
    parts = divide_reply(reply((1, [CAT, ACME]), (2, [CAT]), (3, [BERLIN])), TASKS)
    assert texts(parts) == [[SAID[0]], [SAID[1]], [SAID[2]]]


LIVES, BORN = fact("The user lives in Rome.", "Rome."), fact("The user was born in Rome.", "Rome.")
SMOKES, DRINKS = fact("The user smokes.", "Yes."), fact("The user drinks.", "Yes.")
HOMES = [asked("Where do you live?", "Rome."), asked("Where were you born?", "Rome.")]
HABITS = [asked("Do you smoke?", "Yes."), asked("Do you drink?", "Yes.")]
MORE = [asked("Do you smoke?", "Yes."), asked("Shall I go on?", "Yes.")]


@pytest.mark.parametrize(
    ("tasks", "stated", "expected"),
    [
        (HOMES, ([LIVES], [BORN]), [[LIVES], [BORN]]),
        (HOMES, ([], [LIVES, BORN]), [None, None]),
        (HOMES, ([LIVES, BORN], []), [None, None]),
        (HOMES, ([LIVES], []), [None, None]),
        (HOMES, ([LIVES, BORN], None), [None, None]),
        (HABITS, ([], [SMOKES, DRINKS]), [[SMOKES], [DRINKS]]),
        (HABITS, ([DRINKS], [SMOKES]), [[SMOKES], [DRINKS]]),
        (MORE, ([], [SMOKES]), [[SMOKES], []]),
        ([*HOMES, task("I moved to Oslo.")], ([], [LIVES], [OSLO]), [None, None, [OSLO]]),
    ],
)
def test_of_turns_with_equal_answers_each_has_what_it_tells_or_is_asked_alone(
    tasks: list[ExtractionTask], stated: tuple[list[Any] | None, ...], expected: list[list[Any] | None]
) -> None:
    """One fact of two whose answers are equal may be of either: only the words of a yes or no's question tell."""
    parts = divide_reply(reply(*((at, facts) for at, facts in enumerate(stated, 1) if facts is not None)), tasks)
    found = [None if part is None or is_invalid(part, own) else part for part, own in zip(parts, tasks, strict=True)]
    assert texts(found) == [None if facts is None else [one["text"] for one in facts] for facts in expected]


def is_invalid(part: Reply, own: ExtractionTask) -> bool:
    """Whether the turn is asked again, alone."""
    return parse_extraction(part.text, own).value is None


NUTS = "I am allergic to nuts."


@pytest.mark.parametrize(
    ("first", "second", "excerpt"),
    [
        (task("I like art."), task("We had an early start."), "art"),
        (task(NUTS), task(NUTS, recalled=(NUTS,)), NUTS),
        (task("No"), task("I moved to Norway."), "No"),
    ],
    ids=["part of a word", "recalled", "short answer"],
)
def test_a_part_of_a_word_and_recalled_text_are_no_excerpt(
    first: ExtractionTask, second: ExtractionTask, excerpt: str
) -> None:
    parts = divide_reply(reply((1, []), (2, [fact("It is so.", excerpt)])), [first, second])
    assert texts(parts) == [["It is so."], []]


SISTER = "The user's sister Ana Keller"
TOM = ShownEntity(entity_id=UUID(int=1), name="Tom", type="person", ties=("cousin of Carla",))
CARLAS = {"text": "Carla's cousin Tom moved to Bern.", "subject": "Carla's cousin Tom"}
TOLD = Background(names=("Basel", "Ana Keller"), entities=(TOM,))


@pytest.mark.parametrize(
    ("said", "later", "named"),
    [
        ("I moved to Bern.", "No, to Basel.", {"key": "home_city", "value": "Basel"}),
        ("She moved to Bern.", "My sister Ana Keller is a doctor.", {"subject": SISTER}),
        ("She moved.", "My sister Ana is a doctor.", {"entities": [{"name": "Ana", "type": "x", "role": "subject"}]}),
        ("Tom moved to Bern.", "Tom is the cousin of Carla.", CARLAS),
    ],
    ids=["value", "subject", "entity", "tie of a known entity"],
)
def test_a_turn_whose_facts_name_what_a_later_turn_says_is_alone(said: str, later: str, named: dict[str, Any]) -> None:
    replied = reply((1, [fact("As a later turn has it.", said) | named]), (2, []))
    assert texts(divide_reply(replied, [task(said), task(later)])) == [None, []]
    assert texts(divide_reply(replied, [replace(task(said), background=TOLD), task(later)]))[0] is not None
    assert texts(divide_reply(replied, [task(said, recalled=(later,)), task(later)]))[0] is not None


@pytest.mark.parametrize(
    ("said", "later", "text"),
    [
        ("I have a dog.", "And a black cat.", "Mira has a dog and a cat."),
        ("I run a lot.", "My run takes 40 minutes.", "Mira runs for 40 minutes."),
        ("我养了一只狗。", "还有一只猫。", "米拉养了一只狗和一只猫。"),
    ],
    ids=["word", "number", "sign"],
)
def test_a_turn_whose_fact_has_a_word_of_a_later_turn_is_asked_about_alone(said: str, later: str, text: str) -> None:
    replied = reply((1, [fact(text, said)]), (2, []))
    assert texts(divide_reply(replied, [task(said), task(later)])) == [None, []]
    assert texts(divide_reply(replied, [task(said, recalled=(later,)), task(later)]))[0] == [text]
    behind = reply((1, []), (2, [fact(text, said)]))
    assert texts(divide_reply(behind, [task(later), task(said)])) == [[], [text]]


@pytest.mark.parametrize(("later", "is_alone"), [("I live in Bern.", True), ("Bern is nice.", False)])
def test_words_that_no_later_turn_says_are_those_of_the_model(later: str, is_alone: bool) -> None:
    replied = reply((1, [fact("Mira lives with a parrot.", "I have a bird.")]), (2, []))
    assert (texts(divide_reply(replied, [task("I have a bird."), task(later)]))[0] is None) == is_alone


@pytest.mark.parametrize("excerpt", ["I live in Rome.", "Tom eats fish."])
def test_a_fact_that_no_turn_says_stays_where_it_was_stated_and_is_dropped_there(excerpt: str) -> None:
    parts = divide_reply(reply((1, []), (2, [fact("Tom eats fish.", excerpt)]), (3, [])), TASKS)
    assert texts(parts)[1] == ["Tom eats fish."]
    assert parts[1] is not None
    parsed = parse_extraction(parts[1].text, TASKS[1])
    assert (parsed.value, [one.reason for one in parsed.dropped]) == ((), ["excerpt_not_found"])


def test_of_a_reply_that_was_cut_off_the_last_turn_gets_nothing() -> None:
    whole = reply((1, [BERLIN]), (2, [CAT]), (3, [ACME])).text
    cut = whole[: whole.index("Acme")]
    assert texts(divide_reply(Reply(text=cut, model="m"), TASKS)) == [[SAID[0]], [SAID[1]], None]


@pytest.mark.parametrize(
    "text",
    ["", "no", '{"facts": 5}'],
)
def test_a_reply_without_parts_of_these_turns_goes_to_the_first_with_all_that_it_took(text: str) -> None:
    usage = Usage(input_tokens=1000, output_tokens=7)
    first, *others = divide_reply(Reply(text=text, model="m", usage=usage), TASKS)
    assert first is not None
    assert (first.usage, others) == (usage, [None, None])
    assert parse_extraction(first.text, TASKS[0]).value is None


@pytest.mark.parametrize("number", [10**30, float("nan"), float("-inf")])
def test_a_number_that_json_has_no_room_for_is_a_fault_of_its_own_turn(number: float) -> None:
    parts = divide_reply(reply((1, [BERLIN]), (2, [CAT | {"value": number}]), (3, [])), TASKS)
    assert texts(parts) == [[SAID[0]], [SAID[1]], []]
    first, *_ = divide_reply(Reply(text="no \ud800", model="m"), TASKS)  # half a sign
    assert first is not None
    assert json.loads(first.text) == {"undivided": "reply: no ?"}


@pytest.mark.parametrize("number", [0, 3, 4, 10**30, True, "2", None])
def test_a_fact_with_a_wrong_line_goes_to_the_line_that_has_its_words(number: Any) -> None:
    stated = [{"text": said, "line": number} for said in (SAID[2], SAID[0])]
    parts = divide_reply(Reply(text=json.dumps({"facts": stated}), model="m"), TASKS)
    assert texts(parts) == [[SAID[0]], [], [SAID[2]]]


def test_turns_without_a_part_take_no_tokens() -> None:
    usage = Usage(input_tokens=999, output_tokens=50, cached_tokens=333)
    whole = reply((1, [BERLIN]), (2, [CAT]), usage=usage)
    parts = divide_reply(replace(whole, text=whole.text[: whole.text.index("Tom")]), TASKS)
    assert parts[1:] == [None, None]
    kept = [part.usage for part in parts if part is not None]
    assert sum(one.input_tokens for one in kept) == usage.input_tokens
    assert sum(one.output_tokens for one in kept) == usage.output_tokens
    assert known_sum(one.cached_tokens for one in kept) == usage.cached_tokens


@given(total=TOKENS, weights=WEIGHTS)
def test_shares_are_whole_and_lose_nothing(total: int, weights: list[int]) -> None:
    shares = divide(total, weights)
    assert (len(shares), sum(shares)) == (len(weights), total)
    assert min(shares) >= 0
    if any(weights):
        exact = [total * weight / sum(weights) for weight in weights]
        assert all(abs(share - own) < 1 for share, own in zip(shares, exact, strict=True))
        assert all(share == 0 for share, weight in zip(shares, weights, strict=True) if not weight)


@given(asked=TOKENS, said=TOKENS, cached=st.none() | TOKENS, weights=WEIGHTS)
def test_the_shares_of_a_call_add_up_to_it(asked: int, said: int, cached: int | None, weights: list[int]) -> None:
    usage = Usage(input_tokens=asked, output_tokens=said, cached_tokens=cached)
    shares = divide_usage(usage, weights, weights[::-1])
    assert sum(shares[1:], shares[0]) == usage
    if cached is not None and cached <= asked:
        assert all((share.cached_tokens or 0) <= share.input_tokens for share in shares)


def test_what_turns_say_is_read_as_often_as_there_are_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read again for each turn, twenty of them would hold up all other work of the process."""
    signs: list[int] = []

    def noted(text: str) -> Reading:
        signs.append(len(text))
        return read(text)

    monkeypatch.setattr(module, "read", noted)
    taken = []
    for count in (10, 40):
        signs.clear()
        said = [f"I met person{number} in town{number}." for number in range(count)]
        parts = reply(*((number, [fact(text, text)]) for number, text in enumerate(said, 1)))
        assert all(divide_reply(parts, list(map(task, said))))
        taken.append(sum(signs))
    assert taken[1] < 5 * taken[0]
