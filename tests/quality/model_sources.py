"""The models of a run: live, recorded, or replayed from a recording."""

from pathlib import Path

from mnemolog.streams.llm.factory import build_embedder
from mnemolog.streams.llm.ports import ChatModel, Embedder
from mnemolog.streams.runtime.models import build_chat_model
from mnemolog.streams.settings import StreamsSettings
from tests.quality.recorded_replies import RecordedChatModel, RecordedEmbedder, recorded_models, write_models


def chosen_models(
    settings: StreamsSettings, *, record: Path | None = None, replay: Path | None = None
) -> tuple[ChatModel, Embedder]:
    """Raises `NotOnTapeError` for a folder that cannot be played back, or holds replies of other models."""
    if replay is not None:
        chat_model, embedding_model = recorded_models(replay)
        return RecordedChatModel(replay, chat_model), RecordedEmbedder(replay, embedding_model)
    chat, embedder = build_chat_model(settings), build_embedder(settings)
    if record is None:
        return chat, embedder
    write_models(record, chat.model, embedder.model)
    return RecordedChatModel(record, chat.model, chat), RecordedEmbedder(record, embedder.model, embedder)
