"""Build the models that a search may ask."""

from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.llm.factory import build_openai_chat_model
from mnemolog.streams.rerank.chat_reranker import ChatReranker
from mnemolog.streams.rerank.chat_variants import ChatVariants
from mnemolog.streams.rerank.ports import QuestionVariants, Reranker
from mnemolog.streams.settings import StreamsSettings


def build_reranker(settings: StreamsSettings) -> Reranker:
    """The model that orders hits. Raises `ProviderConfigurationError` where none is set."""
    return ChatReranker(build_openai_chat_model(_asked(settings, "orders hits")))


def build_variants(settings: StreamsSettings) -> QuestionVariants:
    """The model that says questions in other words. Raises `ProviderConfigurationError` where none is set."""
    return ChatVariants(build_openai_chat_model(_asked(settings, "says questions in other words")))


def _asked(settings: StreamsSettings, task: str) -> StreamsSettings:
    """The settings of the chat model that searches ask."""
    if settings.provider != "openai" and settings.search_model is None:
        raise ProviderConfigurationError(f"no model is set that {task}: set MNEMOLOG_SEARCH_MODEL")
    return settings.model_copy(update={"chat_model": settings.search_model or settings.chat_model})
