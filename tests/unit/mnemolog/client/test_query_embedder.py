"""A query without a vector is searched by words, with a notice; a missing package is looked for once."""

import logging

import pytest

from mnemolog.client.queries import embedder as query_embedder
from mnemolog.client.queries.embedder import QueryEmbedder
from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.settings import StreamsSettings


async def test_a_wrong_configuration_is_told_each_time_and_tried_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[StreamsSettings] = []

    def build(settings: StreamsSettings) -> None:
        tried.append(settings)
        raise ProviderConfigurationError("a package is missing")

    monkeypatch.setattr(query_embedder, "_build_embedder", build)
    embedder = QueryEmbedder(StreamsSettings())
    with caplog.at_level(logging.WARNING, logger="mnemolog"):
        answers = [await embedder.embed("home") for _ in range(3)]
    assert answers == [(None, "full-text search only: a package is missing")] * 3
    assert len(tried) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "search_without_vectors reason='a package is missing'"
    ]
