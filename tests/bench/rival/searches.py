"""Searches of both sides, in the same texts with the same vectors."""

import json
import random
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Final
from uuid import uuid4

from psycopg import AsyncConnection

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.vector import Vector
from tests.bench.environment import Environment, Servers
from tests.bench.query_speed import LIMIT, asked_fact, project_log, question_of
from tests.bench.rival.comparison import SearchFigures
from tests.bench.rival.mem0_process import mem0_process
from tests.bench.sample_commits import DIMENSIONS, FACTS_PER_COMMIT, FACTS_PER_USER, MODEL, fact_text, fill_log
from tests.bench.statistics import Percentiles
from tests.support.databases import fresh_database
from tests.support.servers.openai_server import hash_embeddings

_FILL: Final = "COPY mem0 (id, vector, payload) FROM STDIN"


def users(facts: int, questions: int) -> list[int]:
    """Whose memories are searched in."""
    chance = random.Random(questions)
    return [chance.randrange(facts // FACTS_PER_USER) for _ in range(questions)]


async def own_searches(arena: Environment, facts: int, questions: int) -> SearchFigures:
    """Raises RuntimeError where the query could not be embedded."""
    await project_log(arena, await fill_log(arena, facts, _vector))
    waits, texts = [], []
    asked = users(facts, questions)
    async with AsyncMemoryClient.from_settings(arena.settings) as client:
        await client.search(question_of(asked[0]), user_id=f"user{asked[0]}")
        for user in asked:
            started = time.perf_counter()
            result = await client.search(question_of(user), user_id=f"user{user}", top_k=LIMIT)
            waits.append((time.perf_counter() - started) * 1000)
            texts.append([hit.fact.text for hit in result])
            if result.mode != "hybrid":
                raise RuntimeError(f"a search by words alone: {result.notice}")
    return search_figures(waits, texts, asked)


async def rival_searches(servers: Servers, base_url: str, facts: int, questions: int) -> SearchFigures:
    asked = users(facts, questions)
    with fresh_database(servers.postgres) as database:
        pairs = [(f"user{user}", question_of(user)) for user in asked]
        job = {"task": "search", "postgres": database, "base_url": base_url, "questions": pairs}
        async with mem0_process(job, servers.folder, "mem0-search") as running:
            await _fill(database, facts)
            found = await running.ask()
    return search_figures(found["waits"], found["texts"], asked)


def search_figures(waits: Sequence[float], texts: Sequence[Sequence[str]], asked: Sequence[int]) -> SearchFigures:
    """From the milliseconds and the hits of each search. Raises ValueError for different lengths."""
    right = [found[:1] == [asked_fact(user)] for found, user in zip(texts, asked, strict=True)]
    return SearchFigures(waits=Percentiles.of(waits), hits=fmean(map(len, texts)), found=fmean(right))


def _vector(text: str) -> Vector:
    return Vector.from_values(MODEL, hash_embeddings([text], DIMENSIONS)[0])


async def _fill(database: str, facts: int) -> None:
    """Rows as mem0 writes them, into the table and the indexes that it has made."""
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        async with connection.cursor() as cursor, cursor.copy(_FILL) as rows:
            for number in range(facts):
                user = number % (facts // FACTS_PER_USER)
                turn, place = divmod(number // (facts // FACTS_PER_USER), FACTS_PER_COMMIT)
                text = fact_text(user, turn, place)
                payload = {"data": text, "text_lemmatized": text, "user_id": f"user{user}", "attributed_to": "user"}
                vector = json.dumps(hash_embeddings([text], DIMENSIONS)[0])
                await rows.write_row((uuid4(), vector, json.dumps(payload)))
        await connection.execute("VACUUM (ANALYZE) mem0")
