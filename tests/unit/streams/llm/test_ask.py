from dataclasses import dataclass, field

import pytest

from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.streams.llm.ask import Answer, ParsedReply, ask, step_of
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.ports import Prompt, ReplyInvalidError, TimedReply, Usage
from mnemolog.streams.offline.model import RuleModel
from tests.support.builders.prompts import extraction, user

PROMPT = extraction_prompt(extraction(user("hello")))


@dataclass
class ScriptedChatModel:
    """A model that answers from a list, and remembers what it was asked."""

    texts: list[str]
    prompts: list[tuple[Prompt, int]] = field(default_factory=list)

    async def __call__(self, prompt: Prompt, attempt: int) -> TimedReply:
        self.prompts.append((prompt, attempt))
        return TimedReply(text=self.texts[attempt], model="scripted", milliseconds=1.0)


def parse_verdict(text: str) -> ParsedReply[str]:
    if text.startswith("good"):
        return ParsedReply(value=text)
    if text.startswith("soft"):
        return ParsedReply(
            value=text, complaints=("half",), dropped=(DroppedStatement(text=text, reason="excerpt_not_found"),)
        )
    if text.startswith("part"):
        lost = int(text.split()[1])
        dropped = (DroppedStatement(text=text, reason="invalid_fact"),) * lost
        return ParsedReply(value=text, complaints=("faulty",), dropped=dropped, is_incomplete=True)
    return ParsedReply(complaints=("bad",))


async def asked(*texts: str) -> tuple[ScriptedChatModel, Answer[str]]:
    model = ScriptedChatModel(list(texts))
    return model, await ask(model, PROMPT, parse_verdict)


@pytest.mark.parametrize(
    ("texts", "value", "dropped"),
    [
        (["good"], "good", 0),
        (["bad", "bad", "good"], "good", 0),
        (["soft", "good"], "good", 0),
        (["soft 1", "soft 2"], "soft 2", 1),
        (["soft", "bad"], "soft", 1),
        (["part 1", "part 2", "good"], "good", 0),
        (["part 1", "soft", "bad"], "soft", 1),
        (["soft", "part 1"], "soft", 1),
        (["part 1", "bad", "bad"], "part 1", 1),
        (["part 2", "part 1 a", "part 1 b"], "part 1 b", 1),
        (["part 1", "part 2", "bad"], "part 1", 1),
        (["bad", "bad", "soft"], "soft", 1),
    ],
    ids=str,
)
async def test_replies_are_asked_again_until_one_is_good_enough(texts: list[str], value: str, dropped: int) -> None:
    model, answer = await asked(*texts, "never asked")
    assert answer.value == value
    assert len(answer.dropped) == dropped
    assert [reply.text for reply in answer.replies] == texts
    assert [attempt for _, attempt in model.prompts] == list(range(len(texts)))
    assert model.prompts[0][0] == PROMPT


async def test_a_re_prompt_says_what_was_wrong_with_the_latest_reply() -> None:
    model, _ = await asked("bad one", "bad two" + "x" * 100_000, "good")
    prompt, _ = model.prompts[2]
    assert prompt.messages[:-2] == PROMPT.messages
    said, complaint = prompt.messages[-2:]
    assert (said.role, said.content) == ("assistant", "bad two" + "x" * 19_993)
    assert complaint.role == "user"
    assert "- bad\n" in complaint.content
    assert (type(prompt), prompt.version, prompt.schema) == (type(PROMPT), PROMPT.version, PROMPT.schema)
    _, answer = await asked("bad", "soft", "good")
    assert answer.complaints == ("bad", "half")


async def test_it_gives_up_after_two_re_prompts_and_hands_over_what_was_paid() -> None:
    with pytest.raises(ReplyInvalidError, match="after 3 calls, the last one: bad") as caught:
        await asked("bad", "", "bad", "good")
    assert [reply.text for reply in caught.value.replies] == ["bad", "", "bad"]
    assert caught.value.complaints == ("bad", "bad", "bad")
    model = ScriptedChatModel(["bad", "good"])
    with pytest.raises(ReplyInvalidError):
        await ask(model, PROMPT, parse_verdict, reprompts=0)
    assert len(model.prompts) == 1


@pytest.mark.parametrize(("model", "calls"), [(RuleModel.model, 0), ("gpt-4.1-mini", 2)])
def test_an_answer_by_rules_is_no_call_of_a_language_model(model: str, calls: int) -> None:
    replies = (
        TimedReply(text="bad", model=model, milliseconds=1.0),
        TimedReply(text="good", model=model, milliseconds=2.0),
    )
    step = step_of("extract", "extract-1", Answer(value="good", dropped=(), replies=replies, complaints=("bad",)))
    assert (step.llm_calls, step.reprompts, step.milliseconds, step.model) == (calls, 1, 3.0, model)


@pytest.mark.parametrize(("told", "cached"), [((None, None), None), ((0, None), 0), ((3, 4), 7)])
def test_what_servers_had_in_caches_is_summed(told: tuple[int | None, int | None], cached: int | None) -> None:
    usages = [Usage(input_tokens=10, cached_tokens=one) for one in told]
    replies = tuple(TimedReply(text="", model="m", usage=usage, milliseconds=1) for usage in usages)
    step = step_of("extract", "extract-1", Answer(value="", dropped=(), replies=replies))
    assert (step.cached_tokens, (usages[0] + usages[1]).cached_tokens) == (cached, cached)
    assert ("cached_tokens" in step.model_dump()) == (cached is not None)
