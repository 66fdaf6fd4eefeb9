"""Replies as real servers and models give them, over real HTTP: each is read, or named in the user's words.

Every row is one habit; none waits for ever, and none loses a whole reply for one field.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from typing import Any, Final

import pytest
from pydantic import ValidationError

from mnemolog.projections.queries.audit import WorkerProblem
from mnemolog.streams.llm.ask import ask
from mnemolog.streams.llm.calls import RetrySettings
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiChatModel, OpenAiEmbedder
from mnemolog.streams.llm.ports import Prompt, PromptRefusedError, ReplyInvalidError, TimedReply
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.model_replies import fact_json
from tests.support.builders.prompts import extraction, user
from tests.support.polling import eventually
from tests.support.servers.openai_server import OpenAiServer

HOME, GOATS = "I live in Berlin, in house 42, since May 2026.", "I keep two goats."
ONE: Final = fact_json(HOME, key="home_city", value="Berlin")
TWO: Final = fact_json(GOATS)
FULL: Final = json.dumps({"facts": [ONE, TWO]}, indent=1)
FIRST: Final = json.dumps({"facts": [ONE]})
TASK: Final = extraction(user(f"{HOME} {GOATS}"))
PACE: Final = RetrySettings(initial_delay=0.005, max_delay=0.02, failures_to_pause=3)
EMPTY: Final = '{"facts": []}'

READ: Final[dict[str, str]] = {
    "as it is": FULL,
    "a fence": f"```json\n{FULL}\n```",
    "a fence that nothing closes": f"```json\n{FULL}",
    "tildes": f"~~~\n{FULL}\n~~~",
    "words before": f"Sure! Here is what I found [2 facts]:\n{FULL}",
    "an open bracket in words before": f"[Note: two facts\n{FULL}",
    "words with braces behind": f'{FULL}\nI left out {{excerpt}} and {{"turn": 1}}, which say nothing.',
    "an example before": f"Using {{excerpt}} as in {EMPTY}:\n{FULL}",
    "thoughts": f"<think>\nSo it is {EMPTY} or {{so}}.\n</think>\n{FULL}",
    "thoughts without a beginning": f"hm, {EMPTY}\n</think>\n{FULL}",
    "thoughts without an end": f"<think>\nThe user lives somewhere.\n{FULL}",
    "thoughts of other marks": f"[THINK]so {EMPTY}[/THINK]{FULL}",
    "channels": f"<|channel|>analysis<|message|>{EMPTY}<|end|><|channel|>final<|message|>{FULL}<|return|>",
    "tags around it": f"<answer>{FULL}</answer>",
    "a draft before": f"{FIRST}\nOn second thought:\n{FULL}",
    "an object for each fact": f"{FIRST}\n{json.dumps({'facts': [TWO]})}",
    "facts line by line": f"{json.dumps(ONE)}\n{json.dumps(TWO)}",
    "a bare list": json.dumps([ONE, TWO]),
    "a list of wrappers": json.dumps([{"facts": [ONE]}, {"facts": [TWO]}]),
    "wrappers": json.dumps({"response": {"data": {"facts": [ONE, TWO]}}}),
    "a wrapper of text": json.dumps({"answer": FULL}),
    "a call of a function": json.dumps({"name": "extract", "arguments": FULL}),
    "JSON of JSON": json.dumps(FULL),
    "another name": json.dumps({"memories": [ONE, TWO]}),
    "a capital": json.dumps({"Facts": [ONE, TWO]}),
    "facts by number": json.dumps({"facts": {"1": ONE, "2": TWO}}),
    "lists in the list": json.dumps({"facts": [[ONE], [TWO]]}),
    "each fact wrapped": json.dumps({"facts": [{"fact": ONE}, {"fact": TWO}]}),
    "each fact as text": json.dumps({"facts": [json.dumps(ONE), json.dumps(TWO)]}),
    "single quotes, None, False": str({"facts": [ONE, TWO]}),
    "trailing commas": FULL.replace("]\n}", "],\n}").replace("\n }", ",\n }"),
    "comments": FULL.replace('"facts":', '// these\n"facts": /* two */'),
    "names without quotes": FULL.replace('"facts"', "facts").replace('"text"', "text"),
    "no comma between facts": FULL.replace("},\n  {", "}\n  {"),
    "no bracket in the end": FULL[:-3],
    "one bracket too many": f"{{{FULL}}}",
    "NaN": FULL.replace('"value": null', '"value": NaN'),
    "undefined": FULL.replace('"value": null', '"value": undefined'),
    "a line break in a text": FULL.replace("two goats.", "two\ngoats."),
    "a mark of byte order": f"\ufeff{FULL}",
    "dots for the rest": FULL.replace("]\n}", ", ...]\n}"),
    "thoughts alone": f"<think>{FULL}</think>",
    "thoughts as an object before": f'{{"thoughts": "none"}}\n{FULL}',
    "nothing, and then the facts": EMPTY + FULL,
    "half an emoji, and then the facts": FULL.replace("I live", "I li\\ud800ve", 1) + FULL,
    "a fact too many, without words": json.dumps({"facts": [ONE, TWO, {"key": "home_city"}]}),
}
"""What a model writes; both facts are read at the first call."""


def message(content: Any, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content} | fields, "finish_reason": "stop"}], "usage": "none"}


def tool(arguments: Any) -> dict[str, Any]:
    return {"function": {"name": "answer", "arguments": arguments}}


PLACES: Final[dict[str, Any]] = {
    "an object": message({"facts": [ONE, TWO]}),
    "parts": message([{"type": "thinking", "thinking": [{"text": EMPTY}]}, {"type": "text", "text": FULL}]),
    "a part of reasoning": message([{"type": "reasoning", "text": EMPTY}, {"type": "text", "text": FULL}]),
    "a list of texts": message([FULL]),
    "a part of JSON": message([{"type": "json", "json": {"facts": [ONE, TWO]}}]),
    "arguments as an object": message(None, tool_calls=[tool({"facts": [ONE, TWO]})]),
    "a tool for each fact": message(None, tool_calls=[tool(FIRST), tool(json.dumps({"facts": [TWO]}))]),
    "words, and a tool": message("I call the tool.", tool_calls=[tool(FULL)]),
    "a tool without a function": message(FULL, tool_calls=[{"function": None}]),
    "a function of old": message(None, function_call={"name": "answer", "arguments": FULL}),
    "parsed": message(None, parsed={"facts": [ONE, TWO]}),
    "thinking": message("", thinking=FULL),
    "thinking beside it": message(FULL, reasoning_content=f"Or {EMPTY}?"),
    "reasoning in a list": message(None, reasoning=[FULL]),
    "the second choice": {"choices": [{"message": {"content": ""}}, {"message": {"content": FULL}}]},
    "no message": {"choices": [{"text": FULL}]},
    "a piece of a stream": {"choices": [{"delta": {"content": FULL}}]},
    "no choices": {"message": {"role": "assistant", "content": FULL}, "done": True},
    "fields of other types": message(FULL, refusal=False) | {"model": 5, "error": {}, "id": None},
}
"""Where a server puts the answer, which has both facts."""

FIELDS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "a word for a truth": ({"single_valued": "yes"}, {"single_valued": True}),
    "an object for a truth": ({"single_valued": {}}, {"single_valued": False}),
    "a list of one": ({"value": ["Berlin"], "text": [HOME]}, {"value": "Berlin", "text": HOME}),
    "an object": ({"value": {"city": "Berlin"}}, {"value": None}),
    "no key in words": ({"key": "N/A"}, {"key": None}),
    "None": ({"subject": "None"}, {"subject": None}),
    "a month": ({"event_time": "2026-05"}, {"event_time": "2026-05-01 00:00:00+00:00"}),
    "a word for a time": ({"event_time": "yesterday"}, {"event_time": None}),
    "categories with commas": ({"category": "home, location"}, {"text": HOME}),
    "a number for a word": ({"certainty": 0.95}, {"certainty": "strong"}),
    "quotes in quotes": ({"excerpt": f'"{HOME}"'}, {"excerpt": HOME}),
    "U+0000": ({"value": "Ber\x00lin"}, {"value": None}),
}
"""One field as a model writes it, and what becomes of it; the rest of the fact, and the other fact, stay."""


async def extracted(server: OpenAiServer, body: Any) -> Any:
    """What is read of a reply that is given to each call, and how often the server was asked."""
    server.fail(mode="as_is", times=None, status=200, body=body)
    chat = OpenAiChatModel(Endpoint(base_url=server.base_url, api_key="k", timeout=5.0, retry=PACE), "m")

    async def complete(prompt: Prompt, _attempt: int) -> TimedReply:
        reply = await chat.complete(prompt)
        return TimedReply(text=reply.text, model=reply.model, usage=reply.usage, milliseconds=1.0)

    try:
        return await ask(complete, extraction_prompt(TASK), lambda text: parse_extraction(text, TASK))
    finally:
        await chat.close()


@pytest.fixture(scope="module")
def running() -> Any:
    with OpenAiServer() as server:
        yield server


@pytest.fixture
def server(running: OpenAiServer) -> OpenAiServer:
    running.failures.clear()
    running.requests.clear()
    return running


def texts(facts: Any) -> list[str]:
    return [" ".join(fact.text.split()) for fact in facts]


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_both_facts_are_read_of_what_a_model_writes(text: str) -> None:
    parsed = parse_extraction(text, TASK)
    assert ({*texts(parsed.value)}, parsed.complaints) == ({HOME, GOATS}, ())


@pytest.mark.parametrize("body", PLACES.values(), ids=PLACES)
async def test_both_facts_are_read_at_the_first_call(server: OpenAiServer, body: Any) -> None:
    answer = await extracted(server, body)
    assert texts(answer.value) == [HOME, GOATS]
    assert server.requests["chat"] == 1


@pytest.mark.parametrize("habit", FIELDS)
def test_a_field_of_another_form_costs_at_most_itself(habit: str) -> None:
    """`test_extract_parser.py` has more."""
    given, expected = FIELDS[habit]
    read, other = parse_extraction(json.dumps({"facts": [ONE | given, TWO]}), TASK).value or ()
    assert (read.excerpt, other.excerpt) == (HOME, GOATS)
    assert {name: str(getattr(read, name)) for name in expected} == {name: str(one) for name, one in expected.items()}


@pytest.mark.parametrize(
    ("entities", "names"),
    [
        (["Berlin"], ["Berlin"]),
        ("Berlin", ["Berlin"]),
        ({"name": "Berlin", "type": "place"}, ["Berlin"]),
        ([{"type": "place"}, {"name": "Berlin"}], ["Berlin"]),
        (None, []),
        (7, []),
    ],
    ids=str,
)
def test_names_are_read_one_by_one(entities: Any, names: list[str]) -> None:
    (fact,) = parse_extraction(json.dumps({"facts": [ONE | {"entities": entities}]}), TASK).value or ()
    assert [entity.name for entity in fact.entities] == names


CUT: Final = FULL[: FULL.rindex('"excerpt"') + 20]


@pytest.mark.parametrize(
    ("text", "finish"),
    [(CUT, "length"), (CUT, "stop"), (f"```json\n{CUT}", "length"), (FULL[: FULL.rindex("]") - 20], "length")],
    ids=["at the limit", "without a word", "in a fence", "behind a list"],
)
async def test_of_an_answer_that_is_cut_off_the_complete_facts_are_read(
    server: OpenAiServer, text: str, finish: str
) -> None:
    body = {"choices": [{"message": {"content": text}, "finish_reason": finish}]}
    answer = await extracted(server, body)
    assert [fact.text for fact in answer.value] == [HOME]
    assert any("cut off" in note for note in answer.notes)


REFUSALS: Final = (
    "I'm sorry, but I can't assist with that request.",
    "I can\u2019t do that.",
    "I cannot help with this. Please seek help from a professional.",
    "As an AI language model, I have no opinion.",
    "<think>This is about a bomb.</think>I am not able to discuss this.",
    "This violates our usage policies.",
    "Es tut mir leid, dabei kann ich nicht helfen.",
)


@pytest.mark.parametrize(
    ("text", "finish", "said"),
    [
        (FIRST[:60], "length", "cut off at the token limit"),
        (FIRST[:60], "stop", "cut off at the token limit"),
        *(("", finish, "cut off at the token limit") for finish in ("length", "max_tokens", "MAX_TOKENS")),
        ('<think>hm {"facts": [', "length", "cut off at the token limit"),
        (f"<think>maybe {FIRST}, or", "length", "cut off at the token limit"),
        ("{" * 5000, "length", "cut off at the token limit"),
        ("", "stop", "the answer is empty"),
        (None, "stop", "the answer is empty"),
        ("I can't find any facts.", "stop", "not one complete JSON object"),
        ("Facts about my help desk.", "stop", "not one complete JSON object"),
        *((words, "stop", "the model refuses to answer") for words in REFUSALS),
        *((json.dumps({name: REFUSALS[0]}), "stop", "the model refuses") for name in ("error", "answer")),
        (f"<facts><fact>{HOME}</fact></facts>", "stop", "not one complete JSON object"),
        (json.dumps({"facts": [{"key": "home_city"}]}), "stop", "facts.0.excerpt: Field required"),
        (json.dumps({"type": "object", "properties": {"facts": {"type": "array"}}}), "stop", "facts.0.excerpt"),
    ],
    ids=str,
)
async def test_what_cannot_be_read_is_named_after_two_calls(
    server: OpenAiServer, text: str | None, finish: str, said: str
) -> None:
    with pytest.raises(ReplyInvalidError, match=said):
        await extracted(server, {"choices": [{"message": {"content": text}, "finish_reason": finish}]})
    assert server.requests["chat"] == 2


HTML: Final = {"body": "<html>Sign in</html>", "headers": {"content-type": "text/html"}}
ADVICE: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "a page with 200": (HTML, "correct MNEMOLOG_BASE_URL, which often ends in /v1 (not_json)"),
    "a page with 502": (HTML | {"status": 502}, "(http_502)"),
    "nothing": ({"body": ""}, "(not_json)"),
    "null": ({"body": None}, "(unexpected_reply)"),
    "a list": ({"body": []}, "(unexpected_reply)"),
    "brackets": ({"body": "[" * 100_000}, "(not_json)"),
    "a stream": ({"body": "data: {}\n\ndata: [DONE]\n\n"}, "(not_json)"),
    "gzip that is none": ({"body": "no gzip at all", "headers": {"content-encoding": "gzip"}}, "its answers break off"),
    "another form": ({"body": {"output": FULL}}, "(no_choices)"),
    "a wrong key": ({"status": 401, "body": {"error": {"message": "wrong key sk-1"}}}, "correct MNEMOLOG_API_KEY"),
    "a wrong key with 200": ({"body": {"error": {"code": "invalid_api_key"}}}, "correct MNEMOLOG_API_KEY (http_401)"),
    "no log-in": ({"status": 403, "body": {"detail": "Not authenticated"}}, "does not allow this key"),
    "no money": (
        {"status": 402, "body": {"error": {"message": "no credit"}}},
        "no money left: pay, or name another server by MNEMOLOG_BASE_URL (http_402: no credit)",
    ),
    "no such model": ({"status": 404, "body": {"error": "model 'm' not found"}}, "model 'm' not found)"),
    "no such address": ({"status": 404, "body": "Not Found"}, "correct MNEMOLOG_BASE_URL or the name of the model"),
    "sent elsewhere": ({"status": 301, "headers": {"location": "/login"}, "body": ""}, "MNEMOLOG_BASE_URL"),
    "sent in a circle": ({"status": 307, "headers": {"location": "/v1/chat/completions"}, "body": ""}, "redirects"),
    "the quota": ({"status": 429, "body": {"error": {"message": "quota is used up"}}}, "quota is used up)"),
    "a rate with 200": ({"body": [{"error": {"code": 429, "message": "slow down"}}]}, "(http_429: slow down)"),
    "no embeddings": (
        {"status": 501, "body": {"error": {"message": "Only completions. Start it with `--embeddings`"}}},
        "start it in another way, or ask another one (http_501: Only completions. Start it with `--embeddings`)",
    ),
    "a small context": (
        {"status": 400, "body": {"error": {"message": "the request exceeds the available context size"}}},
        "longer than the context of the model: start the server with a longer one",
    ),
    "a small context in other words": (
        {"status": 400, "body": {"error": {"message": "This model's maximum context length is 4096 tokens"}}},
        "longer than the context of the model",
    ),
    "an unknown fault of all requests": (
        {"status": 400, "body": {"error": {"message": "model is loading its weights"}}},
        "(http_400: model is loading its weights)",
    ),
    "a refusal without words": ({"status": 400, "body": ""}, "MNEMOLOG_LEAVE_OUT leaves parameters out (http_400"),
    "a form": ({"status": 422, "body": {"detail": [{"loc": ["body"], "msg": "no"}]}}, "(http_422: {"),
    "a fault": ({"status": 500, "body": "oops"}, "the server fails: see its log (http_500)"),
    "too many": ({"status": 529, "body": {"error": {"type": "overloaded"}}}, "(http_529)"),
    "a refusal of the model": ({"body": message("", refusal="I can't.")}, "the model refuses all that it is asked"),
    "spaces without an end": ({"body": " " * 1024, "endless": True}, "raise MNEMOLOG_LLM_TIMEOUT"),
}
"""What a server answers to everything, and what whoever waits is told."""


@pytest.mark.parametrize("habit", ADVICE)
async def test_who_waits_for_a_server_is_told_why(server: OpenAiServer, habit: str) -> None:
    failure, advice = ADVICE[habit]
    problems: dict[str, str] = {}
    server.fail(**{"mode": "as_is", "times": None, "status": 200} | failure)
    endpoint = Endpoint(base_url=server.base_url, api_key="k", timeout=0.5, retry=PACE, problems=problems)
    chat = OpenAiChatModel(endpoint, "m")
    waiting = asyncio.create_task(chat.complete(extraction_prompt(TASK)))
    await eventually(lambda: problems)
    assert advice in problems["extract m"]
    assert all(WorkerProblem(part=part, problem=advice).hinders for part in problems)
    assert "sk-1" not in problems["extract m"]
    server.failures.clear()
    await asyncio.wait_for(waiting, 10)  # and it goes on by itself
    assert not problems
    await chat.close()


@pytest.mark.parametrize("tail", ["/v1/chat/completions", "/v1/embeddings/", "/api/responses?api-version=1"])
def test_the_address_of_one_call_is_no_address_of_a_server(tail: str) -> None:
    with pytest.raises(ValidationError, match="ends in the name of a call"):
        StreamsSettings(base_url=f"http://localhost:8080{tail}")
    assert StreamsSettings(base_url="http://localhost:8080/v1/").base_url


REFUSED: Final[list[tuple[str, Any]]] = [
    ("max_tokens", "max_tokens is too large: 8192. This model supports at most 4096 completion tokens"),
    ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
    ("max_tokens", "maximum context length is 4096, you asked for 8500 (308 in the messages, 8192 in the completion)"),
    ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model. Only 1 is supported."),
    ("temperature", {"message": "Unsupported parameter", "param": "temperature"}),
    ("seed", [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]),
    ("response_format", "failed to parse grammar"),
    ("response_format", "JSON mode is not enabled for this model"),
    ("response_format", "guided decoding is disabled"),
    ("system", "System role not supported"),
    ("system", "'messages[0].role' does not support 'system' with this model."),
    ("system", "Only user and assistant roles are supported!"),
    ("system", "Developer instruction is not enabled for models/gemma"),
]


@pytest.mark.parametrize(("parameter", "words"), REFUSED, ids=str)
async def test_a_parameter_is_left_out_in_whatever_words_it_is_refused(
    server: OpenAiServer, parameter: str, words: Any
) -> None:
    server.keep_bodies = True
    server.bodies.clear()
    server.fail(mode="as_is", times=1, status=422, body={"detail": words})
    problems: dict[str, str] = {}
    chat = OpenAiChatModel(Endpoint(base_url=server.base_url, api_key="k", retry=PACE, problems=problems), "m")
    for _ in range(2):
        await chat.complete(extraction_prompt(TASK))
    await chat.close()
    sent = [{"system"} & {one["role"] for one in body["messages"]} | body.keys() for body in server.bodies]
    assert [parameter in one for one in sent] == [True, False, False]
    ((part, shown),) = problems.items()
    assert not WorkerProblem(part=part, problem=shown).hinders
    assert shown == f"{parameter} is refused, and left out from now on: name it in MNEMOLOG_LEAVE_OUT"
    assert HOME in server.bodies[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("status", [401, 429])
async def test_a_word_of_a_parameter_in_another_refusal_leaves_nothing_out(server: OpenAiServer, status: int) -> None:
    server.keep_bodies = True
    server.bodies.clear()
    server.fail(mode="as_is", times=1, status=status, body={"error": {"message": "seed accounts are closed"}})
    chat = OpenAiChatModel(Endpoint(base_url=server.base_url, api_key="k", retry=PACE), "m")
    await chat.complete(extraction_prompt(TASK))
    await chat.close()
    assert all("seed" in body for body in server.bodies)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_long_text_that_is_refused_without_a_reason_is_embedded_by_its_beginning(
    server: OpenAiServer, status: int
) -> None:
    server.fail(mode="as_is", times=2, status=status, body={"error": {"message": "Invalid input"}}, path="embeddings")
    embedder = OpenAiEmbedder(Endpoint(base_url=server.base_url, api_key="k", retry=PACE), "e")
    assert len((await embedder.embed(["word " * 1000])).vectors) == 1
    assert server.requests["embeddings"] == 3
    await embedder.close()


X, Y = [1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]


def base64_of(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def rows(*items: Any) -> dict[str, Any]:
    return {"data": [{"index": place, "embedding": row} for place, row in enumerate(items)]}


EMBEDDED: Final[dict[str, Any]] = {
    "lists": rows(X, Y),
    "base64": rows(base64_of(X), base64_of(Y)),
    "both": rows(X, base64_of(Y)),
    "another order": {"data": [{"index": 1, "embedding": Y}, {"index": 0, "embedding": X}]},
    "no places": {"data": [{"embedding": X}, {"embedding": Y}]},
    "bare rows": {"data": [X, Y]},
    "another name": {"embeddings": [X, Y]},
    "numbers as text": rows(["1", "0", "0", "0"], Y),
    "whole numbers": rows([1, 0, 0, 0], [0, 2, 0, 0]),
    "a list in a list": rows([X], [Y]),
    "places as text": {"data": [{"index": "1", "embedding": Y}, {"index": "0", "embedding": X}]},
}
NOT_EMBEDDED: Final[dict[str, tuple[Any, str]]] = {
    "too few": (rows(X), "wrong_count"),
    "too many": (rows(X, Y, X), "wrong_count"),
    "none": ({"data": None}, "wrong_count"),
    "a place twice": ({"data": [{"index": 0, "embedding": X}, {"index": 0, "embedding": Y}]}, "wrong_count"),
    "no length": (rows(X, [0.0] * 4), "bad_embedding"),
    "NaN": ('{"data": [{"embedding": [NaN, 0, 0, 0]}, {"embedding": [1, 0, 0, 0]}]}', "bad_embedding"),
    "null": (rows(X, [None, 0, 0, 0]), "bad_embedding"),
    "no base64": (rows(X, "§§§"), "bad_embedding"),
    "half of base64": (rows(X, base64_of(Y)[:6]), "bad_embedding"),
    "an object": (rows(X, {"values": Y}), "bad_embedding"),
    "no embedding": ({"data": [{"index": 0, "embedding": X}, {"index": 1}]}, "bad_embedding"),
    "another size": (rows(X, [1.0, 0.0, 0.0]), "wrong_dimensions"),
    "a page": ("<html></html>", "not_json"),
}


@pytest.mark.parametrize("habit", EMBEDDED)
async def test_vectors_are_read_whatever_their_form(server: OpenAiServer, habit: str) -> None:
    server.fail(mode="as_is", status=200, body=EMBEDDED[habit], path="embeddings")
    embedder = OpenAiEmbedder(Endpoint(base_url=server.base_url, api_key="k", retry=PACE), "e")
    vectors = (await embedder.embed(["x", "y"])).vectors
    await embedder.close()
    assert [vector.values for vector in vectors] == [(1, 0, 0, 0), (0, 1, 0, 0)]
    assert server.requests["embeddings"] == 1


@pytest.mark.parametrize("habit", NOT_EMBEDDED)
async def test_vectors_that_are_none_end_their_texts_alone(server: OpenAiServer, habit: str) -> None:
    body, reason = NOT_EMBEDDED[habit]
    server.fail(mode="as_is", times=None, status=200, body=body, path="embeddings", containing='"y"')
    embedder = OpenAiEmbedder(Endpoint(base_url=server.base_url, api_key="k", retry=PACE), "e")
    with pytest.raises(PromptRefusedError) as refused:
        await asyncio.wait_for(embedder.embed(["x", "y"]), 20)
    assert refused.value.reason == reason
    assert len((await embedder.embed(["x"])).vectors) == 1
    await embedder.close()
