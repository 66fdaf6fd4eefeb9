"""The address of a model's server, with and without a path."""

import openai
import pytest

from mnemolog.streams.llm.openai_models import post


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("http://127.0.0.1:9", "http://127.0.0.1:9/embeddings"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9/embeddings"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/embeddings"),
        ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1/embeddings"),
    ],
)
def test_an_endpoint_is_below_the_address_of_its_server(base_url: str, address: str) -> None:
    request = post(openai.AsyncOpenAI(api_key="none", base_url=base_url), "embeddings", {})
    assert getattr(request, "args") == (address,)  # noqa: B009 - a partial behind a protocol
