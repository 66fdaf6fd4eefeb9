"""The metrics of the HTTP server."""

from typing import Final

from mnemolog.common.metric_catalogue import MetricCatalogue

CATALOGUE: Final = MetricCatalogue()
REQUEST_SECONDS: Final = CATALOGUE.histogram(
    "mnemolog_http_request_seconds",
    "time of a request from its arrival to the end of the answer, waiting for turns included; route is the method with "
    "the path as the OpenAPI document has it, or other; status is the HTTP status",
    labels=("route", "status"),
)
