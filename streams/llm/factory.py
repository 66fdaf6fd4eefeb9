"""From settings to the models that the stages ask. A provider's packages are loaded only where it is chosen."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from mnemolog.streams import metrics
from mnemolog.streams.llm.call_retry import RetrySettings
from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.llm.ports import ChatModel, Embedder, Usage
from mnemolog.streams.settings import StreamsSettings

if TYPE_CHECKING:
    from mnemolog.streams.llm.openai_client import CallPurpose, Endpoint


def build_chat_model(settings: StreamsSettings) -> ChatModel:
    """The model that extracts and resolves. Raises `ProviderConfigurationError`."""
    if settings.provider == "offline":
        from mnemolog.streams.offline import RuleModel  # noqa: PLC0415 -- see above

        return RuleModel()
    model: ChatModel = _openai_models().OpenAiChatModel(
        _endpoint(settings, timeout=settings.llm_timeout, concurrency=settings.llm_concurrency),
        settings.chat_model,
        structured_output=settings.structured_output,
        observer=count_failed_call,
    )
    return model


def build_embedder(settings: StreamsSettings) -> Embedder:
    """The model that embeds; a client must embed its queries with the same one. Raises `ProviderConfigurationError`."""
    if (settings.embedding_provider or settings.provider) == "offline":
        from mnemolog.streams.llm.minilm_embedder import MiniLmEmbedder  # noqa: PLC0415 -- see above

        return MiniLmEmbedder()
    embedder: Embedder = _openai_models().OpenAiEmbedder(
        _endpoint(settings, timeout=settings.embedding_timeout, concurrency=settings.embedding_concurrency),
        settings.embedding_model,
        dimensions=settings.embedding_dimensions,
        observer=count_failed_call,
    )
    return embedder


def count_failed_call(
    *,
    purpose: "CallPurpose",
    model: str,
    seconds: float,  # noqa: ARG001 -- the observer's signature
    usage: Usage,  # noqa: ARG001 -- as above
    error_code: str | None,
) -> None:
    """Count each call that failed; what succeeded is counted where replies are recorded, for all providers alike."""
    if error_code is not None:
        metrics.MODEL_ERRORS.labels(purpose=purpose, model=model, error=error_code).inc()


def _openai_models() -> ModuleType:
    try:
        return import_module("mnemolog.streams.llm.openai_models")
    except ImportError as error:
        raise ProviderConfigurationError(
            f"the provider `openai` lacks a package ({error}): pip install 'mnemolog[openai]'"
        ) from error


def _endpoint(settings: StreamsSettings, *, timeout: float, concurrency: int) -> "Endpoint":
    from mnemolog.streams.llm.openai_client import Endpoint  # noqa: PLC0415 -- see above

    return Endpoint(
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout=timeout,
        retry=RetrySettings(max_concurrent=concurrency),
    )
