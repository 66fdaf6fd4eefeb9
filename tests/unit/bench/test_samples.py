from itertools import islice

from mnemolog.schemas.vector import cosine_similarity
from mnemolog.streams.llm.openai_models import normalized
from mnemolog.streams.stages.effective_settings import MEMLIB_DEFAULTS
from tests.bench.samples import UPDATE_EVERY, commits, turns
from tests.support.servers.openai_server import hash_embeddings

USERS = 10
TURNS = list(islice(turns(users=USERS), 100))


def test_turns_are_the_same_at_each_call_one_user_after_another_with_one_and_a_half_facts_each() -> None:
    assert list(islice(turns(users=USERS), 100)) == TURNS
    assert [turn.scope.user_id for turn in TURNS[: USERS + 1]] == [*(f"user{user}" for user in range(USERS)), "user0"]
    assert len({turn.turn_id for turn in TURNS}) == 100
    assert sum(message.role == "user" for turn in TURNS for message in turn.messages) == 150


def test_only_changed_facts_are_in_the_conflict_zone() -> None:
    contested = 0
    for user in range(USERS):
        texts = [turn.messages[0].content for turn in TURNS if turn.scope.user_id == f"user{user}"]
        vectors = [normalized(values) for values in hash_embeddings(texts, 1536)]
        for place, vector in enumerate(vectors):
            nearest = max((cosine_similarity(vector, earlier) for earlier in vectors[:place]), default=0)
            assert nearest < MEMLIB_DEFAULTS.duplicate
            contested += nearest >= MEMLIB_DEFAULTS.conflict
    assert contested == (100 - USERS) / UPDATE_EVERY


def test_a_log_has_as_many_facts_as_asked_for() -> None:
    made = list(commits(1000))
    assert sum(len(one.events) for one in made) == 1000
    assert len({one.owner for one in made}) == 10
    assert len({(one.owner, one.source_id) for one in made}) == len(made)
