"""Names in questions: with signs, in possessive forms, and with the endings of a language."""
# ruff: noqa: RUF001 -- words of many languages

from typing import Final

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import search
from tests.support.builders.commits import ALICE, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE: Final = ScopeFilter.of_scope(ALICE)


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
