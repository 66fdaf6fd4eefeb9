from itertools import islice

from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import cosine_similarity
from mnemolog.streams.llm.openai_models import normalized
from mnemolog.streams.runtime.effective_settings import MEMLIB_DEFAULTS
from tests.bench.sample_commits import commits
from tests.bench.sample_turns import UPDATE_EVERY, turns
from tests.support.servers.openai_server import hash_embeddings

USERS = 10
COUNT = 100


def said(given: list[Turn], user: int) -> list[str]:
    return [turn.messages[0].content for turn in given if turn.scope.user_id == f"user{user}"]


def near(one: str, other: str) -> float:
    return cosine_similarity(*map(normalized, hash_embeddings([one, other], 1536)))


def test_turns_are_the_same_at_each_call_and_one_user_after_another() -> None:
    given = list(islice(turns(users=USERS), COUNT))
    assert given == list(islice(turns(users=USERS), COUNT))
    assert [turn.scope.user_id for turn in given[: USERS + 1]] == [*(f"user{user}" for user in range(USERS)), "user0"]
    assert len({turn.turn_id for turn in given}) == COUNT


def test_each_turn_has_one_and_a_half_facts_on_average() -> None:
    given = list(islice(turns(users=USERS), COUNT))
    assert sum(message.role == "user" for turn in given for message in turn.messages) == COUNT * 1.5


def test_only_changed_facts_are_in_the_conflict_zone() -> None:
    given = list(islice(turns(users=USERS), COUNT))
    contested = 0
    for user in range(USERS):
        texts = said(given, user)
        for place, text in enumerate(texts):
            nearest = max((near(text, earlier) for earlier in texts[:place]), default=0)
            assert nearest < MEMLIB_DEFAULTS.duplicate
            contested += nearest >= MEMLIB_DEFAULTS.conflict
    assert contested == (COUNT - USERS) / UPDATE_EVERY


def test_a_log_has_as_many_facts_as_asked_for() -> None:
    made = list(commits(1000))
    assert sum(len(one.events) for one in made) == 1000
    assert len({one.owner for one in made}) == 10
    assert len({(one.owner, one.source_id) for one in made}) == len(made)
