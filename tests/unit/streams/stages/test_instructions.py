"""Instructions of a policy: they stand in the prompt, have a version in each step, and what is never stored is not."""

from collections.abc import Callable
from typing import Any

import pytest

from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.instructions import DescribedCategory, ForbiddenTopic, Instructions
from mnemolog.schemas.policy import EffectivePolicy, Policy
from mnemolog.schemas.turn import Message
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.llm.extract_prompt import prompt_part
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.extract_harness import ScriptedModel, extracted, turn

SALARY = ForbiddenTopic(
    name="salary", description="what anybody earns", words=("salary", "earn*", "给料", "給料"), keys=("income",)
)
TOLD = Instructions(
    text="Look for pets.",
    categories=(DescribedCategory(name="pet", description="animals that the user keeps"),),
    never_store=(SALARY, ForbiddenTopic(name="faith", categories=("religion_like",))),
    languages=("de", "en"),
)


async def instructed(told: Instructions | None, model: ScriptedModel, *said: str, infer: bool = True) -> ExtractedFacts:
    messages = tuple(Message(role="user", content=text) for text in said)
    return await extracted(model, turn(messages=messages, infer=infer), rules=EffectivePolicy(instructions=told))


def reply(*sentences: str, **fields: Any) -> str:
    return facts_reply(*(fact_json(text, excerpt=text, **fields) for text in sentences))


async def test_instructions_stand_behind_the_constant_text_of_the_prompt() -> None:
    plain, told = ScriptedModel(reply()), ScriptedModel(reply())
    await instructed(None, plain, "Hello there.")
    await instructed(TOLD, told, "Hello there.")
    before, after = (model.questions[0].messages[0].content for model in (plain, told))
    common = before[: before.index(", ".join(CATEGORIES))]
    assert after.startswith(common)
    assert after.endswith(prompt_part(TOLD))
    for words in (
        "- pet: animals that the user keeps",
        "- salary: what anybody earns",
        "one of de, en; otherwise in de",
    ):
        assert words in after
    assert "Look for pets." in after
    assert prompt_part(None) == prompt_part(Instructions()) == ""
    listed = ", ".join(CATEGORIES)
    assert before == after.removesuffix(prompt_part(TOLD)).replace(f"{listed}, pet", listed)


async def test_a_category_of_the_instructions_is_one_that_facts_may_have() -> None:
    output = await instructed(TOLD, ScriptedModel(reply("Mira has a dog.", category="pet")), "Mira has a dog.")
    assert [fact.category for fact in output.facts] == ["pet"]
    schema = ScriptedModel(reply())
    await instructed(TOLD, schema, "Mira has a dog.")
    assert "pet" in schema.questions[0].schema["properties"]["facts"]["items"]["properties"]["category"]["enum"]


@pytest.mark.parametrize(
    ("sentence", "fields"),
    [
        ("Mira has a SALARY of 5000 euros.", {}),
        ("Mira earned a lot last year.", {}),
        ("美良の給料は高い。", {}),
        ("Mira gets 5000 euros.", {"key": "income"}),
        ("Mira has a sa\u200bl\u00adary of 5000 euros.", {}),
        ("Mira has a s\u0430l\u0430ry of 5000 euros.", {}),
        ("Mira has a s\u00e1lar\u00fd of 5000 euros.", {}),
        ("Mira has a \uff53alary of 5000 euros.", {}),
        ("Mira knows my_salary.", {}),
        ("Mira has a second\u2011salary.", {}),
    ],
)
async def test_what_is_never_stored_leaves_no_words_behind(sentence: str, fields: dict[str, Any]) -> None:
    output = await instructed(TOLD, ScriptedModel(reply(sentence, **fields)), sentence)
    assert output.facts == ()
    (step,) = output.steps
    assert [(one.text, one.excerpt, one.reason) for one in step.dropped] == [("(withheld: salary)", "", "never_stored")]
    assert sentence not in output.model_dump_json()


async def test_words_are_whole_words_and_other_facts_are_kept() -> None:
    sentences = ("Mira learned Greek.", "Mira salarys.", "Mira has a salary.")
    output = await instructed(TOLD, ScriptedModel(reply(*sentences)), *sentences)
    assert [fact.text for fact in output.facts] == ["Mira learned Greek.", "Mira salarys."]


async def test_a_word_of_nothing_that_is_seen_withholds_nothing() -> None:
    unseen = ForbiddenTopic(name="unseen", words=("\u200b\u200c", "--", "\u00ad\u00ad*"))
    output = await instructed(Instructions(never_store=(unseen,)), ScriptedModel(reply("Mira sings.")), "Mira sings.")
    assert [fact.text for fact in output.facts] == ["Mira sings."]


async def test_neither_dropped_statements_nor_complaints_quote_what_is_never_stored() -> None:
    invented = facts_reply(fact_json("Mira has a salary.", excerpt="my salary is 5000"))
    output = await instructed(TOLD, ScriptedModel(invented), "Hello there.")
    (step,) = output.steps
    assert [one.text for one in step.dropped] == ["(withheld: salary)"]
    assert "5000" not in output.model_dump_json()
    plain = await instructed(None, ScriptedModel(invented), "Hello there.")
    assert "5000" in plain.model_dump_json()


async def test_neither_an_error_nor_a_note_has_a_word_of_a_reply() -> None:
    broken = facts_reply(fact_json("", excerpt="my salary is 5000", certainty={"my salary": 5000}))
    with pytest.raises(SourceEndedError) as ended:
        await instructed(TOLD, ScriptedModel(broken, broken), "Hello there.")
    assert ended.value.step is not None
    assert "5000" not in ended.value.detail + ended.value.step.model_dump_json()


async def test_raw_turns_are_held_to_it_too() -> None:
    output = await instructed(TOLD, ScriptedModel(), "I like tea.", "My salary is 5000.", infer=False)
    assert [fact.text for fact in output.facts] == ["I like tea."]
    (step,) = output.steps
    assert ([one.reason for one in step.dropped], step.instructions) == (["never_stored"], TOLD.version)


async def test_the_version_names_exactly_these_instructions() -> None:
    (step,) = (await instructed(TOLD, ScriptedModel(reply()), "Hello there.")).steps
    assert step.instructions == TOLD.version
    (step,) = (await instructed(None, ScriptedModel(reply()), "Hello there.")).steps
    assert step.instructions is None
    changes: list[Callable[[], Instructions]] = [
        lambda: TOLD.model_copy(update={"text": "Look for cats."}),
        lambda: TOLD.model_copy(update={"languages": ("en", "de")}),
        lambda: TOLD.model_copy(update={"never_store": ()}),
    ]
    assert len({TOLD.version, *(change().version for change in changes)}) == 4
    assert Instructions.model_validate_json(TOLD.model_dump_json()).version == TOLD.version


def test_a_scope_has_its_own_and_what_its_tenant_never_stores() -> None:
    faith = ForbiddenTopic(name="faith", words=("church",))
    tenant = Policy(instructions=Instructions(text="All.", never_store=(SALARY,)))
    scope = Policy(instructions=Instructions(text="Mine.", never_store=(faith, SALARY)))
    rules = EffectivePolicy().overlaid_by(tenant, "tenant").overlaid_by(scope, "scope")
    assert rules.instructions == Instructions(text="Mine.", never_store=(SALARY, faith))
    assert EffectivePolicy().overlaid_by(tenant, "tenant").overlaid_by(Policy(), "scope").instructions == (
        tenant.instructions
    )


@pytest.mark.parametrize(
    "given",
    [
        {"languages": ["German"]},
        {"never_store": [{"name": "x", "words": ["*"]}]},
        {"never_store": [{"name": "x", "words": ["a b*c"]}]},
        {"categories": [{"name": "pet", "description": "two\nlines"}]},
        {"text": "x" * 4001},
        {"unknown": 1},
    ],
)
def test_instructions_that_mean_nothing_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Instructions.model_validate(given)
