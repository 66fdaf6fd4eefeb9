"""The chat model and the embedder of one process; each is built when the first stage needs it."""

import asyncio
from functools import cached_property
from importlib import import_module
from typing import Final

from mnemolog.common.logs import get_logger
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.calls import CallFailure
from mnemolog.streams.llm.factory import build_embedder, build_openai_chat_model, needs_extra
from mnemolog.streams.llm.ports import ChatModel, Embedder, Problems, ProviderConfigurationError, ReplyStore
from mnemolog.streams.settings import StreamsSettings

log = get_logger(__name__)


class StageModels:
    """The chat model and the embedder, each behind the store of its replies.

    `stored` are the model and the dimensions of the vectors of stored facts. Building either model may raise
    `ProviderConfigurationError`: the embedder also where it is another model than that.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        replies: ReplyStore,
        problems: Problems | None = None,
        *,
        stored: tuple[str, int] | None = None,
    ) -> None:
        self._stored = stored
        self._settings = settings
        self._replies = replies
        self._problems = problems

    def build_for(self, stage: Stage) -> None:
        """Build now what `stage` will ask, so that what is misconfigured stops the start."""
        if stage in ("extract", "resolve"):
            _ = self.chat if stage == "extract" else self.resolver
        if stage in ("embed", "resolve"):
            _ = self.embedder

    @cached_property
    def chat(self) -> CachedChatModel:
        """The model that extracts, and writes summaries."""
        return self._cached(self._settings)

    @cached_property
    def resolver(self) -> CachedChatModel:
        name = self._settings.resolve_model
        is_other = name is not None and name != self._settings.chat_model
        return self._cached(self._settings.model_copy(update={"chat_model": name})) if is_other else self.chat

    def _cached(self, settings: StreamsSettings) -> CachedChatModel:
        return CachedChatModel(build_chat_model(settings, self._problems), self._replies, settings.price_table)

    @cached_property
    def embedder(self) -> CachedEmbedder:
        settings = self._settings
        embedder = build_embedder(settings, self._problems, stored=self._stored and self._stored[1])
        if self._stored and self._stored[0] != embedder.model:
            raise ProviderConfigurationError(
                f"facts have vectors of {self._stored[0]}, which cannot be compared with those of {embedder.model}: "
                "set MNEMOLOG_EMBEDDING_MODEL and MNEMOLOG_EMBEDDING_PROVIDER as before, or begin with empty tables"
            )
        return CachedEmbedder(
            embedder,
            self._replies,
            max_texts=settings.embedding_batch,
            max_wait=settings.embedding_linger,
            max_concurrent=settings.embedding_concurrency,
            prices=settings.price_table,
        )

    async def close(self) -> None:
        built = {id(model): model for name in ("chat", "resolver", "embedder") if (model := self.__dict__.get(name))}
        for model in built.values():
            await model.close()


def preload_models(settings: StreamsSettings) -> None:
    """Import the packages of the providers and load the offline model, so that building them later takes no time.

    May be called in any thread. Raises `ProviderConfigurationError` where a package is missing.
    """
    embedding = settings.embedding_provider or settings.provider
    if "openai" in (settings.provider, embedding):
        with needs_extra("openai"):
            import_module("mnemolog.streams.llm.openai_models")
    if settings.provider == "offline":
        with needs_extra("offline"):
            import_module("sentencex")
    if embedding == "offline":
        with needs_extra("offline"):
            from mnemolog.streams.llm.minilm_embedder import load_model  # noqa: PLC0415 -- loads the runtime of the model
        load_model()


PROBE_SECONDS: Final = 10.0
"""So long a server that does not answer delays a start."""


async def failing_models(settings: StreamsSettings) -> Problems:
    """Ask each model of each server once, all at once, and log a warning with what to do for one that fails.

    Gives what fails of the first server, for whoever looks before the first turn; a fallback may do for it.
    """
    problems: Problems = {}
    if "openai" not in (settings.provider, settings.embedding_provider):
        return problems
    from mnemolog.streams.llm.openai_models import OpenAiChatModel, OpenAiEmbedder  # noqa: PLC0415 -- loads its package

    short = {name: min(getattr(settings, name), PROBE_SECONDS) for name in ("llm_timeout", "embedding_timeout")}
    first = settings.model_copy(update=short | {"fallbacks": ()})
    servers = [(first, True)]
    for one in settings.fallbacks:
        own = {"chat_model": one.chat_model, "resolve_model": None} if one.chat_model else {}
        there = own | {"base_url": one.base_url, "api_key": one.api_key}
        servers.append((first.model_copy(update=there), one.embeds))
    models: list[tuple[StreamsSettings, str, ChatModel | Embedder]] = []
    for server, embeds in servers:
        names = dict.fromkeys((server.chat_model, server.resolve_model or server.chat_model))
        chats = (build_chat_model(server.model_copy(update={"chat_model": name})) for name in names)
        models += ((server, purpose, chat) for purpose, chat in zip(("extract", "resolve"), chats, strict=False))
        models += [(server, "embed", build_embedder(server))] * embeds

    async def ask(server: StreamsSettings, purpose: str, model: ChatModel | Embedder) -> None:
        if isinstance(model, OpenAiChatModel | OpenAiEmbedder):
            outcome = await model.probe()
            if isinstance(outcome, CallFailure):
                log.warning("model_fails", model=model.model, server=server.base_url, problem=outcome.advice)
                if server is first and not settings.fallbacks:
                    problems[f"{purpose} {model.model}"] = f"at the start {outcome.advice}"
        await model.close()

    await asyncio.gather(*(ask(*one) for one in models))
    return problems


def build_chat_model(settings: StreamsSettings, problems: Problems | None = None) -> ChatModel:
    """The model that extracts and resolves. Raises `ProviderConfigurationError`."""
    if settings.provider == "openai":
        return build_openai_chat_model(settings, problems)
    with needs_extra("offline"):
        from mnemolog.streams.offline.model import RuleModel  # noqa: PLC0415 -- loads the rules

        return RuleModel()
