"""A sentence in another language than English is a fact in its own words, and ends or replaces no other."""

from datetime import UTC, datetime

import pytest

from mnemolog.streams.llm.resolve_prompt import parse_resolution, question_prompt
from mnemolog.streams.offline.extract import read_turn
from mnemolog.streams.offline.model import RuleModel
from mnemolog.streams.offline.sentences import is_english
from tests.support.builders.prompts import MONDAY, known_fact, turn, user
from tests.support.builders.questions import number_conflicts

SAID = [
    *("Ich wohne in Köln.", "Meine Schwester heißt Lena.", "Ich arbeite nicht mehr bei Siemens."),
    *("Tom und ich haben uns getrennt.", "Alle nennen meine Tante Gretel.", "Vivo en Madrid."),
    *("Ya no trabajo en Iberia.", "J'habite à Lyon.", "Ma sœur Zoé travaille chez Airbus.", "Mon chat est mort."),
    *("Abito a Roma con mia sorella Eva.", "Il mio cane si chiama Fido.", "Já não sou vegetariano."),
    *("Я живу в Москве.", "Мою сестру зовут Анна.", "私は東京に住んでいます。", "もう肉を食べません。", "我住在北京。"),
]
LATER = [
    ("Ich wohne in Köln.", "Ich bin von Köln nach Ulm gezogen."),
    ("Meine Frau heißt Lea.", "Lea ist nicht mehr meine Frau."),
    ("Bebo mucho café.", "Ya no bebo café."),
    ("J'ai une moto.", "J'ai vendu ma moto."),
    ("Я ем мясо.", "Я не ем мясо."),
    ("肉を食べます。", "肉を食べません。"),
]


@pytest.mark.parametrize("said", SAID)
def test_a_sentence_is_kept_in_its_own_words(said: str) -> None:
    facts, omitted = read_turn(turn(user(said), speaker="Ana"))
    assert omitted == []
    (fact,) = facts
    assert (fact.text, fact.excerpt, fact.subject) == (f"Ana: {said}", said, "Ana")
    assert (fact.key, fact.value, fact.entities, fact.relations) == (None, None, (), ())
    assert (fact.action_hint, fact.certainty, fact.category) == ("new", "explicit", "other")


def test_its_dates_are_noted_and_its_names_are_not_known_in_the_sentences_that_follow() -> None:
    (fact,), _ = read_turn(turn(user("Ich war gestern beim Arzt."), occurred_at=datetime(2026, 3, 2, tzinfo=UTC)))
    assert fact.text == "The user: Ich war gestern (2026-03-01) beim Arzt."
    assert fact.event_time == datetime(2026, 3, 1, tzinfo=UTC)
    facts, _ = read_turn(turn(user("Ich traf gestern Inka. Inka called."), speaker="Ana"))
    assert [fact.entities for fact in facts] == [(), ()]


@pytest.mark.parametrize(("known", "said"), [*LATER, *((later, earlier) for earlier, later in LATER)])
async def test_what_denies_or_changes_another_leaves_both(known: str, said: str) -> None:
    assert await verdict(known, said) in ("ADD", "SIMILAR")


@pytest.mark.parametrize("said", [known for known, _ in LATER if " " in known])
async def test_the_same_words_are_one_fact(said: str) -> None:
    assert await verdict(said, said) == "KEEP"


async def verdict(known: str, said: str) -> str:
    (old,), _ = read_turn(turn(user(known), speaker="Ana"))
    new, _ = read_turn(turn(user(said), speaker="Ana"))
    candidate = known_fact(1, old.text, excerpt=old.excerpt, subject=old.subject)
    conflicts = number_conflicts([(fact, (candidate,)) for fact in new], said_at=MONDAY)
    reply = await RuleModel().complete(question_prompt(conflicts))
    parsed = parse_resolution(reply.text, conflicts)
    assert parsed.value is not None
    (decision,) = parsed.value
    return decision.verdict


@pytest.mark.parametrize(
    "said",
    [
        *("Mia called.", "No problem!", "Me too.", "Rex died.", "Tom moved to La Paz.", "I read Le Monde.", "Vegan."),
        *("I met Анна in Bern.", "We die hard.", "My son hat a hat.", "Ok.", "42", "The war is over.", "Go on, do."),
    ],
)
def test_english_with_foreign_names_and_words_is_english(said: str) -> None:
    assert is_english(said)
