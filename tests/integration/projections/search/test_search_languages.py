"""Words in other forms, in languages with and without spaces, and in every field of a fact."""
# ruff: noqa: RUF001 -- words of many languages

from typing import Any, Final

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import FIELD_WEIGHTS, SearchOptions, search
from tests.support.builders.commits import ALICE, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE: Final = ScopeFilter.of_scope(ALICE)
NOW: Final = day(100)
FORMER_WORDS: Final = "UPDATE facts SET words = to_tsvector('english', text) || to_tsvector('simple', text)"


async def scores(db: ProjectedDatabase, question: str, **options: Any) -> dict[str, float | None]:
    found = await search(db.conn, MINE, question, None, SearchOptions.read(options), at=NOW)
    return {hit.fact.text: hit.score.text_score for hit in found}


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("Anna has two cats and a dog.", "a cat"),
        ("Anna hat zwei Katzen und einen Hund.", "Wie heißt die Katze?"),
        ("Anna hat zwei Katzen und einen Hund.", "Hunde"),
        ("Vive en Madrid con sus gatos.", "¿Tiene Ana un gato?"),
        ("Elle habite à Lyon avec deux chevaux.", "Où est son cheval ?"),
        ("Ela trabalha como professora em Lisboa.", "Quando trabalhavam?"),
        ("Vive a Roma con i suoi gatti.", "Ha un gatto?"),
        ("Анна живёт в Москве с двумя кошками.", "Где кошка?"),
        ("Ze woont in Utrecht met haar katten.", "Waar is de kat?"),
        ("Hon bor i Lund och har två hundar.", "Var är hunden?"),
        ("Η Άννα μένει στην Αθήνα με τις γάτες της.", "γάτα"),
        ("تسكن آنا في القاهرة مع كتبها", "كتب"),
        ("Mieszka w Krakowie z kotem.", "Krakowie"),
        ("Likes tea.", "Tea, likes?"),
    ],
)
async def test_another_form_of_a_word_finds_the_fact(db: ProjectedDatabase, fact: str, question: str) -> None:
    await db.apply(commit("1", added(fact)), commit("2", added("42 Zyxw.")))
    assert list(await scores(db, question)) == [fact]


@pytest.mark.parametrize(
    ("facts", "question"),
    [
        (("私は東京に住んでいます。", "犬が好きです。"), "東京"),
        (("私は東京に住んでいます。", "犬が好きです。"), "東京に住んでいる人は誰ですか？"),
        (("カタカナのコーヒーが好き。", "犬を飼っている。"), "コーヒー"),
        (("我养了一只狗", "她住在北京"), "你的狗叫什么名字"),
        (("她住在北京", "我养了一只狗"), "北京"),
        (("나는 서울에 살고 있어요", "개를 키워요"), "서울"),
        (("ฉันอาศัยอยู่ในกรุงเทพ", "เขาชอบแมว"), "กรุงเทพ"),
        (("ຂ້ອຍຢູ່ວຽງຈັນ", "ລາວມັກແມວ"), "ວຽງຈັນ"),
    ],
)
async def test_words_are_found_where_no_space_is_between_them(
    db: ProjectedDatabase, facts: tuple[str, str], question: str
) -> None:
    await db.apply(commit("1", *map(added, facts)))
    assert list(await scores(db, question))[:1] == [facts[0]]
    assert len(await scores(db, question)) == 1


@pytest.mark.parametrize("question", ["qué", "«word»", "école", "don", "home"])
async def test_signs_are_no_letters(db: ProjectedDatabase, question: str) -> None:
    await db.apply(commit("1", added("¿Qué «word» l’école don’t …home_city"), added("other")))
    assert len(await scores(db, question)) == 1


async def test_a_word_counts_by_the_field_that_has_it(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("The violin.")),
        commit("2", added("By search text.", search_text="Plays the violins.")),
        commit("3", added("By key.", key="violin")),
        commit("4", added("By value.", key="instrument", value="violin")),
        commit("5", added("By excerpt.", excerpt="I play the violin!")),
        commit("6", added("By all of them: violin.", search_text="violin", value="violin", excerpt="violin")),
        commit("7", added("By none.")),
    )
    text, search_text, value, excerpt = FIELD_WEIGHTS
    assert await scores(db, "violins") == pytest.approx(
        {
            "The violin.": text,
            "By all of them: violin.": text,
            "By search text.": search_text,
            "By key.": value,
            "By value.": value,
            "By excerpt.": excerpt,
        }
    )


async def test_rows_of_the_version_before_are_found_by_their_words(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("She plays violins.")))
    await db.conn.execute(FORMER_WORDS)
    assert await scores(db, "violin") == {"She plays violins.": 1.0}


@pytest.mark.parametrize("letters", ["a", "é", "東", "ก", "가", "\U0001f600"])
async def test_a_text_of_any_size_is_stored(db: ProjectedDatabase, letters: str) -> None:
    """With as many different words as it can have: a tsvector holds 1 MiB."""
    first = ord(letters)
    many = " ".join(f"{chr(first + number % 500)}{letters}{number}" for number in range(30_000))
    fact = added(f"tea {many}", search_text=f"x{many}", key="drink", value=f"y{many}", excerpt=f"z{many}")
    await db.apply(commit("1", fact))
    assert len(await scores(db, "tea")) == 1


async def test_a_character_of_a_script_without_spaces_leaves_the_rest_of_a_long_text(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added(f"東 {'word ' * 3000} tandem")))
    assert len(await scores(db, "tandem")) == 1


@pytest.mark.parametrize(
    "words", [[f"w{1300 - number}" for number in range(300)], [chr(0x4E00 + 300 - number) for number in range(300)]]
)
async def test_of_a_long_question_the_first_words_count(db: ProjectedDatabase, words: list[str]) -> None:
    """Not those that come first by their letters."""
    await db.apply(commit("1", added(words[0]), added(words[255]), added(words[-1])))
    question = ("" if len(words[0]) == 1 else " ").join(words)
    assert set(await scores(db, question)) == {words[0], words[255]}
