"""A cross-encoder on this machine's processor orders the hits of a search. Needs the extra `offline`, and a model."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.model_thread import end_thread

MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
MAX_TOKENS: Final = 512  # of question and text together: what such models were trained on
_BATCH: Final = 16
_SCORE_SHAPE: Final = 2

Scores: TypeAlias = NDArray[np.float32]


class OnnxReranker:
    """As `Reranker`, by the cross-encoder in a folder with `model.onnx` and `tokenizer.json`.

    The model takes pairs of question and text, and gives a score for each; of several the last one counts.
    Work is done in one thread of its own. Raises `ProviderConfigurationError` where the folder has no such model.
    """

    def __init__(self, folder: Path) -> None:
        self.model = folder.name
        self._tokenizer = _load_tokenizer(folder / TOKENIZER_FILE)
        self._session = _load_session(folder / MODEL_FILE)
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranker")

    async def rerank(self, question: str, texts: Sequence[str]) -> tuple[int, ...]:
        """As `Reranker`."""
        if not texts[1:]:  # nothing to order
            return tuple(range(len(texts)))
        scores = await asyncio.get_running_loop().run_in_executor(self._thread, self._score, question, tuple(texts))
        return tuple(int(index) for index in np.argsort(-scores, kind="stable"))

    async def close(self) -> None:
        """Calls that wait are cancelled, the one that runs is waited for."""
        await end_thread(self._thread)

    def _score(self, question: str, texts: tuple[str, ...]) -> Scores:
        pairs = self._tokenizer.encode_batch([(question, text) for text in texts])
        parts = [self._score_batch(pairs[start : start + _BATCH]) for start in range(0, len(pairs), _BATCH)]
        return np.concatenate(parts)

    def _score_batch(self, pairs: Sequence[Encoding]) -> Scores:
        known = {
            "input_ids": _rows([pair.ids for pair in pairs]),
            "attention_mask": _rows([pair.attention_mask for pair in pairs]),
            "token_type_ids": _rows([pair.type_ids for pair in pairs]),
        }
        try:
            (found, *_) = self._session.run(None, {name: known[name] for name in self._inputs})
        except Exception as error:  # the runtime's errors have no base of their own
            raise ProviderConfigurationError(f"the model {self.model} takes no pairs of texts: {error}") from error
        scores = np.asarray(found, np.float32)
        if scores.ndim != _SCORE_SHAPE or len(scores) != len(pairs):
            raise ProviderConfigurationError(
                f"the model {self.model} is no cross-encoder: its output is no score a pair"
            )
        return scores[:, -1]


def _rows(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """One row a list, filled up with zeros."""
    rows = np.zeros((len(lists), max(map(len, lists))), np.int64)
    for row, values in enumerate(lists):
        rows[row, : len(values)] = values
    return rows


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ProviderConfigurationError(f"{path} is no tokenizer of a cross-encoder: {error}") from error
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _load_session(path: Path) -> Any:
    if not path.is_file():
        raise ProviderConfigurationError(f"there is no {path}: MNEMOLOG_RERANK_PATH names a folder with {MODEL_FILE}")
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # as for the embedder
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ProviderConfigurationError(f"{path} is no model: {error}") from error
    if unknown := {each.name for each in session.get_inputs()} - {"input_ids", "attention_mask", "token_type_ids"}:
        raise ProviderConfigurationError(f"{path} is no cross-encoder: it asks for {min(unknown)}")
    return session
