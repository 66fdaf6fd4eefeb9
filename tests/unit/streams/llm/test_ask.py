from dataclasses import dataclass, field

import pytest

from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.streams.llm.ask import REPROMPTS, Answer, ParsedReply, ask, step_of
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
        return ParsedReply(value=text, dropped=(DroppedStatement(text=text, reason="unfounded"),), notes=("read",))
    return ParsedReply(complaints=("bad",))


async def asked(*texts: str) -> tuple[ScriptedChatModel, Answer[str]]:
    model = ScriptedChatModel(list(texts))
    return model, await ask(model, PROMPT, parse_verdict)


@pytest.mark.parametrize("texts", [["good"], ["bad", "good"]], ids=str)
async def test_a_reply_that_cannot_be_read_is_asked_for_once_more(texts: list[str]) -> None:
    model, answer = await asked(*texts, "never asked")
    assert (answer.value, len(answer.dropped), answer.notes) == ("good", 1, ("read",))
    assert answer.complaints == ("bad",) * (len(texts) - 1)
    assert [reply.text for reply in answer.replies] == texts
    assert [attempt for _, attempt in model.prompts] == list(range(len(texts)))
    assert model.prompts[0][0] == PROMPT


async def test_a_re_prompt_says_what_was_wrong_with_the_reply() -> None:
    model, _ = await asked("bad" + "x" * 100_000, "good")
    prompt, _ = model.prompts[1]
    assert prompt.messages[:-2] == PROMPT.messages
    said, complaint = prompt.messages[-2:]
    assert (said.role, said.content) == ("assistant", "bad" + "x" * 19_997)
    assert complaint.role == "user"
    assert "- bad\n" in complaint.content
    assert (type(prompt), prompt.version, prompt.schema) == (type(PROMPT), PROMPT.version, PROMPT.schema)


@pytest.mark.parametrize("reprompts", [None, 0, 3])
async def test_it_gives_up_and_hands_over_what_was_paid(reprompts: int | None) -> None:
    calls = 1 + (REPROMPTS if reprompts is None else reprompts)
    model = ScriptedChatModel(["bad"] * calls + ["good"])
    with pytest.raises(ReplyInvalidError, match=f"after {calls} calls, the last one: bad") as caught:
        await ask(model, PROMPT, parse_verdict, reprompts=reprompts)
    assert [reply.text for reply in caught.value.replies] == ["bad"] * calls
    assert caught.value.complaints == ("bad",) * calls


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
