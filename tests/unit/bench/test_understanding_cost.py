"""The comparison is with stages that do nothing for entities and relations, and everything else."""

from mnemolog.streams.llm.extract_prompt import system_text
from mnemolog.streams.llm.ports import ExtractionTask
from mnemolog.streams.offline.extract import read_turn
from tests.bench.understanding_cost import NAMES_ASKED, named_reply, named_turns, without_entities
from tests.support.servers.canned_replies import ChatRequest

TURNS = list(named_turns("u"))


def named_in_facts() -> tuple[list[str], int]:
    """The texts of the facts, and how many entities and relations they name."""
    facts = [fact for turn in TURNS for fact in read_turn(turn)[0]]
    return [fact.text for fact in facts], sum(len(fact.entities) + len(fact.relations) for fact in facts)


def prompt() -> str:
    return system_text(ExtractionTask(turn=TURNS[0], categories=("other",)))


def test_the_rules_and_the_prompt_are_without_entities_and_else_the_same() -> None:
    texts, named = named_in_facts()
    whole = prompt()
    with without_entities():
        assert named_in_facts() == (texts, 0)
        short = prompt()
    assert named > len(TURNS)
    assert prompt() == whole
    assert NAMES_ASKED in whole
    assert NAMES_ASKED not in short
    assert short.endswith(whole[whole.index("\n\nExample") :])
    assert whole.startswith(short[: short.index("\n\nExample")])


def test_the_model_names_entities_where_it_is_asked_to() -> None:
    said = TURNS[0].messages[0].content
    for system, is_asked in ((NAMES_ASKED, True), ("", False)):
        question = f"turn_id: one\nconversation:\nuser (Alice): {said}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        reply = named_reply(ChatRequest({"messages": messages}))
        assert ("Ana Keller" in reply, '"relations"' in reply) == (True, is_asked)
