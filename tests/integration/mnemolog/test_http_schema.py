"""Every operation of the OpenAPI document, with requests that are made from it: no fault of the server, no surprise."""

import asyncio
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import Case
from schemathesis.checks import positive_data_acceptance
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import ignored_auth

from mnemolog.server.app import build_app, openapi_document
from mnemolog.server.gate import Gate
from tests.support.harnesses.offline_client import OfflineClient

pytestmark = [pytest.mark.postgres]
EXAMPLES = 12
BEYOND = [ignored_auth, positive_data_acceptance]
"""Here are no keys, and an empty text or an unknown id is refused, which the document does not say."""


def test_answers_are_as_the_document_says(database: str) -> None:
    client = OfflineClient(postgres=database)
    app = build_app(client, Gate(client, tenant="default", keys=None), max_body=100_000)
    app.state.draining.set()  # nothing ends here: requests that wait are answered at once
    schema = schemathesis.openapi.from_dict(openapi_document(app)).exclude(path_regex="ready|import")
    with asyncio.Runner() as runner:
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")

        def check(case: Case[Any]) -> None:
            asked: dict[str, Any] = case.as_transport_kwargs(base_url="http://127.0.0.1")
            del asked["cookies"]
            case.validate_response(runner.run(http.request(**asked)), excluded_checks=BEYOND)

        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            bounded = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
            bounded(given(found.ok().as_strategy())(check))()
        runner.run(http.aclose())
        runner.run(client.close())
