"""The real `openai` package against a server that fails in each way that servers do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mnemolog.streams.llm import openai_models
from mnemolog.streams.llm.calls import RetrySettings
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.openai_models import MAX_CHARACTERS, MAX_TEXTS, Endpoint, OpenAiChatModel, OpenAiEmbedder
from mnemolog.streams.llm.ports import BatchSuspectError, Prompt, PromptRefusedError
from mnemolog.streams.metrics import MODEL_ERRORS
from tests.support.builders.prompts import extraction, user
from tests.support.polling import eventually
from tests.support.servers.openai_server import OpenAiServer

PACE = RetrySettings(initial_delay=0.005, max_delay=0.02, failures_to_pause=4)


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        running.keep_bodies = True
        yield running


def counted_errors(model: str = "test-model") -> dict[str, float]:
    """How many calls of extraction have failed so far, by error."""
    samples = [sample for metric in MODEL_ERRORS.collect() for sample in metric.samples]
    return {
        sample.labels["error"]: sample.value
        for sample in samples
        if sample.name.endswith("_total") and (sample.labels["purpose"], sample.labels["model"]) == ("extract", model)
    }


def endpoint(server: OpenAiServer, pace: RetrySettings = PACE, *, timeout: float = 5.0) -> Endpoint:
    return Endpoint(base_url=server.base_url, api_key="k", timeout=timeout, retry=pace)


def prompt(said: str = "I live in Berlin.") -> Prompt:
    return extraction_prompt(extraction(user(said)))


async def complete(server: OpenAiServer, said: str = "I live in Berlin.", **options: Any) -> str:
    chat = OpenAiChatModel(endpoint(server), "test-model", **options)
    try:
        return (await chat.complete(prompt(said))).text
    finally:
        await chat.close()


async def embed(server: OpenAiServer, texts: list[str], **options: Any) -> list[tuple[float, ...]]:
    embedder = OpenAiEmbedder(endpoint(server), "test-embedding", **options)
    try:
        return [vector.values for vector in (await embedder.embed(texts)).vectors]
    finally:
        await embedder.close()


async def test_a_completion_is_asked_for_by_schema_and_counted(server: OpenAiServer) -> None:
    chat = OpenAiChatModel(endpoint(server), "test-model")
    question = prompt()
    reply = await chat.complete(question)
    await chat.close()
    (body,) = server.bodies
    assert body["temperature"] == 0
    assert body["seed"] == 0
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "extract", "strict": True, "schema": question.schema},
    }
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert reply.model == "test-model"
    assert reply.usage.input_tokens > 0 < reply.usage.output_tokens
    assert parse_extraction(reply.text, extraction(user("I live in Berlin."))).value


@pytest.mark.parametrize("form", ["json_object", "none"])
async def test_a_server_without_schemas_is_told_in_words(server: OpenAiServer, form: str) -> None:
    server.habits.one_system_message = True
    await complete(server, structured_output=form)
    (body,) = server.bodies
    assert body.get("response_format") == ({"type": "json_object"} if form == "json_object" else None)
    assert '"slot"' in body["messages"][0]["content"]


@pytest.mark.parametrize("names", ["temperature", "seed", "response_format", "temperature seed"])
async def test_a_parameter_that_a_server_refuses_is_sent_once(server: OpenAiServer, names: str) -> None:
    refused = {*names.split()}
    server.habits.refused = frozenset(refused)
    asked = endpoint(server)
    chat = OpenAiChatModel(asked, "test-model")
    for _ in range(3):
        assert "Berlin" in (await chat.complete(prompt())).text
    await chat.close()
    assert len(server.bodies) == 3 + len(refused)
    assert not any(refused & body.keys() for body in server.bodies[len(refused) :])
    assert '"slot"' in server.bodies[-1]["messages"][0]["content"] or "response_format" not in refused
    assert {*asked.problems} == {f"extract test-model ({name})" for name in refused}


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        *((names, "") for names in ("temperature", "seed", "response_format", "system", "seed response_format")),
        ("temperature seed system response_format", ""),
        ("temperature", "Your request for 'seed' is no good"),
    ],
)
async def test_a_parameter_that_a_server_refuses_without_its_name_is_found_by_the_probe(
    server: OpenAiServer, refused: str, words: str
) -> None:
    names = {*refused.split()}
    server.habits.refused, server.habits.silent = frozenset(names), True
    if words:  # which name another one
        server.fail(mode="as_is", status=400, body=words)
    asked = endpoint(server)
    left_out: Any = ("seed",) if words else ()
    chat = OpenAiChatModel(asked, "test-model", left_out=left_out)
    assert "Berlin" in (await chat.complete(prompt())).text
    assert {*asked.problems} == {f"extract test-model ({name})" for name in names}
    before = len(server.bodies)
    for _ in range(2):
        await chat.complete(prompt())
    assert before <= 10
    assert len(server.bodies) == before + 2
    assert '"slot"' in server.bodies[-1]["messages"][0]["content"] or "response_format" not in names
    await chat.close()


@pytest.mark.parametrize("refused", ["encoding_format", "dimensions", "dimensions encoding_format"])
async def test_so_is_one_of_embeddings(server: OpenAiServer, refused: str) -> None:
    server.habits.refused, server.habits.silent = frozenset(refused.split()), True
    asked = endpoint(server)
    embedder = OpenAiEmbedder(asked, "test-embedding", dimensions=1536)
    assert len((await embedder.embed(["a"])).vectors) == 1
    assert {*asked.problems} == {f"embed test-embedding ({name})" for name in refused.split()}
    await embedder.close()


@pytest.mark.parametrize("times", range(1, 8))
async def test_nothing_is_left_out_where_a_server_refuses_everything_for_a_while(
    server: OpenAiServer, times: int
) -> None:
    server.fail(mode="as_is", times=times, status=400, body={"error": {"message": "loading"}})
    asked = endpoint(server)
    chat = OpenAiChatModel(asked, "test-model")
    assert "Berlin" in (await chat.complete(prompt())).text
    assert not asked.problems
    assert {"temperature", "seed", "response_format"} <= server.bodies[-1].keys()
    await chat.close()


async def test_a_setting_leaves_a_parameter_out(server: OpenAiServer) -> None:
    await complete(server, left_out=("temperature", "seed"))
    assert not {"temperature", "seed"} & server.bodies[0].keys()


async def test_an_azure_address_keeps_its_version_and_its_key(server: OpenAiServer) -> None:
    address = f"{server.base_url}?api-version=2024-10-21"
    chat = OpenAiChatModel(Endpoint(base_url=address, api_key="k", retry=PACE), "test-model")
    assert "Berlin" in (await chat.complete(prompt())).text
    await chat.close()
    assert server.urls == ["/v1/chat/completions?api-version=2024-10-21"]
    assert server.keys == ["k"]


@pytest.mark.parametrize("status", [400, 401, 404, 408, 429, 500, 529])
async def test_what_fails_for_all_is_waited_out(server: OpenAiServer, status: int) -> None:
    code, before = f"http_{status}", counted_errors()
    server.fail(mode="status", status=status, times=7)
    assert "Berlin" in await complete(server)
    assert counted_errors() == before | {code: before.get(code, 0) + 7}


@pytest.mark.parametrize("mode", ["cut", "cut_body", "html", "error_in_200", "no_choices", "refusal"])
async def test_unusable_replies_to_all_are_waited_out(server: OpenAiServer, mode: str) -> None:
    server.fail(mode=mode, times=7)
    assert "Berlin" in await complete(server)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ({"mode": "status", "status": 400}, "http_400"),
        ({"mode": "status", "status": 422}, "http_422"),
        ({"mode": "status", "status": 500}, "http_500"),
        ({"mode": "refusal"}, "model_refusal"),
        ({"mode": "content_filter"}, "content_filter"),
        ({"mode": "no_choices"}, "no_choices"),
        ({"mode": "cut"}, "connection"),
        ({"mode": "html"}, "not_json"),
    ],
)
async def test_what_fails_for_one_prompt_alone_ends_it_after_a_bounded_number_of_attempts(
    server: OpenAiServer, failure: dict[str, Any], reason: str
) -> None:
    server.fail(**failure, times=None, containing="poison")
    with pytest.raises(PromptRefusedError) as refused:
        await complete(server, "I drink poison.")
    assert refused.value.reason == reason
    assert server.requests["chat"] == 20 + 20  # each attempt is compared with a probe
    assert "Berlin" in await complete(server)


async def test_the_probe_has_the_instructions_and_the_schema_of_the_prompts(server: OpenAiServer) -> None:
    server.fail(mode="status")
    await complete(server)
    failed, probe, again = server.bodies
    assert failed == again
    assert {**probe, "messages": ()} == {**failed, "messages": ()}
    assert probe["messages"][0] == failed["messages"][0]
    assert [message["content"] for message in probe["messages"][1:]] == ["Hello."]


@pytest.mark.parametrize("mode", ["truncated", "wrong_schema"])
async def test_a_model_s_poor_words_are_the_parser_s_to_judge(server: OpenAiServer, mode: str) -> None:
    server.fail(mode=mode)
    said = await complete(server)
    assert parse_extraction(said, extraction(user("I live in Berlin."))).complaints
    assert server.requests["chat"] == 1


@pytest.mark.parametrize("limit", [0.4, 5.0], ids=["gives up and asks again", "waits"])
async def test_a_server_that_does_not_answer_is_a_problem_until_it_answers(
    server: OpenAiServer, monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    monkeypatch.setattr(openai_models, "UNANSWERED_SECONDS", 0.1)
    monkeypatch.setattr(openai_models, "TELL_AGAIN_SECONDS", 0.05)
    asked = endpoint(server, timeout=limit)
    chat = OpenAiChatModel(asked, "test-model")
    server.fail(mode="hang", times=None)
    call = asyncio.create_task(chat.complete(prompt()))
    place = server.base_url.partition("//")[2].partition("/")[0]
    said = f"the server at {place} has not answered for 0 s; MNEMOLOG_LLM_TIMEOUT is {limit:g}"
    await eventually(lambda: said in asked.problems.values())
    if limit < 1:  # which is still so while it is asked again
        await eventually(lambda: "timeout" in " ".join(asked.problems.values()))
        assert said in asked.problems.values()
    server.failures.clear()
    assert (await call).text
    assert not asked.problems
    await chat.close()


async def test_a_prompt_s_own_model_and_timeout_come_first(server: OpenAiServer) -> None:
    chat = OpenAiChatModel(endpoint(server, timeout=0.01), "test-model")
    server.latency = 0.2
    reply = await chat.complete(replace(prompt(), model="finer-model", timeout=5.0))
    await chat.close()
    assert reply.model == "finer-model"
    assert [body["model"] for body in server.bodies] == ["finer-model"]


@pytest.mark.parametrize("left_out", [(), ("encoding_format",)], ids=["base64", "numbers"])
async def test_embeddings_come_back_in_order_whatever_their_encoding(server: OpenAiServer, left_out: Any) -> None:
    texts = [f"text number {index}" for index in range(20)]
    rows = await embed(server, texts, left_out=left_out, dimensions=64)
    alone = [(await embed(server, [text], left_out=left_out, dimensions=64))[0] for text in texts[:3]]
    assert rows[:3] == alone
    assert {len(row) for row in rows} == {64}
    assert server.bodies[0].get("encoding_format") == (None if left_out else "base64")


@pytest.mark.parametrize("refused", ["encoding_format", "dimensions"])
async def test_a_parameter_of_embeddings_that_a_server_refuses_is_sent_once(server: OpenAiServer, refused: str) -> None:
    server.habits.refused = frozenset({refused})
    embedder = OpenAiEmbedder(endpoint(server), "test-embedding", dimensions=1536)
    for _ in range(2):
        assert [vector.dimensions for vector in (await embedder.embed(["a"])).vectors] == [1536]
    await embedder.close()
    assert [refused in body for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize("status", [400, 500])
async def test_a_text_that_is_too_long_for_its_model_is_embedded_by_a_shorter_beginning(
    server: OpenAiServer, status: int
) -> None:
    server.habits.most_characters, server.habits.too_long_status = 1800, status
    asked = endpoint(server)
    embedder = OpenAiEmbedder(asked, "test-embedding")
    for _ in range(2):
        assert len((await embedder.embed(["x" * 2920, "short"])).vectors) == 2
    said = "of each text the first 1460 characters are embedded: the model takes no more"
    assert asked.problems == {"embed test-embedding (length)": said}
    await embedder.close()
    assert [[len(text) for text in body["input"]] for body in server.bodies] == [[2920, 5], [1460, 5], [1460, 5]]


async def test_vectors_of_another_size_than_stored_ones_are_never_taken(server: OpenAiServer) -> None:
    asked = endpoint(server)
    embedder = OpenAiEmbedder(asked, "test-embedding", stored=8)
    waiting = asyncio.create_task(embedder.embed(["a"]))
    await eventually(lambda: "embed test-embedding" in asked.problems)
    said = asked.problems["embed test-embedding"]
    assert "correct MNEMOLOG_EMBEDDING_MODEL or MNEMOLOG_EMBEDDING_DIMENSIONS" in said
    assert "1536 dimensions where 8 were expected" in said
    waiting.cancel()
    await embedder.close()


async def test_texts_are_split_into_requests_that_servers_take(server: OpenAiServer) -> None:
    rows = await embed(server, ["short"] * (MAX_TEXTS + 1), dimensions=8)
    assert [len(body["input"]) for body in server.bodies] == [MAX_TEXTS, 1]
    assert len(rows) == MAX_TEXTS + 1
    server.bodies.clear()
    await embed(server, ["x" * 100_000] * 50, dimensions=8)
    assert {len(text) for body in server.bodies for text in body["input"]} == {MAX_CHARACTERS}
    assert [len(body["input"]) for body in server.bodies] == [33, 17]


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("wrong_count", "wrong_count"), ("wrong_dimensions", "wrong_dimensions"), ("nan", "bad_embedding")],
)
async def test_faulty_embeddings_of_one_text_end_it_and_of_all_are_waited(
    server: OpenAiServer, mode: str, reason: str
) -> None:
    embedder = OpenAiEmbedder(endpoint(server), "test-embedding", dimensions=1536)
    server.fail(mode=mode, times=7)
    assert len((await embedder.embed(["a", "b"])).vectors) == 2
    server.fail(mode=mode, times=None, containing="poison")
    with pytest.raises(BatchSuspectError):
        await embedder.embed(["a", "poison"], divisible=True)
    with pytest.raises(PromptRefusedError) as refused:
        await embedder.embed(["poison"])
    assert refused.value.reason == reason
    await embedder.close()
