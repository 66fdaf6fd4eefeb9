"""Builds the models that the settings name. The packages of a provider are imported only where it is chosen."""

# ruff: noqa: PLC0415 -- see above

from collections.abc import Iterator
from contextlib import contextmanager

from mnemolog.streams.llm.ports import ChatModel, Embedder, Problems, ProviderConfigurationError
from mnemolog.streams.llm.rerank import QuestionVariants, Reranker
from mnemolog.streams.settings import StreamsSettings


def build_openai_chat_model(settings: StreamsSettings, problems: Problems | None = None) -> ChatModel:
    """The chat model of an OpenAI-compatible server. Raises `ProviderConfigurationError`."""
    with needs_extra("openai"):
        from mnemolog.streams.llm.openai_models import OpenAiChatModel, endpoint_of

        return OpenAiChatModel(
            endpoint_of(settings, problems, embeds=False),
            settings.chat_model,
            structured_output=settings.structured_output,
            left_out=settings.leave_out,
        )


def build_embedder(
    settings: StreamsSettings, problems: Problems | None = None, *, stored: int | None = None
) -> Embedder:
    """The model that embeds; a client must embed its queries with the same one. Raises `ProviderConfigurationError`.

    Vectors of another size than `stored` are waited out.
    """
    if (settings.embedding_provider or settings.provider) == "offline":
        with needs_extra("offline"):
            from mnemolog.streams.llm.minilm_embedder import MiniLmEmbedder

            return MiniLmEmbedder()
    with needs_extra("openai"):
        from mnemolog.streams.llm.openai_models import OpenAiEmbedder, endpoint_of

        return OpenAiEmbedder(
            endpoint_of(settings, problems, embeds=True),
            settings.embedding_model,
            dimensions=settings.embedding_dimensions,
            stored=stored,
            left_out=settings.leave_out,
        )


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ProviderConfigurationError(
            f"a package of the provider {extra} is missing ({error}): pip install 'mnemolog[{extra}]'"
        ) from error


def build_reranker(settings: StreamsSettings) -> Reranker:
    """The model that orders hits. Raises `ProviderConfigurationError` where none is set."""
    return Reranker(build_openai_chat_model(_asked(settings, "orders hits")))


def build_variants(settings: StreamsSettings) -> QuestionVariants:
    """The model that says questions in other words. Raises `ProviderConfigurationError` where none is set."""
    return QuestionVariants(build_openai_chat_model(_asked(settings, "says questions in other words")))


def _asked(settings: StreamsSettings, task: str) -> StreamsSettings:
    if settings.provider != "openai" and settings.search_model is None:
        raise ProviderConfigurationError(f"no model is set that {task}: set MNEMOLOG_SEARCH_MODEL")
    return settings.model_copy(update={"chat_model": settings.search_model or settings.chat_model})
