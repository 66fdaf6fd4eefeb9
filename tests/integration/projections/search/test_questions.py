"""What a search makes of the words of its question: any text, in many languages, with names and stop words."""
# ruff: noqa: RUF001 -- words of many languages

import time
from collections.abc import Sequence
from typing import Any, Final

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import FIELD_WEIGHTS, Findings, SearchOptions, search
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, Draft, added, commit, day, vector_with_similarity
from tests.support.cases.questions import QUESTIONS, SECONDS
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE: Final = ScopeFilter.of_scope(ALICE)
ASKED: Final = vector_with_similarity(1)


async def found(db: ProjectedDatabase, question: str, scope: ScopeFilter = MINE, **options: Any) -> Findings:
    return await search(db.conn, scope, question, None, SearchOptions.read(options), at=day(9))


async def texts(db: ProjectedDatabase, question: str) -> list[str]:
    return [hit.fact.text for hit in await found(db, question)]


async def each_found(db: ProjectedDatabase, cases: Sequence[tuple[Sequence[Draft], str]]) -> list[Findings]:
    """What each question finds in a scope of its own with these facts."""
    scopes = [Scope(user_id=f"user {number}") for number in range(len(cases))]
    await db.apply(*(commit("1", *drafts, scope=scope) for (drafts, _), scope in zip(cases, scopes, strict=True)))
    return [
        await found(db, question, ScopeFilter.of_scope(scope))
        for (_, question), scope in zip(cases, scopes, strict=True)
    ]


async def test_any_text_is_plain_words_and_is_answered_in_bounded_time(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("tea", subject="O'Brien", vector=ASKED)), commit("2", added("tea"), scope=BOB))
    for name, text in QUESTIONS.items():
        for vector in (None, ASKED):
            started = time.perf_counter()
            hits = await search(db.conn, MINE, text, vector, SearchOptions(explain=True), at=day(9))
            assert time.perf_counter() - started < SECONDS, name
            assert {hit.fact.user_id for hit in hits} <= {"alice"}, name
            assert vector is None or len(hits) == 1, name


async def test_quotes_and_backslashes_are_found_as_what_they_are(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added(r"The share is \\server\it's-data here.")))
    assert await texts(db, r"\\server\it's-data")


async def test_a_question_that_is_too_long_ends_with_a_whole_word(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A car.")), commit("2", added("A carpet.")))
    filler = "word " * 1999
    assert await texts(db, f"{filler}x carpet") == []  # the first 10 000 characters end in "car"
    assert await texts(db, f"{filler}x car pet") == ["A car."]


@pytest.mark.parametrize(
    "words", [[f"w{1300 - number}" for number in range(300)], [chr(0x4E00 + 300 - number) for number in range(300)]]
)
async def test_of_a_long_question_the_first_words_count(db: ProjectedDatabase, words: list[str]) -> None:
    """Not those that come first by their letters."""
    await db.apply(commit("1", added(words[0]), added(words[255]), added(words[-1])))
    question = ("" if len(words[0]) == 1 else " ").join(words)
    assert set(await texts(db, question)) == {words[0], words[255]}


@pytest.mark.parametrize("first", ["東", "ก"])
async def test_a_long_question_is_read_once_for_all_names(db: ProjectedDatabase, first: str) -> None:
    people = (added(f"tea {number}", subject=f"Tom{number}", speaker=f"Ann{number}") for number in range(300))
    await db.apply(commit("1", *people))
    question = "Ann7 " + "".join(chr(ord(first) + number % 40) for number in range(9_990))
    started = time.perf_counter()
    hits = await found(db, f"{question} tea")
    assert time.perf_counter() - started < SECONDS
    assert hits[0].fact.speaker == "Ann7"


@pytest.mark.parametrize("letters", ["a", "東", "\U0001f600"])
async def test_a_text_of_any_size_is_stored_and_found(db: ProjectedDatabase, letters: str) -> None:
    """With as many different words as it can have: a tsvector holds 1 MiB."""
    first = ord(letters)
    many = " ".join(f"{chr(first + number % 500)}{letters}{number}" for number in range(30_000))
    fact = added(f"tea {many}", search_text=f"x{many}", key="drink", value=f"y{many}", excerpt=f"z{many}")
    await db.apply(commit("1", fact, added(f"東 {'word ' * 3000} tandem")))
    for question in ("tea", "tandem"):
        assert len(await texts(db, question)) == 1


OTHER_FORMS: Final = (
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
    ("Mira spielt Geige im Orchester.", "Wer spielt eigentlich Klavier?"),  # any of the words is enough
)
WITHOUT_SPACES: Final = (
    ("私は東京に住んでいます。", "犬が好きです。", "東京"),
    ("私は東京に住んでいます。", "犬が好きです。", "東京に住んでいる人は誰ですか？"),
    ("カタカナのコーヒーが好き。", "犬を飼っている。", "コーヒー"),
    ("我养了一只狗", "她住在北京", "你的狗叫什么名字"),
    ("她住在北京", "我养了一只狗", "北京"),
    ("나는 서울에 살고 있어요", "개를 키워요", "서울"),
    ("ฉันอาศัยอยู่ในกรุงเทพ", "เขาชอบแมว", "กรุงเทพ"),
    ("ຂ້ອຍຢູ່ວຽງຈັນ", "ລາວມັກແມວ", "ວຽງຈັນ"),
)
SIGNS: Final = "¿Qué «word» l’école don’t …home_city"


async def test_words_are_found_in_other_forms_and_where_no_space_is_between_them(db: ProjectedDatabase) -> None:
    cases = [
        *((fact, "42 Zyxw.", question) for fact, question in OTHER_FORMS),
        *WITHOUT_SPACES,
        *((SIGNS, "other", question) for question in ("qué", "«word»", "école", "don", "home")),
    ]
    hits = await each_found(db, [([added(fact), added(other)], question) for fact, other, question in cases])
    assert [[hit.fact.text for hit in one] for one in hits] == [[fact] for fact, _, _ in cases]


STOP_WORDS: Final = (
    ("Der Hund ist Bello, und die Katze Minka.", "Was ist die Quantenchromodynamik?", False),
    ("Der Hund ist Bello, und die Katze Minka.", "Wie heißt der Hund von Jonas?", True),
    ("Le chat est dans la cuisine, et que.", "Qu'est-ce que la chromodynamique dans le vide ?", False),
    ("Le chat est dans la cuisine, et que.", "Où est le chat ?", True),
    ("El perro es de la casa de los Ruiz.", "¿Qué es la cromodinámica de los quarks?", False),
    ("El perro es de la casa de los Ruiz.", "¿De quién es el perro?", True),
    ("The son is called Max, of course.", "What is the theory of everything?", False),
    ("The son is called Max, of course.", "What is the name of her son?", True),
    *(("Ann's son wears a red hat.", question, True) for question in ("hat size", "son", "her son", "hat")),
    ("This is the one.", "is the", True),  # where there is nothing else
    ("This is the one.", "is the tea", False),
)


async def test_the_stop_words_of_a_question_are_those_of_its_language(db: ProjectedDatabase) -> None:
    hits = await each_found(db, [([added(fact)], question) for fact, question, _ in STOP_WORDS])
    assert [len(one) == 1 for one in hits] == [is_found for _, _, is_found in STOP_WORDS]


NAMED: Final = (
    ("Alice", "Where is Alice?"),
    ("alice", "ALICE'S HOME"),
    ("Alice", "Où habite l'amie d'Alice ?"),
    ("Alice", "la maison d’Alice"),
    ("Dr. Smith", "When does Dr. Smith come?"),
    ("Dr. Smith", "dr smith's office"),
    ("James", "Is this James' car?"),
    ("James", "James’s car"),
    ("O'Neil", "Who is O’Neil?"),
    ("O’Neil", "O'Neil's dog"),
    ("Anne-Marie", "Where does Anne-Marie live?"),
    ("Anne-Marie", "Anne Marie’s home"),
    ("Anne Marie", "Anne‑Marie"),
    ("Peter", "Wo steht Peters Auto?"),
    ("Anna", "Annas Hund"),
    ("Анна", "Где кошка Анны?"),
    ("田中", "田中さんはどこ"),
    ("José", "¿Dónde vive José?"),
    ("@bob", "what does (bob) say"),
)
NOT_NAMED: Final = (
    ("Ann", "Where is Annabel's home?"),
    ("Al", "the Alps"),
    ("Dr. Smith", "Where is Dr. Smithson?"),
    ("Dr. Smith", "Smith saw the Dr."),
    ("Anne-Marie", "Where is Anne?"),
    ("...", "Who is ...?"),
)


async def test_a_name_is_recognised_and_another_word_is_none(db: ProjectedDatabase) -> None:
    cases = [([added("Lives in Bern.", subject=name)], question) for name, question in (*NAMED, *NOT_NAMED)]
    recognised = [any(hit.score.names_part > 0 for hit in hits) for hits in await each_found(db, cases)]
    assert recognised == [True] * len(NAMED) + [False] * len(NOT_NAMED)


async def test_a_name_in_the_question_is_a_signal_of_its_own(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Lives in Bern.", subject="Ann", vector=vector_with_similarity(0.2))),
        commit("2", added("Lives in Rome.", subject="Anna Maria", vector=vector_with_similarity(0.3))),
        commit("3", added("Lives in Oslo.", speaker="Tom", vector=vector_with_similarity(0.4))),
    )

    async def first(question: str, **more: Any) -> str:
        return (await search(db.conn, MINE, question, ASKED, SearchOptions.read(more), at=day(9)))[0].fact.text

    for fusion in ("rrf", "weighted"):
        assert await first("Where is Ann's home?", fusion=fusion, weights={"names": 1.0}) == "Lives in Bern."
    assert await first("ANNA MARIA: home?") == "Lives in Rome."
    assert await first("What does Tom say?") == "Lives in Oslo."
    assert await first("Where is Annabel's home?") == "Lives in Oslo."
    assert await texts(db, "Where is Ann's home?") == ["Lives in Bern."]
    assert (await found(db, "Where is Ann's home?", weights={"names": 0.0})).hits == ()


async def test_a_word_counts_by_the_field_that_has_it(db: ProjectedDatabase) -> None:
    drafts: dict[str, tuple[float | None, dict[str, Any]]] = {
        "The violin.": (FIELD_WEIGHTS[0], {}),
        "By search text.": (FIELD_WEIGHTS[1], {"search_text": "Plays the violins."}),
        "By key.": (FIELD_WEIGHTS[2], {"key": "violin"}),
        "By value.": (FIELD_WEIGHTS[2], {"key": "instrument", "value": "violin"}),
        "By excerpt.": (FIELD_WEIGHTS[3], {"excerpt": "I play the violin!"}),
        "All: violin.": (FIELD_WEIGHTS[0], {"search_text": "violin", "value": "violin", "excerpt": "violin"}),
        "By none.": (None, {}),
    }
    await db.apply(commit("1", *(added(text, **fields) for text, (_, fields) in drafts.items())))
    scores = {hit.fact.text: hit.score.text_score for hit in await found(db, "violins")}
    assert scores == pytest.approx({text: weight for text, (weight, _) in drafts.items() if weight is not None})
