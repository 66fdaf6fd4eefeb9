"""Names in questions: with signs, in possessive forms, and with the endings of a language."""
# ruff: noqa: RUF001 -- words of many languages

from typing import Any, Final

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.support.builders.commits import ALICE, added, commit, day, vector_with_similarity
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE: Final = ScopeFilter.of_scope(ALICE)
ASKED: Final = vector_with_similarity(1)


async def is_named(db: ProjectedDatabase, name: str, question: str) -> bool:
    await db.apply(commit("1", added("Lives in Bern.", subject=name)))
    found = await search(db.conn, MINE, question, None, at=day(9))
    return any(hit.score.names_part > 0 for hit in found)


@pytest.mark.parametrize(
    ("name", "question"),
    [
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
    ],
)
async def test_a_name_is_recognised(db: ProjectedDatabase, name: str, question: str) -> None:
    assert await is_named(db, name, question)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Ann", "Where is Annabel's home?"),
        ("Al", "the Alps"),
        ("Dr. Smith", "Where is Dr. Smithson?"),
        ("Dr. Smith", "Smith saw the Dr."),
        ("Anne-Marie", "Where is Anne?"),
        ("...", "Who is ...?"),
    ],
)
async def test_another_word_is_no_name(db: ProjectedDatabase, name: str, question: str) -> None:
    assert not await is_named(db, name, question)


async def test_a_name_in_the_question_is_a_signal_of_its_own(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Lives in Bern.", subject="Ann", vector=vector_with_similarity(0.2))),
        commit("2", added("Lives in Rome.", subject="Anna Maria", vector=vector_with_similarity(0.3))),
        commit("3", added("Lives in Oslo.", speaker="Tom", vector=vector_with_similarity(0.4))),
    )

    async def first(question: str, **more: Any) -> str:
        (hit, *_) = await search(db.conn, MINE, question, ASKED, SearchOptions.read(more), at=day(9))
        return hit.fact.text

    async def by_words(question: str, **more: Any) -> list[str]:
        return [
            hit.fact.text for hit in await search(db.conn, MINE, question, None, SearchOptions.read(more), at=day(9))
        ]

    for fusion in ("rrf", "weighted"):
        assert await first("Where is Ann's home?", fusion=fusion, weights={"names": 1.0}) == "Lives in Bern."
    assert await first("ANNA MARIA: home?") == "Lives in Rome."
    assert await first("What does Tom say?") == "Lives in Oslo."
    assert await first("Where is Annabel's home?") == "Lives in Oslo."
    assert await by_words("Where is Ann's home?") == ["Lives in Bern."]
    assert await by_words("Where is Ann's home?", weights={"names": 0.0}) == []
