"""What holds for every message: nothing raises, nothing is lost, and only what is certain ends a fact."""

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.resolve_prompt import number_conflicts
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.model import RuleModel
from mnemolog.streams.offline.resolve import judge
from mnemolog.streams.offline.sentences import sentences
from mnemolog.streams.offline.slots import slot_statements
from tests.support.builders.prompts import MONDAY, extraction, known_fact, turn, user

WORDS = (
    *(
        "I",
        "we",
        "my",
        "Ich",
        "je",
        "live",
        "in",
        "Bern",
        "Rome",
        "work",
        "at",
        "Acme",
        "not",
        "no longer",
        "and",
        "if",
    ),
    *(
        "would",
        "dog",
        "called",
        "Rex",
        "am",
        "allergic",
        "to",
        "nuts",
        "yesterday",
        "until Friday",
        "?",
        "!",
        ".",
        ",",
        "\n",
    ),
    *(
        '"',
        "haha",
        "please",
        "maybe",
        "moved",
        "from",
        "now",
        "died",
        "never",
        "3",
        "May",
        "> ",
        "- ",
        "```",
        "Tom:",
        "。",
    ),
)
BULLET = re.compile(r"^\s*(?:\[[ xX]\]|\d{1,2}[.)]|[-*•+])\s*(?:\[[ xX]\]\s+)?", re.MULTILINE)
TALK = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
MESSAGES = TALK | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=400)


def letters(text: str) -> str:
    return "".join(sign for sign in text if sign.isalnum())


@given(MESSAGES)
def test_every_letter_is_in_a_sentence(content: str) -> None:
    """The signs of lists are no words of a sentence."""
    found = list(sentences(content))
    texts, bullets = "".join(letters(one.text) for one in found), "".join(BULLET.findall(content))
    rest = iter(letters(content))
    assert all(sign in rest for sign in texts)
    assert Counter(letters(content)) - Counter(texts) <= Counter(letters(bullets))


@given(MESSAGES)
@settings(deadline=None)
async def test_every_reply_is_valid_and_every_statement_survives(content: str) -> None:
    task = extraction(user(content, "Alice"))
    model = RuleModel()
    first, second = await model.complete(extraction_prompt(task)), await model.complete(extraction_prompt(task))
    parsed = parse_extraction(first.text, task)
    assert first.text == second.text
    assert parsed.value is not None
    assert parsed.complaints == ()
    facts, _ = read_turn(task.turn)
    kept = " ".join(letters(fact.excerpt) for fact in facts) + " ".join(letters(one.text) for one in parsed.dropped)
    stated = [one.text for one in sentences(content) if one.omitted is None]
    for word in re.findall(r"[^\W_]{4,}", " ".join(stated)):
        assert word in kept or len(facts) == 100 or word.casefold() in {"haha", "hello"}


@given(TALK, TALK)
@settings(deadline=None)
def test_only_what_is_certain_ends_a_fact(earlier: str, later: str) -> None:
    known = [
        known_fact(number, fact.text, key=fact.key, value=fact.value, subject=fact.subject, excerpt=fact.excerpt)
        for number, fact in enumerate(read_turn(turn(user(earlier), speaker="Alice"))[0], start=1)
    ]
    new = read_turn(turn(user(later), speaker="Alice"))[0]
    conflicts = number_conflicts([(fact, tuple(known)) for fact in new], said_at=MONDAY)
    for conflict, decision in zip(conflicts.conflicts, judge(conflicts), strict=True):
        if decision["action"] not in OVERWRITE_OF_VERDICT:
            continue
        ended = [one for label, one in conflict.candidates if label in decision["known"]]
        speaks_of_slots = bool(slot_statements(conflict.fact.excerpt, MONDAY))
        assert all(one.key is None or speaks_of_slots for one in ended)
        assert all(one.subject == "Alice" for one in ended)
