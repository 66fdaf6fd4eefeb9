import asyncio
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp
from langgraph.store.memory import InMemoryStore

from mnemolog.adapters.langgraph import MnemologStore
from mnemolog.errors import InvalidArgumentError
from mnemolog.testing import InMemoryClient

ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("notes", "work"), "a", {"text": "The server is called Otto.", "rank": 3}),
    (("notes", "work"), "A", {"text": "The server is called Otto.", "rank": 1}),
    (("notes", "home"), "c-d", {"text": "The cat is fed at six.", "tags": ["cat"], "deep": {"one": 1}}),
    (("notes",), "b c", {"rank": 2.5, "done": False}),
    (("other",), "a", {}),
]
QUERIES: list[dict[str, Any]] = [
    {},
    {"filter": {"rank": 3}},
    {"filter": {"rank": {"$ne": 3}, "text": {"$eq": "The server is called Otto."}}},
    {"filter": {"deep": {"one": 1}}},
    {"limit": 1},
    {"limit": 2, "offset": 1},
    {"limit": 2, "offset": 9},
]


@pytest.fixture
def store(memory: InMemoryClient) -> MnemologStore:
    return MnemologStore(memory.scope(user_id="ann"))


def filled(store: BaseStore) -> BaseStore:
    for namespace, key, value in ITEMS:
        store.put(namespace, key, value)
    return store


def test_items_are_those_of_the_store_in_memory_of_langgraph(store: MnemologStore) -> None:
    ours, theirs = filled(store), filled(InMemoryStore())
    for namespace, key, value in ITEMS:
        item = ours.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, value)
    for namespace, key in ((("notes",), "a"), (("notes", "work"), "b c"), (("none",), "c-d"), (("notes", "work"), "*")):
        assert ours.get(namespace, key) is None

    def names(found: Any) -> set[tuple[Any, str]]:
        return {(item.namespace, item.key) for item in found}

    for prefix in ((), ("notes",), ("notes", "work"), ("notes", "wor"), ("none",)):
        for query in QUERIES:
            found, wanted = ours.search(prefix, **query), theirs.search(prefix, **query)
            assert len(found) == len(wanted)
            if "limit" not in query:
                assert names(found) == names(wanted)
    for asked in ({}, {"prefix": ("notes",)}, {"suffix": ("work",)}, {"prefix": ("*", "home")}, {"max_depth": 1}):
        assert ours.list_namespaces(**asked) == theirs.list_namespaces(**asked)  # type: ignore[arg-type] # a table


def test_a_put_replaces_and_a_deletion_removes(store: MnemologStore) -> None:
    values: list[dict[str, Any]] = [{"text": "Otto"}, {"text": "Otto", "n": 1}, {"text": "Anna"}, {"text": "Otto"}]
    made = None
    for value in values:
        store.put(("notes",), "a", value)
        item = store.get(("notes",), "a")
        assert item is not None
        assert item.value == value
        made = made or item.created_at
        assert item.created_at == made <= item.updated_at
    assert len(store.search(("notes",))) == 1
    store.delete(("notes",), "a")
    store.delete(("notes",), "never")
    assert store.get(("notes",), "a") is None
    store.put(("notes",), "a", {"text": "Otto"})
    assert store.get(("notes",), "a") is not None


def test_the_later_one_of_two_that_were_put_at_once_is_the_item(memory: InMemoryClient, store: MnemologStore) -> None:
    for text in ("first", "second"):
        metadata = {
            "namespace": ["notes"],
            "key": "a",
            "value": {"text": text},
            "created_at": "2026-01-01T00:00:00+00:00",
        }
        memory.add(text, infer=False, metadata=metadata, user_id="ann", run_id="notes", app_id="a")
    item = store.get(("notes",), "a")
    assert item is not None
    assert [one.value for one in store.search(("notes",))] == [item.value] == [{"text": "second"}]
    store.delete(("notes",), "a")
    assert store.get(("notes",), "a") is None


def test_a_query_orders_by_what_is_alike(store: MnemologStore) -> None:
    found = filled(store).search(("notes",), query="When is the cat fed?")
    assert found[0].key == "c-d"
    assert found[0].score is not None
    assert [item.key for item in store.search(("notes",), query="server", filter={"rank": {"$gt": 2}})] == ["a", "b c"]


def test_users_are_kept_apart_by_a_label_of_the_namespace(memory: InMemoryClient) -> None:
    store = MnemologStore(memory, user_at=1)
    store.put(("notes", "ann"), "a", {"text": "tea"})
    store.put(("notes", "bob"), "a", {"text": "milk"})
    assert [item.value for item in store.search(("notes", "bob"), query="tea")] == [{"text": "milk"}]
    assert len(store.search(("notes",))) == 2
    assert [fact.text for fact in memory.facts(user_id="ann", run_id="*", app_id="*")] == ["tea"]
    for namespace, key in ((("notes",), "a"), (("notes", "*"), "a"), (("notes", "ann"), "*"), (("notes", "ann"), "**")):
        for value in ({"text": "whose?"}, None):
            with pytest.raises(InvalidArgumentError, match="are named"):
                store.batch([PutOp(namespace, key, value)])
        assert store.get(namespace, key) is None
    assert len(store.search(("notes",))) == 2


def test_what_is_wrong_is_refused(store: MnemologStore) -> None:
    filled(store)
    with pytest.raises(InvalidArgumentError, match=r"\$near"):
        store.search(("notes",), filter={"n": {"$near": 1}})
    with pytest.raises(InvalidNamespaceError):
        store.batch([GetOp(("a.b",), "a")])
    with pytest.raises(NotImplementedError):
        store.put(("notes",), "a", {"n": 1}, ttl=5)


def test_values_are_compared_where_they_can_be(store: MnemologStore) -> None:
    filled(store)
    for condition, keys in (
        ({"$gte": 1, "$lt": 3}, {"A", "b c"}),
        ({"$gt": 2.5}, {"a"}),
        ({"$lte": 1}, {"A"}),
        ({"$gt": "x"}, set()),
    ):
        assert {item.key for item in store.search(("notes",), filter={"rank": condition})} == keys


async def test_a_graph_reads_what_it_put(store: MnemologStore) -> None:
    async def remember(_: dict[str, Any], *, store: BaseStore) -> dict[str, Any]:
        await asyncio.gather(*(store.aput(("notes",), str(number), {"n": number}) for number in range(3)))
        return {"seen": sorted(item.value["n"] for item in await store.asearch(("notes",)))}

    graph = StateGraph(dict)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    assert await graph.compile(store=store).ainvoke({}) == {"seen": [0, 1, 2]}
    read, _ = await store.abatch([GetOp(("notes",), "1"), PutOp(("notes",), "1", None)])
    assert read is not None
    assert await store.aget(("notes",), "1") is None
